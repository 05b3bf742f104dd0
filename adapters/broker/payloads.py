"""The messages between gateways and workers: JSON by `bot/core/codec`, with a version header.

A new field has a default, so that both versions of a rolling upgrade read each other. A change that
older readers would misunderstand raises VERSION, and they refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from adapters.broker.queries import ClusterQuery, ClusterReply
from bot.core import codec
from bot.core.events import Event, MessageReceived
from bot.core.other_bots import Announcement

VERSION: Final = 1
LARGEST: Final = 8 * 2**20  # bytes of a body

HEADER_VERSION: Final = "version"
HEADER_GATEWAY: Final = "gateway"  # which one took an event
HEADER_TAKEN: Final = (
    "taken"  # and when, by its own clock, in whole ms since 1970: AMQP rounds floats
)

Outcome = Literal["answered", "not_connected", "refused", "unanswered"]


class GatewayCall(Struct, frozen=True):
    """A OneBot action for this account; `epoch` is the lease of the calling worker. It is not begun
    after `until`, in the gateway's ticks (0: no deadline). The OneBot server fetches `beside` bytes
    of media from the caller.
    """

    account: int
    action: str
    params: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 0
    until: float = 0.0
    beside: int = 0


class CallEnd(Struct, frozen=True):
    """The end of a call: the server's answer; or nothing was written (not_connected), it was
    refused before that, or it was written and not answered. `wording` says why.
    """

    outcome: Outcome
    ok: bool = False
    retcode: int = 0
    data: Any = None
    wording: str = ""


class AccountPresence(Struct, frozen=True):
    """An account that is connected to a gateway; `online` is None if its server never reported it.

    `times` is how often it has connected to this gateway: an account that reconnects has missed
    events.
    """

    self_id: int
    online: bool | None = None
    server: str = ""
    times: int = 0


class Presence(Struct, frozen=True):
    """A gateway's announcement: its accounts in order of arrival, the connection it `refused` last,
    how many accounts reconnected, how many events wait for the broker, how many were `lost` and
    when the last one was (`lost_at`). `now` is its clock in seconds since 1970 (0 from an older
    version), `ticks` its monotonic clock in seconds. `asked` are messages to an account among the
    events just lost, one a chat.
    """

    gateway: str
    accounts: tuple[AccountPresence, ...] = ()
    refused: str = ""
    reconnects: int = 0
    waiting: int = 0
    lost: int = 0
    lost_at: float = 0.0
    now: float = 0.0
    ticks: float = 0.0
    asked: tuple[MessageReceived, ...] = ()


class PartsAsked(Struct, frozen=True):
    """A command to all parts of the cluster."""

    command: str


class PartAnswer(Struct, frozen=True):
    """The answer of one part to a command."""

    name: str
    answer: Mapping[str, Any] = field(default_factory=dict)


def pack(
    value: Event
    | GatewayCall
    | CallEnd
    | Presence
    | Announcement
    | PartsAsked
    | PartAnswer
    | ClusterQuery
    | ClusterReply,
) -> bytes:
    """The body of a message."""
    return codec.encode(value)


def unpack(kind: Any, body: bytes, version: object) -> Any:
    """The value in a body; `kind` is its type. Raises codec.Unreadable, also for one of a version
    that only newer readers know.
    """
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise codec.Unreadable(f"it is of version {version!r}, this program reads up to {VERSION}")
    return codec.read(kind, body)
