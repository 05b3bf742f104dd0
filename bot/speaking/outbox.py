"""Everything that is said, as rows with a state: queued -> sending -> confirmed, refused, unknown,
withdrawn, dropped.

One worker a conversation: order is kept, one send is unanswered at a time, and a send whose caller
was cancelled is withdrawn if it has not been on the wire, seen to its end if it has. A row is
SENDING in the store before its frame leaves, so after a crash a QUEUED row has never been on the
wire, and only such a row is ever sent (again). What cannot leave at once is a row from the moment
it is queued: it outlives the process.

A send without an answer may have been delivered: it is looked for (the account's own
`message_sent`, then the history), and what cannot be found stays UNKNOWN and is never repeated. Of
that, and of what got lost once nobody waited for its receipt any more, somebody is told: see
`report_to`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from bot.domain.actions import Confirmed, Receipt, Refused, SendMessage, Unknown, Waiting
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected, TransportError
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import Entry, SendState, StoredSend
from bot.domain.ports import Clock, Ids, Store, Transport
from bot.domain.trace import current_run
from bot.policy.refusals import explain_refusal
from bot.speaking.pacing import Pace
from bot.speaking.sends import Rows, Send
from bot.speaking.unconfirmed import Unconfirmed

logger = logging.getLogger(__name__)

MAX_WAITING = 30  # sends of one conversation
MAX_AGE = 120.0  # seconds a send may wait for a connection: later nobody expects it any more
PATIENCE = 10.0  # seconds a caller waits for a send that is not on the wire yet
LOOK_AFTER = 1.0  # seconds until the history of an unanswered send is worth a look
BURST = 20  # messages one conversation may get at once, before the pace is kept
ACCOUNT = 500  # how many conversations' pace and burst one account has in all: a backstop, people are far below it

FULL = "too many messages are waiting to be sent here"
TOO_LATE = "QQ was not connected in time"
STOPPED = "its run was stopped"
RESTARTED = "the bot was restarted before an answer came"
CUT_OFF = "what was to be said before it was not delivered"

Tell: TypeAlias = Callable[[SendMessage, SendState, str], None]


@dataclass(slots=True)
class _Queue:
    sends: deque[Send] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None


class Outbox:
    """Sends, in order, what it is given; owns its workers while it is open."""

    def __init__(
        self,
        *,
        transport: Transport,
        store: Store,
        clock: Clock,
        ids: Ids,
        rate: float = 0.0,
    ) -> None:
        self._transport = transport
        self._rows = Rows(store=store, clock=clock)
        self._clock = clock
        self._boot = ids.trace()
        self._numbers = itertools.count(1)
        self._here = Pace(rate=rate, burst=BURST, clock=clock, ids=ids)
        self._account = Pace(rate=rate * ACCOUNT, burst=BURST * ACCOUNT, clock=clock, ids=ids)
        self._queues: dict[Conversation, _Queue] = {}
        self.unconfirmed = Unconfirmed(rows=self._rows, clock=clock)
        self._connected = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._group: asyncio.TaskGroup | None = None
        self._finishing = False
        self._tell: Tell = _tell_nobody

    def report_to(self, tell: Tell) -> None:
        """From now on tell this of each message of a turn that may be lost (UNKNOWN), and of those
        that are (REFUSED, DROPPED) when nobody hears their receipt; with the reason. It must
        neither wait nor raise.
        """
        self._tell = tell

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the workers; at the end they are cancelled, and what is queued stays so in the
        store.
        """
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for queue in self._queues.values():
                    if queue.worker is not None:
                        queue.worker.cancel()

    async def finish(self, *, within: float) -> None:
        """Put nothing more on the wire, and wait so many seconds for what is there; the rest stays
        in the store.
        """
        self._finishing = True
        sends = [send for queue in self._queues.values() for send in queue.sends]
        for send in sends:
            self._rows.queued(send)
        if unanswered := [
            send.receipt for send in sends if send.state in (SendState.SENDING, SendState.UNKNOWN)
        ]:
            await asyncio.wait(unanswered, timeout=within)

    # --- saying -----------------------------------------------------------------------------------

    async def send(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        patience: float = PATIENCE,
    ) -> Receipt:
        """Say it, and what became of it. Waiting: it will be said once QQ is back, within two
        minutes.
        """
        (receipt,) = await self.send_all((action,), turn_id=turn_id, final=final, patience=patience)
        return receipt

    async def send_all(
        self,
        actions: Sequence[SendMessage],
        *,
        turn_id: str = "",
        final: bool = False,
        patience: float = PATIENCE,
    ) -> tuple[Receipt, ...]:
        """Say these in one conversation, nothing in between, and what became of each.

        After one that was refused, or whose fate is unknown, the rest is not sent and has no
        receipt. All are taken, or none where too many wait.
        """
        sends = self._enqueue(actions, turn_id=turn_id, final=final)
        if not sends:
            return (Refused(FULL),)
        receipts: list[Receipt] = []
        try:
            for send in sends:
                send.awaited = True
            for send in sends:
                receipts.append(receipt := await send.hear(patience))
                if isinstance(receipt, Waiting):
                    return (*receipts, *[receipt] * (len(sends) - len(receipts)))
                if not isinstance(receipt, Confirmed):
                    break
        except asyncio.CancelledError:
            for send in sends:
                self._withdraw(send, STOPPED)
            raise
        finally:
            for send in sends:
                send.awaited = False
        return tuple(receipts)

    def post(
        self, action: SendMessage, *, turn_id: str = "", final: bool = False
    ) -> asyncio.Future[Receipt] | None:
        """Say it as soon as it can be; what becomes of it, for who wants to know. None where too
        many wait.
        """
        sends = self._enqueue((action,), turn_id=turn_id, final=final)
        return sends[0].receipt if sends else None

    def post_with(self, *entries: Entry, action: SendMessage, turn_id: str = "") -> None:
        """Say it, as an answer, and write that down with these entries: both are known of, or
        neither, whenever the process ends. It is on the wire only after all of that is durable,
        wherever the store can promise it.
        """
        send = Send(
            f"{self._boot}-{next(self._numbers)}", turn_id, action, final=True, at=self._clock.now()
        )
        self._rows.queued(send, *entries)
        self._append((send,), most=None)

    def resume(self, stored: StoredSend) -> None:
        """Say what an earlier process wrote down as queued, and never put on the wire."""
        send = Send.of(stored, SendState.QUEUED)
        self._append((send,), most=None)  # it was taken already

    def remember_unknown(self, stored: StoredSend) -> None:
        """Look out for what an earlier process put on the wire without hearing more of it; it is
        never sent again.
        """
        send = Send.of(stored, SendState.UNKNOWN)
        self.unconfirmed.add(send)
        if stored.state is not SendState.UNKNOWN:  # else that process has told it
            self._rows.changed(send, SendState.UNKNOWN, reason=RESTARTED)
            self._report(send, RESTARTED)

    def _enqueue(self, actions: Sequence[SendMessage], *, turn_id: str, final: bool) -> list[Send]:
        now = self._clock.now()
        sends = [
            Send(f"{self._boot}-{next(self._numbers)}", turn_id, action, final, now)
            for action in actions
        ]
        for before, send in pairwise(sends):
            send.after = before
        return sends if self._append(sends) else []

    def _append(self, sends: Sequence[Send], *, most: int | None = MAX_WAITING) -> bool:
        where = sends[0].action.conversation
        queue = self._queues.get(where)
        is_full = most is not None and queue is not None and len(queue.sends) >= most
        if self._group is None or self._finishing or is_full:
            return False
        if queue is None:
            queue = self._queues[where] = _Queue()
            self._idle.clear()
            queue.worker = self._group.create_task(
                self._work_off(where, queue), name=f"outbox {where}"
            )
        for send in sends:
            if queue.sends:  # the first one leaves at once, and is written down on its way
                self._rows.queued(send)
            queue.sends.append(send)
        return True

    def _withdraw(self, send: Send, reason: str) -> None:
        if send.state is SendState.QUEUED:
            self._rows.changed(send, SendState.WITHDRAWN, reason=reason)

    # --- the worker -------------------------------------------------------------------------------

    async def _work_off(self, where: Conversation, queue: _Queue) -> None:
        try:
            while queue.sends and not self._finishing:
                await self._deliver_guarded(queue.sends[0])
                queue.sends.popleft()
        finally:
            del self._queues[where]
            if not self._queues:
                self._idle.set()

    async def wait_idle(self) -> None:
        """Return once nothing is left to be sent."""
        await self._idle.wait()

    async def _deliver_guarded(self, send: Send) -> None:
        """A failure of ours is one send's misfortune, and may have come after the frame left."""
        try:
            await self._deliver(send)
        except Exception as bug:
            logger.exception("the outbox of %s goes on after a failure", send.action.conversation)
            if not send.receipt.done():
                self._give_up(send, f"bug: {type(bug).__name__}")

    async def _deliver(self, send: Send) -> None:
        where = send.action.conversation
        current_run.set(send.turn_id)  # the worker may have been started by another run
        before, send.after = send.after, None
        if before is not None:
            if before.state is not SendState.CONFIRMED:
                self._withdraw(send, CUT_OFF)
            send.at = (
                self._clock.now()
            )  # before that it waited for its turn, not for QQ: that may have been a film
        if send.state is not SendState.QUEUED:
            return
        if wait := max(self._here.delay(where), self._account.delay(where.platform_id)):
            self._rows.queued(send)
            await self._clock.sleep(wait)
        while send.state is SendState.QUEUED:
            if self._finishing:
                return
            if self._clock.now() - send.at > MAX_AGE:
                self._settle(send, SendState.DROPPED, Refused(TOO_LATE), reason=TOO_LATE)
                return
            await self._rows.sending(send)
            if not await self._put_on_wire(send):
                await self._wait_for_connection()

    async def _put_on_wire(self, send: Send) -> bool:
        """One attempt; False if it never reached the wire and may be tried again."""
        where = send.action.conversation
        try:
            message_id = await self._transport.send(send.action)
        except NotConnected as error:
            logger.info("cannot send to %s yet: %s", where, error)
            self._rows.changed(send, SendState.QUEUED)
            return False
        except ActionRefused as error:
            reason = explain_refusal(error.wording, error.retcode)
            logger.warning("not sent to %s: %s", where, error)
            self._settle(send, SendState.REFUSED, Refused(reason), reason=reason)
        except ActionUnanswered as error:
            await self._look_for(send, str(error))
        else:
            self._confirm(send, message_id)
        return True

    async def _look_for(self, send: Send, reason: str) -> None:
        """An unanswered send: seen by the account itself, or in the history? Else it stays
        unknown.
        """
        where = send.action.conversation
        send.state = SendState.UNKNOWN
        if send.found is None:
            await self._clock.sleep(LOOK_AFTER)
        if send.found is None:
            try:
                history = await self._transport.get_history(where)
                self.unconfirmed.compare(history, lambda _: [send])
            except TransportError as error:
                logger.debug("the history of %s cannot be looked at: %s", where, error)
        if send.found is not None:
            self._confirm(send, send.found)
            return
        logger.warning(
            "sent to %s without an answer, it may have been delivered: %s", where, reason
        )
        self._give_up(send, reason)

    def _give_up(self, send: Send, reason: str) -> None:
        self.unconfirmed.add(send)
        self._settle(send, SendState.UNKNOWN, Unknown(reason), reason=reason)

    def _settle(
        self,
        send: Send,
        state: SendState,
        receipt: Receipt,
        *,
        message_id: str = "",
        reason: str = "",
    ) -> None:
        self._rows.changed(send, state, message_id=message_id, reason=reason)
        send.settle(receipt)
        if isinstance(receipt, Unknown) or (isinstance(receipt, Refused) and not send.awaited):
            self._report(send, reason)

    def _report(self, send: Send, reason: str) -> None:
        """Tell of it, if a turn said it: lines about lines would never end."""
        if send.turn_id:
            self._tell(send.action, send.state, reason)

    async def _wait_for_connection(self) -> None:
        self._connected.clear()
        try:
            async with asyncio.timeout(MAX_AGE):
                await self._connected.wait()
        except TimeoutError:
            logger.debug("still not connected")

    # --- what others see --------------------------------------------------------------------------

    def connected(self) -> None:
        """An account is there (again): what waits may try, and what is in doubt may be looked
        for.
        """
        self._connected.set()
        self.unconfirmed.look_again()

    def seen(self, message: MessageReceived) -> None:
        """The account itself said this: it confirms the send it can be, one on the wire rather than
        one long lost.
        """
        self.compare([message])

    def compare(self, history: Iterable[MessageReceived]) -> None:
        """Confirm the sends that a conversation's history shows as said; each message confirms
        one.
        """
        self.unconfirmed.compare(history, self._on_wire)

    def _on_wire(self, where: Conversation) -> list[Send]:
        queue = self._queues.get(where)
        sending = (
            [send for send in queue.sends if send.state is not SendState.QUEUED] if queue else []
        )
        return [*sending, *self.unconfirmed.at(where)]

    def _confirm(self, send: Send, message_id: str) -> None:
        self.unconfirmed.confirm(send, message_id)
        self._settle(send, SendState.CONFIRMED, Confirmed(message_id), message_id=message_id)


def _tell_nobody(action: SendMessage, state: SendState, reason: str) -> None:
    logger.warning("%s in %s: %s", state, action.conversation, reason)
