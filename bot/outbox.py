"""Everything that is said, as rows with a state: queued -> sending -> confirmed, refused, unknown, withdrawn, dropped.

One worker a conversation: order is kept, one send is unanswered at a time, and a send whose caller was cancelled is
withdrawn if it has not been on the wire, seen to its end if it has. A row is SENDING in the store before its frame
leaves, so after a crash a QUEUED row has never been on the wire, and only such a row is ever sent (again).

A send without an answer may have been delivered: it is looked for (the account's own `message_sent`, then the
history), and what cannot be found stays UNKNOWN and is never repeated.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cachetools import LRUCache

from bot.domain.actions import Confirmed, Receipt, Refused, SendMessage, Unknown, Waiting
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected, TransportError
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import SendChanged, SendQueued, SendState, StoredSend
from bot.domain.ports import Clock, Ids, Store, Transport
from bot.domain.trace import current_run
from bot.pacing import Pace
from bot.policy.refusals import explain_refusal
from bot.policy.sameness import is_same_message

logger = logging.getLogger(__name__)

MAX_WAITING = 30  # sends of one conversation
MAX_AGE = 120.0  # seconds a send may wait for a connection: later nobody expects it any more
PATIENCE = 10.0  # seconds a caller waits for a send that is not on the wire yet
LOOK_AFTER = 1.0  # seconds until the history of an unanswered send is worth a look
SKEW = 30.0  # seconds the server's clock may be behind ours
MAX_UNKNOWN = 200
BURST = 20  # messages one conversation may get at once, before the pace is kept
ACCOUNT = 500  # how many conversations' pace and burst one account has in all: a backstop, people are far below it


@dataclass(slots=True, eq=False)
class _Send:
    send_id: str
    turn_id: str
    action: SendMessage
    final: bool
    at: float
    state: SendState = SendState.QUEUED
    recorded: bool = False
    found: str | None = None  # the id under which the message was seen, before its answer came
    receipt: asyncio.Future[Receipt] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True)
class _Queue:
    sends: deque[_Send] = field(default_factory=deque)
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
        self._store = store
        self._clock = clock
        self._boot = ids.trace()
        self._numbers = itertools.count(1)
        self._here = Pace(rate=rate, burst=BURST, clock=clock, ids=ids)
        self._account = Pace(rate=rate * ACCOUNT, burst=BURST * ACCOUNT, clock=clock, ids=ids)
        self._queues: dict[Conversation, _Queue] = {}
        self._unknown: deque[_Send] = deque(maxlen=MAX_UNKNOWN)
        self._confirmed: LRUCache[tuple[Conversation, str], None] = LRUCache(5000)
        self._connected = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the workers; at the end they are cancelled, and what is queued stays so in the store."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for queue in self._queues.values():
                    if queue.worker is not None:
                        queue.worker.cancel()

    # --- saying -----------------------------------------------------------------------------------

    async def send(
        self, action: SendMessage, *, turn_id: str = "", final: bool = False, patience: float = PATIENCE
    ) -> Receipt:
        """Say it, and what became of it. Waiting: it will be said once QQ is back, within two minutes."""
        send = self._enqueue(action, turn_id=turn_id, final=final)
        if send is None:
            return Refused("too many messages are waiting to be sent here")
        try:
            while not send.receipt.done():
                await asyncio.wait({send.receipt}, timeout=patience)
                if send.state is SendState.QUEUED and not send.receipt.done():
                    return Waiting("QQ is not connected, or the pace is limited")
        except asyncio.CancelledError:
            self._withdraw(send)
            raise
        return send.receipt.result()

    def post(self, action: SendMessage, *, turn_id: str = "", final: bool = False) -> None:
        """Say it as soon as it can be; nobody waits for what becomes of it."""
        self._enqueue(action, turn_id=turn_id, final=final)

    def prepare(self, action: SendMessage, *, turn_id: str = "", final: bool = False) -> StoredSend:
        """A send for the caller to write down and to `resume`: so that it is made even if the process ends between."""
        send_id = f"{self._boot}-{next(self._numbers)}"
        return StoredSend(
            send_id=send_id, turn_id=turn_id, action=action, final=final, at=self._clock.now(), state=SendState.QUEUED
        )

    def resume(self, stored: StoredSend) -> None:
        """Say what is written down as queued, by this or an earlier process, and was never put on the wire."""
        send = _Send(stored.send_id, stored.turn_id, stored.action, stored.final, stored.at, recorded=True)
        self._append(send)

    def remember_unknown(self, stored: StoredSend) -> None:
        """Look out for what an earlier process put on the wire without hearing more of it; it is never sent again."""
        send = _Send(stored.send_id, stored.turn_id, stored.action, stored.final, stored.at, SendState.UNKNOWN, True)
        if stored.state is not SendState.UNKNOWN:
            self._change(send, SendState.UNKNOWN, reason="the bot was restarted before an answer came")
        self._unknown.append(send)

    def _enqueue(self, action: SendMessage, *, turn_id: str, final: bool) -> _Send | None:
        send = _Send(f"{self._boot}-{next(self._numbers)}", turn_id, action, final, self._clock.now())
        return send if self._append(send) else None

    def _append(self, send: _Send) -> bool:
        where = send.action.conversation
        queue = self._queues.get(where)
        if self._group is None or (queue is not None and len(queue.sends) >= MAX_WAITING):
            return False
        if queue is None:
            queue = self._queues[where] = _Queue()
            self._idle.clear()
            queue.worker = self._group.create_task(self._work_off(where, queue), name=f"outbox {where}")
        queue.sends.append(send)
        return True

    def _withdraw(self, send: _Send) -> None:
        if send.state is SendState.QUEUED:
            self._change(send, SendState.WITHDRAWN, reason="its run was stopped")

    # --- the worker -------------------------------------------------------------------------------

    async def _work_off(self, where: Conversation, queue: _Queue) -> None:
        try:
            while queue.sends:
                await self._deliver(queue.sends[0])
                queue.sends.popleft()
        finally:
            del self._queues[where]
            if not self._queues:
                self._idle.set()

    async def wait_idle(self) -> None:
        """Return once nothing is left to be sent."""
        await self._idle.wait()

    async def _deliver(self, send: _Send) -> None:
        where = send.action.conversation
        current_run.set(send.turn_id)  # the worker may have been started by another run
        if send.state is not SendState.QUEUED:
            return
        if wait := max(self._here.delay(where), self._account.delay(where.platform_id)):
            self._record_queued(send)
            await self._clock.sleep(wait)
        while send.state is SendState.QUEUED:
            if self._clock.now() - send.at > MAX_AGE:
                self._change(send, SendState.DROPPED, reason="QQ was not connected in time")
                send.receipt.set_result(Refused("QQ was not connected in time"))
                return
            await self._record_sending(send)
            if not await self._put_on_wire(send):
                await self._wait_for_connection()

    async def _put_on_wire(self, send: _Send) -> bool:
        """One attempt; False if it never reached the wire and may be tried again."""
        where = send.action.conversation
        try:
            message_id = await self._transport.send(send.action)
        except NotConnected as error:
            logger.info("cannot send to %s yet: %s", where, error)
            self._change(send, SendState.QUEUED)
            return False
        except ActionRefused as error:
            reason = explain_refusal(error.wording, error.retcode)
            logger.warning("not sent to %s: %s", where, error)
            self._change(send, SendState.REFUSED, reason=reason)
            send.receipt.set_result(Refused(reason))
        except ActionUnanswered as error:
            await self._look_for(send, str(error))
        else:
            self._confirm(send, message_id)
        return True

    async def _look_for(self, send: _Send, reason: str) -> None:
        """An unanswered send: seen by the account itself, or in the history? Else it stays unknown."""
        where = send.action.conversation
        send.state = SendState.UNKNOWN
        if send.found is None:
            await self._clock.sleep(LOOK_AFTER)
        if send.found is None:
            try:
                self.compare(await self._transport.get_history(where), [send])
            except TransportError as error:
                logger.debug("the history of %s cannot be looked at: %s", where, error)
        if send.found is not None:
            self._confirm(send, send.found)
            return
        logger.warning("sent to %s without an answer, it may have been delivered: %s", where, reason)
        self._change(send, SendState.UNKNOWN, reason=reason)
        self._unknown.append(send)
        send.receipt.set_result(Unknown(reason))

    async def _wait_for_connection(self) -> None:
        self._connected.clear()
        try:
            async with asyncio.timeout(MAX_AGE):
                await self._connected.wait()
        except TimeoutError:
            logger.debug("still not connected")

    # --- what others see --------------------------------------------------------------------------

    def connected(self) -> None:
        """An account is there (again): what waits may try."""
        self._connected.set()

    def seen(self, message: MessageReceived) -> None:
        """The account itself said this: it confirms the oldest send it can be."""
        self.compare([message], self._on_wire(message.conversation))

    def in_doubt(self, account: int) -> tuple[Conversation, ...]:
        """Where something was said by this account, or was not: nobody knows."""
        places = (send.action.conversation for send in self._unknown)
        return tuple(dict.fromkeys(where for where in places if where.platform_id == account))

    def compare(self, history: Iterable[MessageReceived], sends: Iterable[_Send] | None = None) -> None:
        """Confirm the sends that a conversation's history shows as said; each message confirms one."""
        for message in history:
            key = (message.conversation, message.message_id)
            if not message.is_own or key in self._confirmed:
                continue
            for send in self._on_wire(message.conversation) if sends is None else sends:
                if send.found is None and message.time >= send.at - SKEW and is_same_message(message, send.action):
                    self._found(send, message.message_id)
                    break

    def _on_wire(self, where: Conversation) -> list[_Send]:
        queue = self._queues.get(where)
        sending = [send for send in queue.sends if send.state is not SendState.QUEUED] if queue else []
        return [send for send in self._unknown if send.action.conversation == where] + sending

    def _found(self, send: _Send, message_id: str) -> None:
        send.found = message_id
        self._confirmed[send.action.conversation, message_id] = None
        if send in self._unknown:
            self._unknown.remove(send)
            self._change(send, SendState.CONFIRMED, message_id=message_id)

    def _confirm(self, send: _Send, message_id: str) -> None:
        self._confirmed[send.action.conversation, message_id] = None
        self._change(send, SendState.CONFIRMED, message_id=message_id)
        send.receipt.set_result(Confirmed(message_id))

    # --- the rows ---------------------------------------------------------------------------------

    def _record_queued(self, send: _Send) -> None:
        if not send.recorded:
            send.recorded = True
            self._store.put(self._row(send))

    async def _record_sending(self, send: _Send) -> None:
        """The row says SENDING, durably, before the frame can leave."""
        send.state = SendState.SENDING
        if send.recorded:
            await self._store.commit(SendChanged(send_id=send.send_id, state=send.state, at=self._clock.now()))
        else:
            send.recorded = True
            await self._store.commit(self._row(send))

    def _row(self, send: _Send) -> SendQueued:
        return SendQueued(
            send_id=send.send_id,
            turn_id=send.turn_id,
            action=send.action,
            final=send.final,
            at=send.at,
            state=send.state,
        )

    def _change(self, send: _Send, state: SendState, *, message_id: str = "", reason: str = "") -> None:
        self._record_queued(send)
        send.state = state
        self._store.put(
            SendChanged(
                send_id=send.send_id, state=state, at=self._clock.now(), message_id=message_id, reason=reason[:500]
            )
        )
