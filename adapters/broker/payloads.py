"""The messages between gateways and workers: JSON by `bot/core/codec`, with a version header.

A new field has a default, so that both versions of a rolling upgrade can read each other. A change
that older readers would misunderstand raises VERSION, and they reject it.
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
HEADER_GATEWAY: Final = "gateway"  # the gateway that received an event
HEADER_TAKEN: Final = (
    "taken"  # and when, by its clock, in ms since 1970; an integer, because AMQP rounds floats
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
    """The result of a call: the server's answer; or nothing was written (not_connected), it was
    refused before that, or it was written and not answered. `wording` says why.
    """

    outcome: Outcome
    ok: bool = False
    retcode: int = 0
    data: Any = None
    wording: str = ""


class AccountPresence(Struct, frozen=True):
    """An account connected to a gateway; `online` is None if its server never reported it.

    `times` counts its connections to this gateway: an account that reconnects has missed events.
    """

    self_id: int
    online: bool | None = None
    server: str = ""
    times: int = 0


class Presence(Struct, frozen=True):
    """A gateway's announcement: its accounts in order of connection, the connection it last
    `refused`, the number of reconnections, the number of unconfirmed events, and the number of
    `lost` ones with the time of the last (`lost_at`). `now` is its clock in seconds since 1970 (0
    from an older version), `ticks` its monotonic clock in seconds. `asked` are messages to an
    account among the events just lost, one per chat.
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
    command: str


class PartAnswer(Struct, frozen=True):
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
    return codec.encode(value)


def unpack(kind: Any, body: bytes, version: object) -> Any:
    """Read a body as a `kind`. Raises codec.Unreadable, also for a newer version."""
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise codec.Unreadable(f"it is of version {version!r}, this program reads up to {VERSION}")
    return codec.read(kind, body)
