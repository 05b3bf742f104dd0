"""One send and its row: what is written down of it, and when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bot.domain.actions import Receipt, SendMessage, Waiting
from bot.domain.journal import Entry, SendChanged, SendQueued, SendState, StoredSend
from bot.domain.ports import Clock, Store

MAX_REASON = 500  # characters of a reason that are kept
SHORTEST = (
    0.05  # seconds between two looks of the least patient caller at a send that is on the wire
)
NOT_YET = "QQ is not connected, or the pace is limited"


def _future() -> asyncio.Future[Receipt]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, eq=False)
class Send:
    """Something to be said, from the moment it is queued until nobody asks for it any more.

    `receipt` is what became of it; `heard` what its one caller is told: the same, or before it that
    it waits.
    """

    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    recorded: bool = False
    after: Send | None = None  # what must be delivered first, else this is not said either
    awaited: bool = False  # whether somebody will hear the receipt
    doubted: float = 0.0  # when nobody knew any more what became of it
    found: str | None = None  # the id under which the message was seen, before its answer came
    receipt: asyncio.Future[Receipt] = field(default_factory=_future)
    heard: asyncio.Future[Receipt] = field(default_factory=_future)

    @classmethod
    def of(cls, stored: StoredSend, state: SendState) -> Send:
        """One that is a row already."""
        return cls(
            stored.send_id,
            stored.turn_id,
            stored.action,
            stored.final,
            stored.at,
            state,
            recorded=True,
        )

    async def hear(self, patience: float) -> Receipt:
        """What becomes of it, or that it waits, where it is not on the wire after so many
        seconds.
        """
        look = asyncio.get_running_loop().call_later(patience, self._look, max(patience, SHORTEST))
        try:
            return await self.heard
        finally:
            look.cancel()

    def _look(self, again: float) -> None:
        if self.heard.done():
            return
        if self.state is SendState.QUEUED:
            self.heard.set_result(Waiting(NOT_YET))
        else:  # it may yet come back from the wire
            asyncio.get_running_loop().call_later(again, self._look, again)

    def settle(self, receipt: Receipt) -> None:
        """This has become of it."""
        self.receipt.set_result(receipt)
        if not self.heard.done():  # its caller may have been cancelled
            self.heard.set_result(receipt)


class Rows:
    """The rows of all sends."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def queued(self, send: Send, *entries: Entry) -> None:
        """There is a row, if there was none; it is written together with these entries, after
        them.
        """
        if not send.recorded:
            send.recorded = True
            self._store.put(*entries, _row(send))

    async def sending(self, send: Send) -> None:
        """The row says SENDING, durably, before the frame can leave."""
        send.state = SendState.SENDING
        if send.recorded:
            await self._store.commit(
                SendChanged(send_id=send.send_id, state=send.state, at=self._clock.now())
            )
        else:
            send.recorded = True
            await self._store.commit(_row(send))

    def changed(
        self, send: Send, state: SendState, *, message_id: str = "", reason: str = ""
    ) -> None:
        """The send has another state now, and so has its row."""
        self.queued(send)
        send.state = state
        short = reason[:MAX_REASON]
        now = self._clock.now()
        self._store.put(
            SendChanged(
                send_id=send.send_id, state=state, at=now, message_id=message_id, reason=short
            )
        )


def _row(send: Send) -> SendQueued:
    return SendQueued(
        send_id=send.send_id,
        turn_id=send.turn_id,
        action=send.action,
        final=send.final,
        at=send.at,
        state=send.state,
    )
