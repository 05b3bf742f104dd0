"""The messages between gateways and workers: JSON, as `domain/codec` writes it, with a version.

A field that is added has a default, so that both versions of a rolling upgrade read each other; a
change that older readers would misunderstand raises VERSION, and they refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from bot.domain import cluster_queries, codec
from bot.domain.cluster_messages import ClusterMessage
from bot.domain.events import Event, MessageReceived

VERSION: Final = 1
LARGEST: Final = 8 * 2**20  # bytes of a body

HEADER_VERSION: Final = "version"
HEADER_GATEWAY: Final = "gateway"  # which one took an event
HEADER_TAKEN: Final = (
    "taken"  # and when, by its own clock, in whole ms since 1970: AMQP rounds floats
)

Outcome = Literal["answered", "not_connected", "refused", "unanswered"]


class GatewayCall(Struct, frozen=True):
    """An action of OneBot's for the server of this account; `epoch` is the lease of who asks. It is
    not begun after `until`, by the gateway's `ticks` (0: whenever it comes). The server fetches so
    many bytes `beside` it, from who asks.
    """

    account: int
    action: str
    params: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 0
    until: float = 0.0
    beside: int = 0


class CallEnd(Struct, frozen=True):
    """The end of a call: what the server said, or that nothing was written (not_connected), that it
    was refused before that, or that it was written and nobody answered; `wording` says why.
    """

    outcome: Outcome
    ok: bool = False
    retcode: int = 0
    data: Any = None
    wording: str = ""


class AccountPresence(Struct, frozen=True):
    """An account that is connected to a gateway; `online` is None where its server never said.

    `times` is how often it has come to this gateway: one that comes again has missed something.
    """

    self_id: int
    online: bool | None = None
    server: str = ""
    times: int = 0


class Presence(Struct, frozen=True):
    """All accounts of a gateway, in order of arrival; who was `refused` last, how many came
    again. So many of its events wait for the broker, so many were `lost`, the last one at
    `lost_at`; `now` is what its clock says (0: one of an older version), in seconds since 1970, and
    `ticks` what one says that nobody sets, in seconds. Of what was lost just now `asked` are
    messages to an account, one of a chat.
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
    """All parts of the cluster are asked this, by a word."""

    command: str


class PartAnswer(Struct, frozen=True):
    """The answer of the part of this name."""

    name: str
    answer: Mapping[str, Any] = field(default_factory=dict)


def pack(
    value: Event
    | GatewayCall
    | CallEnd
    | Presence
    | ClusterMessage
    | PartsAsked
    | PartAnswer
    | cluster_queries.ClusterQuery
    | cluster_queries.ClusterReply,
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
