"""One send and its row: what is written down of it, and when."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from bot.core.actions import SendMessage
from bot.core.journal import Entry, SendChanged, SendQueued, SendState, StoredSend
from bot.core.ports import Store
from bot.core.refusals import is_muted
from bot.memory.lru import LRU
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock, Ids
from frostagent.types.speech import Queued, Receipt, Refused, Unknown

MAX_REASON = 500  # characters of a reason that are kept
MAX_PLACES = 5000
SHORTEST = 0.05  # seconds between two looks of the least patient caller at a send on the wire
NOT_YET = "QQ is not connected, or the pace is limited"

Tell: TypeAlias = Callable[[SendMessage, SendState, str], None]


def _future() -> asyncio.Future[Receipt]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class Send:
    """Something to be said, from the moment it is queued until nobody asks for it any more.

    `receipt` is what became of it; `heard` what its one caller is told: the same, or before it that
    it waits. `tell` hears of it, with the reason, where it may be lost (UNKNOWN), and where it is
    (REFUSED, DROPPED) while nobody hears the receipt, unless the place is unreachable or the bot is
    muted there; it must neither wait nor raise.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    recorded: bool = False
    tell: Tell | None = None
    after: Send | None = field(default=None, init=False)
    """What must be delivered first, else this is not said either."""
    pause: float = field(default=0.0, init=False)
    """The seconds somebody would need to type it, more or less."""
    awaited: bool = field(default=False, init=False)  # whether somebody will hear the receipt
    doubted: float = field(default=0.0, init=False)
    """When nobody knew any more what became of it."""
    found: str | None = field(default=None, init=False)
    """The id under which the message was seen, before its answer came."""
    receipt: asyncio.Future[Receipt] = field(default_factory=_future, init=False)
    heard: asyncio.Future[Receipt] = field(default_factory=_future, init=False)

    @classmethod
    def of(cls, stored: StoredSend, state: SendState, tell: Tell | None = None) -> Send:
        """A send that is a row already."""
        turn_id, action, final, at = stored.turn_id, stored.action, stored.final, stored.at
        return cls(stored.send_id, turn_id, action, final, at, state, recorded=True, tell=tell)

    async def hear(self, patience: float) -> Receipt:
        """Wait for the receipt; `Queued` where it is not on the wire after so many seconds."""
        look = asyncio.get_running_loop().call_later(patience, self._look, max(patience, SHORTEST))
        try:
            return await self.heard
        finally:
            look.cancel()

    def _look(self, again: float) -> None:
        if self.heard.done():
            return
        if self.state is SendState.QUEUED:
            self.heard.set_result(Queued(NOT_YET))
        else:  # it may yet come back from the wire
            asyncio.get_running_loop().call_later(again, self._look, again)

    def settle(self, receipt: Receipt, reason: str = "") -> None:
        """Set the receipt, once, and report a loss that nobody else hears of."""
        self.receipt.set_result(receipt)
        if not self.heard.done():  # its caller may have been cancelled
            self.heard.set_result(receipt)
        match receipt:
            case Refused(reason=why, blocks_place=blocks):
                is_news = not (self.awaited or blocks or is_muted(why))
            case _:
                is_news = isinstance(receipt, Unknown)
        if is_news:
            self.report(reason)

    def report(self, reason: str) -> None:
        """Tell `tell`, if there is one, of the state it is in."""
        if self.tell is not None:
            self.tell(self.action, self.state, reason)


ENDS: Final = frozenset(
    {SendState.CONFIRMED, SendState.REFUSED, SendState.DROPPED, SendState.WITHDRAWN}
)


class Rows:
    """The rows of all sends. Those of turns whose fate became known when nobody waited for it any
    more are `settled`, in that order.
    """

    def __init__(self, *, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._boot = ids.trace()
        self._numbers = itertools.count(1)
        self.settled: asyncio.Queue[Send] = asyncio.Queue()
        self._spoke = LRU[Conversation, float](MAX_PLACES)

    def spoke(self, where: Conversation) -> float:
        """When something was last put on the wire there, or confirmed; -inf for never."""
        return self._spoke.get(where, -math.inf)

    def new(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        tell: Tell | None = None,
        name: str = "",
    ) -> Send:
        """A send with an id of its own, which begins with its `name` and is no row yet."""
        send_id = f"{name}{self._boot}-{next(self._numbers)}"
        return Send(send_id, turn_id, action, final, self._clock.now(), tell=tell)

    def queued(self, send: Send, *entries: Entry) -> None:
        """Write the row, if there is none, together with these entries and after them."""
        if not send.recorded:
            send.recorded = True
            self._store.put(*entries, _row(send))

    def queued_all(self, sends: Sequence[Send], *entries: Entry) -> None:
        """The same for several, all of it or nothing."""
        for send in sends:
            send.recorded = True
        self._store.put(*entries, *map(_row, sends))

    async def sending(self, send: Send) -> None:
        """Write SENDING into the row, durably, before the frame can leave."""
        send.state = SendState.SENDING
        now = self._clock.now()
        self._spoke.keep(send.action.conversation, now)
        if send.recorded:
            await self._store.commit(SendChanged(send_id=send.send_id, state=send.state, at=now))
        else:
            send.recorded = True
            await self._store.commit(_row(send))

    def changed(
        self, send: Send, state: SendState, *, message_id: str = "", reason: str = ""
    ) -> None:
        """Give the send another state, and its row."""
        self.queued(send)
        send.state = state
        short = reason[:MAX_REASON]
        now = self._clock.now()
        if state is SendState.CONFIRMED:
            self._spoke.keep(send.action.conversation, now)
        self._store.put(
            SendChanged(
                send_id=send.send_id, state=state, at=now, message_id=message_id, reason=short
            )
        )
        if state in ENDS:
            self.settle(send)

    def settle(self, send: Send) -> None:
        """Its fate is known: say so to who follows its turn."""
        if send.turn_id and not send.awaited:
            self.settled.put_nowait(send)

    def withdraw(self, send: Send, reason: str) -> None:
        """Withdraw the send, unless it has been on the wire."""
        if send.state is SendState.QUEUED:
            self.changed(send, SendState.WITHDRAWN, reason=reason)


def _row(send: Send) -> SendQueued:
    return SendQueued(
        send_id=send.send_id,
        turn_id=send.turn_id,
        action=send.action,
        final=send.final,
        at=send.at,
        state=send.state,
    )
