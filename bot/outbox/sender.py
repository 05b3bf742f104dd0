"""Puts sends on the wire: in order per conversation, paced, each at most once.

Each conversation has one queue and one worker, and at most one unanswered send. A send that cannot
leave at once gets a row when it is queued, and so survives the process. A row is SENDING in the
store before its frame leaves, so that after a crash a QUEUED row has never been on the wire.

An unanswered send may have been delivered: it is looked for (the account's own `message_sent`, then
the history). If it is not found it stays UNKNOWN and is never repeated. A send refused for its
quote or for a mention is repeated once without that. If QQ would refuse every message there, the
conversation is unreachable.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from msgspec import Struct, field

from bot.core.actions import SendMessage, SentSegment, send_prefix_of_person
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected, TransportError
from bot.core.journal import SendState
from bot.core.lru import LRU
from bot.core.ports import Transport
from bot.core.refusals import MUTED, Removable, judge_refusal
from bot.core.segments import Mention
from bot.core.task_context import current_run
from bot.outbox.pacing import BURST, Pacing
from bot.outbox.sends import Send, SendJournal, Unconfirmed
from frostagent.types.ports import Clock, Ids
from frostagent.types.speech import Confirmed, Quote, Receipt, Refused, Text, Unknown

logger = logging.getLogger(__name__)

MAX_WAITING = 30  # sends per conversation
MAX_AGE = 120.0  # seconds a send may wait for a connection: later it is no longer expected
LOOK_AFTER = 1.0  # seconds until the history is read for an unanswered send

TOO_LATE = "QQ was not connected in time"
CUT_OFF = "what was to be said before it was not delivered"
FORGOTTEN = "who it is about is forgotten"


class Suspicions(Protocol):
    """Learns of refusals that suggest that the bot is muted."""

    @property
    def news(self) -> int:
        """The number of mutes reported so far."""
        ...

    def suspect(self, where: Conversation, *, since: int) -> None:
        """A message that left when `news` was `since` was refused there."""
        ...


class _Queue(Struct):
    sends: deque[Send] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None


def _is_full(sends: Sequence[Send], most: int) -> bool:
    return len(sends) >= most <= sum(not send.yields for send in sends)


class Sender:
    """Owns the queues, and while it is open their workers. `mutes` learns of refusals for a mute.
    `rate` and `burst` are those of `Pacing`.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        journal: SendJournal,
        clock: Clock,
        ids: Ids,
        mutes: Suspicions,
        rate: float = 0.0,
        burst: int = BURST,
    ) -> None:
        self._mutes = mutes
        self._transport = transport
        self._journal = journal
        self._clock = clock
        self._pacing = Pacing(rate=rate, burst=burst, clock=clock, ids=ids)
        self._queues: dict[Conversation, _Queue] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._group: asyncio.TaskGroup | None = None
        self._is_finished = False
        self._connected = asyncio.Event()
        self.unconfirmed = Unconfirmed(journal=journal, clock=clock)
        self.unreachable = UnreachablePlaces(clock=clock)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the workers; on exit they are cancelled, and queued sends stay in the store."""
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
        """Stop sending, and wait at most `within` seconds for what is on the wire; the rest stays
        in the store.
        """
        self._is_finished = True
        sends = self.sends
        for send in sends:
            self._journal.record(send)
        if unanswered := [
            send.receipt for send in sends if send.state in (SendState.SENDING, SendState.UNKNOWN)
        ]:
            await asyncio.wait(unanswered, timeout=within)

    async def wait_idle(self) -> None:
        await self._idle.wait()

    def connected(self) -> None:
        """An account has (re)connected: retry waiting sends, and look for unconfirmed ones."""
        self._connected.set()
        self._connected = asyncio.Event()
        self.unconfirmed.look_again()

    # --- queues -----------------------------------------------------------------------------------

    def enqueue(self, sends: Sequence[Send], *, most: int | None = MAX_WAITING) -> bool:
        """Queue the sends of one conversation: all, or none if `most` wait there already, without
        those that yield, or the sender has finished.
        """
        where = sends[0].action.conversation
        queue = self._queues.get(where)
        is_full = most is not None and queue is not None and _is_full(queue.sends, most)
        if self._group is None or self._is_finished or is_full:
            return False
        if queue is None:
            queue = self._queues[where] = _Queue()
            self._idle.clear()
            queue.worker = self._group.create_task(
                self._work_off(where, queue), name=f"outbox {where}"
            )
        for send in sends:
            if queue.sends:  # the first one leaves at once, and gets its row on the way
                self._journal.record(send)
            queue.sends.append(send)
        return True

    def post(self, action: SendMessage) -> asyncio.Future[Receipt] | None:
        """Queue a line that belongs to no turn; returns its receipt, None if the queue is full."""
        send = self._journal.create(action)
        return send.receipt if self.enqueue((send,)) else None

    @property
    def sends(self) -> list[Send]:
        return [send for queue in self._queues.values() for send in queue.sends]

    def on_wire(self, where: Conversation) -> list[Send]:
        """The sends there without a receipt that may have been delivered."""
        queue = self._queues.get(where)
        sends = queue.sends if queue else ()
        return [send for send in sends if send.state is not SendState.QUEUED]

    def unsent(self, where: Conversation) -> list[Send]:
        queue = self._queues.get(where)
        sends = queue.sends if queue else ()
        return [send for send in sends if send.state is SendState.QUEUED]

    def forget(self, note: SubjectErased) -> None:
        """Withdraw the waiting lines of no turn about the erased person or group. Their rows are
        erased; a line without a row is already leaving.
        """
        tagged = send_prefix_of_person(note.user) if note.user else None
        for send in self.sends:
            if send.turn_id or not send.recorded:
                continue
            by_id = tagged is not None and send.send_id.startswith(tagged)
            if by_id or note.is_named_in(send.action.words):
                self._journal.withdraw(send, FORGOTTEN)

    async def _work_off(self, where: Conversation, queue: _Queue) -> None:
        try:
            while queue.sends and not self._is_finished:
                send = self._next(queue.sends)
                try:
                    await self._deliver(send)
                except Exception as bug:  # fails this send alone, perhaps after its frame left
                    logger.exception("the outbox of %s goes on after a failure", where)
                    if not send.receipt.done():
                        self._give_up(send, f"bug: {type(bug).__name__}")
                queue.sends.remove(send)
        finally:
            del self._queues[where]
            if not self._queues:
                self._idle.set()

    def _next(self, sends: deque[Send]) -> Send:
        """The next send to leave. One that repeats recent words lets others pass, except later ones
        of its own turn, and so do those of jobs. None goes between the pieces of one answer.
        """
        if len(sends) == 1:
            return sends[0]
        for send in sends:
            if send.after is not None and send.after not in sends:
                return send
        passed: set[str] = set()
        of_job: Send | None = None
        for send in sends:
            is_bound = send.after is not None or send.turn_id in passed
            if not is_bound and not self._pacing.repeats(
                send.action.conversation, send.action.words
            ):
                if not send.yields:
                    return send
                of_job = of_job or send
            if send.turn_id:
                passed.add(send.turn_id)
        return of_job or sends[0]

    # --- the wire ---------------------------------------------------------------------------------

    async def _deliver(self, send: Send) -> None:
        """Complete a send, however long that takes; if the sender finishes meanwhile, it may stay
        QUEUED.
        """
        current_run.set(send.turn_id)  # another run may have started this worker
        before, send.after = send.after, None
        if before is not None:
            if before.state is not SendState.CONFIRMED:
                self._journal.withdraw(send, CUT_OFF)
            # Until now it waited for the one before, perhaps a long upload, not for QQ.
            send.at = self._clock.now()
        if send.state is not SendState.QUEUED:
            return
        if wait := self._pacing.delay(send.action, typing=send.pause):
            self._journal.record(send)
            await self._clock.sleep(wait)
        while send.state is SendState.QUEUED:
            if self._is_finished:
                return
            if self._clock.now() - send.at > MAX_AGE:
                self._journal.settle(send, SendState.DROPPED, Refused(TOO_LATE), reason=TOO_LATE)
                return
            await self._journal.mark_sending(send)
            connected = self._connected  # taken first: the account may connect during the attempt
            if not await self._put_on_wire(send):
                await self._wait_for(connected)

    async def _put_on_wire(self, send: Send) -> bool:
        """One attempt; False if it never reached the wire and may be repeated."""
        where, since = send.action.conversation, self._mutes.news
        try:
            message_id = await self._transport.send(send.action)
        except NotConnected as error:
            logger.info("cannot send to %s yet: %s", where, error)
            self._journal.change(send, SendState.QUEUED)
            return False
        except ActionRefused as error:
            return await self._refused(send, error, since=since)
        except ActionUnanswered as error:
            await self._look_for(send, str(error))
        else:
            self._confirm(send, message_id)
        return True

    async def _refused(self, send: Send, error: ActionRefused, *, since: int) -> bool:
        """Repeat it once in a simpler form if QQ may accept that; else settle it as refused."""
        where, refusal = send.action.conversation, judge_refusal(error.wording, error.retcode)
        logger.warning("not sent to %s: %s", where, error)
        if (plain := simplified(send.action, refusal.retry_without)) is not None:
            logger.info("once more to %s, without what was refused: %s", where, refusal.kind)
            send.action = plain
            return await self._put_on_wire(send)
        blocks = refusal.blocks_place and refusal.kind != MUTED
        if blocks:
            self.unreachable.begin(where, f"{refusal.kind}: {refusal.words}")
        elif refusal.blocks_place:
            self._mutes.suspect(where, since=since)
        receipt = Refused(refusal.reason, by_server=True, words=refusal.words, blocks_place=blocks)
        self._journal.settle(send, SendState.REFUSED, receipt, reason=refusal.full_reason)
        if blocks and not send.awaited:  # else its caller may try another form
            self.unreachable.tell(where)
        return True

    async def _wait_for(self, connected: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(MAX_AGE):
                await connected.wait()
        except TimeoutError:
            logger.debug("still not connected")

    async def _look_for(self, send: Send, reason: str) -> None:
        """Look for an unanswered send: an event of the account, or the history; else it is
        unconfirmed.
        """
        where = send.action.conversation
        send.state = SendState.UNKNOWN
        if send.found is None:
            await self._clock.sleep(LOOK_AFTER)
        if send.found is None:
            try:
                history = await self._transport.get_history(where)
                unexplained = self.unconfirmed.unexplained(history)
                self.unconfirmed.compare(unexplained, lambda _: [send])
            except TransportError as error:
                logger.debug("the history of %s cannot be looked at: %s", where, error)
        if send.found is not None:
            self._confirm(send, send.found)
            return
        logger.warning(
            "sent to %s without an answer, it may have been delivered: %s", where, reason
        )
        self._give_up(send, reason)

    def _confirm(self, send: Send, message_id: str) -> None:
        self.unconfirmed.confirm(send, message_id)
        self.unreachable.end(send.action.conversation)
        self._journal.settle(
            send, SendState.CONFIRMED, Confirmed(message_id), message_id=message_id
        )

    def _give_up(self, send: Send, reason: str) -> None:
        self.unconfirmed.add(send)
        self._journal.settle(send, SendState.UNKNOWN, Unknown(reason), reason=reason)


def simplified(action: SendMessage, leave_out: Iterable[Removable]) -> SendMessage | None:
    """The message without the first of these that it contains; None if it contains none, or nothing
    else. Mentioned people are called by name.
    """
    for what in leave_out:
        kind = Quote if what == "quote" else Mention
        if any(isinstance(segment, kind) for segment in action.segments):
            kept = tuple(_without(action.segments, kind))
            return SendMessage(action.conversation, kept) if kept else None
    return None


def _without(segments: Iterable[SentSegment], kind: type[Quote | Mention]) -> Iterator[SentSegment]:
    for segment in segments:
        if not isinstance(segment, kind):
            yield segment
        elif isinstance(segment, Mention) and segment.name:
            yield Text(f"@{segment.name}")


MAX_PLACES: Final = 5000
LONGEST: Final = 24 * 3600.0  # seconds after which a question may test it again


class _Unreachable(Struct):
    reason: str
    until: float
    is_told: bool = False


class UnreachablePlaces:
    """Conversations in which QQ refuses all messages and the bot can do nothing about it: it was
    removed from the group, or is not a friend of the person. No model is asked there until a sign
    of life.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._places = LRU[Conversation, _Unreachable](MAX_PLACES)
        self._tell: Callable[[Conversation, str], None] | None = None

    def follow(self, tell: Callable[[Conversation, str], None]) -> None:
        """Call `tell` with a conversation and the reason when it is to be reported. It must not
        wait or raise.
        """
        self._tell = tell

    def begin(self, where: Conversation, reason: str) -> None:
        """QQ refused a message there, and would refuse any other."""
        rest = self._places.get(where)
        is_told = rest is not None and rest.is_told
        self._places.keep(where, _Unreachable(reason, self._clock.monotonic() + LONGEST, is_told))

    def tell(self, where: Conversation) -> None:
        """A message was lost there, or a question held back: report why, the first time."""
        rest = self._places.get(where)
        if rest is not None and not rest.is_told:
            rest.is_told = True
            if self._tell is not None:
                self._tell(where, rest.reason)

    def end(self, where: Conversation) -> None:
        """A sign of life: a message arrived there, the bot joined, or an owner spoke there."""
        self._places.pop(where, None)

    def forget(self, account: int) -> None:
        """The account has connected and may have missed a sign of life, so the next question tests
        each place. Reports are not repeated.
        """
        for where, rest in self._places.items():
            if where.platform_id == account:
                rest.until = -math.inf

    def holds_in(self, where: Conversation) -> bool:
        """Whether no model is to be asked there."""
        rest = self._places.get(where) if self._places else None
        return rest is not None and rest.until > self._clock.monotonic()
