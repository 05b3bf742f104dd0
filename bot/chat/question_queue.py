"""Questions from their arrival to their turn: a place in a lane, or a reason why they get no
answer.

A question waits in its lane, or, if its account is disconnected, for that account
(`DeferredQuestions`). If it quotes a message, its turn looks up whether that is the bot's
(`Quotes`): only QQ may know.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import assert_never

from msgspec.structs import replace

from bot.chat.active_conversations import ActiveConversations
from bot.chat.coalescer import Coalescer
from bot.chat.deduplicator import SeenMessages
from bot.chat.lanes import Lanes
from bot.chat.message_log import MessageLog
from bot.chat.perception import Perception
from bot.chat.rate_limiter import RateLimiter
from bot.chat.tasks import YOUNG, Facts, Task, Work, make_task
from bot.chat.turn_journal import TurnJournal
from bot.chat.wake_classifier import WakeClassifier
from bot.core.conversation import Conversation
from bot.core.errors import NotConnected
from bot.core.events import MessageReceived
from bot.core.server_clock import ServerClock
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Silence, Verdict, Wake, Why
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)


class QuestionQueue:
    """Takes messages with their verdicts: queues questions with all that belongs to them, and
    records other messages.
    """

    def __init__(
        self,
        *,
        lanes: Lanes[Work],
        coalescer: Coalescer,
        seen: SeenMessages,
        server_clock: ServerClock,
        active_conversations: ActiveConversations,
        rate_limiter: RateLimiter,
        message_log: MessageLog,
        turn_journal: TurnJournal,
    ) -> None:
        self._lanes = lanes
        self._coalescer = coalescer
        self._seen = seen
        self._server_clock = server_clock
        self._active_conversations = active_conversations
        self._rate_limiter = rate_limiter
        self._message_log = message_log
        self._turn_journal = turn_journal

    # --- in -----------------------------------------------------------------------------------

    def receive(self, message: MessageReceived, verdict: Verdict, facts: Facts) -> bool:
        """Queue it, record it as overheard, or ignore it. As the last stage it returns True."""
        match verdict:
            case Wake() | NeedsQuoted():
                task = make_task(message, verdict, facts)
                # A lost one is overheard: the next process does not answer it either.
                self._message_log.observe(message, verdict, overheard=task.lost)
                self.enqueue(task, is_earlier=task.told)
            case Observe(reason=reason):
                # A question that is not answered, or was before, joins none.
                joins = not reason and self._coalescer.join_message(message)
                self._message_log.observe(message, verdict, overheard=not joins)
            case Ignore(reason=reason):
                self._message_log.ignore(message, reason)
            case _:
                assert_never(verdict)
        return True

    def enqueue(self, task: Task, *, is_earlier: bool | None = None) -> None:
        """Merge it with its asker's waiting question, or queue it in its lane. `is_earlier` is
        whether it may be older than this process, if known.
        """
        if task.may_grow and not self._lanes.finishing:
            task = self._coalescer.add_earlier_lines(task)
            if self._coalescer.merge_question(task):
                return
        if is_earlier is None:
            is_earlier = self._seen.is_earlier(task.message)
        self._enqueue_in_lane(task, is_earlier=is_earlier)

    def rejoin_message(self, message: MessageReceived) -> bool:
        """Add an unread message recorded as overheard to its sender's waiting question; False if
        there is none.
        """
        if not self._coalescer.join_message(message):
            return False
        self._message_log.mark_joined(message)
        return True

    def requeue(self, task: Task) -> None:
        """Queue again a question that had a place; in a full lane the oldest is turned away."""
        if self._lanes.finishing:
            return
        self._make_room(task.message.conversation)
        self._put(task)

    def _enqueue_in_lane(self, task: Task, *, is_earlier: bool) -> None:
        """Queue it in its lane, or tell its asker that it is not answered. One older than this
        process may have been answered: QQ's history is checked first, once.
        """
        message, where = task.message, task.message.conversation
        if self._lanes.finishing:
            logger.info(
                "message %s in %s came while stopping: for the next start",
                message.message_id,
                where,
            )
            return
        if is_earlier and not (self._server_clock.is_missed(message) or self._lanes.is_held(where)):
            self._active_conversations.look_at(where)
        if isinstance(task.verdict, Wake):
            # within the rates of the person and the group?
            if why := self._rate_limiter.admit(task, is_earlier=is_earlier):
                self.dismiss(task, why)
                return
            if not task.wake.is_uncalled:  # an uncalled one displaces none
                self._make_room(where)
        self._put(task)

    def _put(self, task: Task) -> None:
        if not self._lanes.put(task.message.conversation, task):
            self._turn_away(task)

    def _make_room(self, where: Conversation) -> None:
        """In a full lane the newest questions count: turn the oldest away."""
        oldest = self._lanes.displace(where, lambda work: isinstance(work, Task))
        if isinstance(oldest, Task):
            self._turn_away(oldest)

    def _turn_away(self, task: Task) -> None:
        self.dismiss(task, Silence.FULL)
        is_asked = task.scheduled is None and not task.wake.is_uncalled
        if isinstance(task.verdict, Wake) and is_asked:
            self._rate_limiter.turn_away(task.message)

    # --- out ----------------------------------------------------------------------------------

    def dismiss(self, task: Task, why: Why = "") -> None:
        """Do not answer it; it is overheard. `why` is recorded for lines that called the bot."""
        self.give_up(task)
        if task.scheduled is not None:
            task.scheduled.dismissed(why)
        elif not task.lost:
            for line in task.said:
                self._message_log.overhear(line, "" if line in task.beside else why)

    def without_answered(self, task: Task, answered: Collection[str]) -> Task | None:
        """The question without lines that were answered before, which become overheard; None if
        none are left.
        """
        left = task.without(lambda line: line.message_id in answered)
        if left is None:
            self.dismiss(task)
        elif left is not task:
            for line in task.said:
                if line.message_id in answered:
                    self._message_log.overhear(line)
        return left

    def without_recalled(
        self, task: Task, is_recalled: Callable[[MessageReceived], bool]
    ) -> Task | None:
        """The question without recalled lines; None if no other line calls the bot: then the rest
        of it leaves, too.
        """
        left = task.without(is_recalled)
        if left is None:
            self.give_up(task)
            self._message_log.mark_gone(line for line in task.said if not is_recalled(line))
        return left

    def give_up(self, task: Task) -> None:
        """Close the turn that it was to repeat, if any."""
        if task.retry is not None:
            self._turn_journal.give_up(task.message.conversation, task.retry.turn_id)


class DeferredQuestions:
    """Questions whose account is disconnected, in order. Once it is back they are classified again;
    those that are too old are only observed.
    """

    def __init__(
        self,
        *,
        wake_classifier: WakeClassifier,
        coalescer: Coalescer,
        question_queue: QuestionQueue,
        lanes: Lanes[Work],
        clock: Clock,
    ) -> None:
        self._wake_classifier = wake_classifier
        self._coalescer = coalescer
        self._question_queue = question_queue
        self._lanes = lanes
        self._clock = clock
        self._tasks: list[Task] = []

    def add(self, task: Task) -> None:
        self._tasks.append(task)

    def enqueue_of(self, account: int) -> None:
        """The account is connected: queue its questions, unless the lanes are finishing."""
        if self._lanes.finishing:
            return
        for task in self._pop(lambda message: message.self_id == account):
            verdict = self._verdict(task)
            if isinstance(verdict, Wake | NeedsQuoted) and self._is_young(task):
                self._question_queue.enqueue(replace(task, verdict=verdict))
            elif not self._coalescer.join_message(task.message):
                self._question_queue.dismiss(task, _why_not(verdict))

    def _is_young(self, task: Task) -> bool:
        return self._clock.now() - task.since < YOUNG

    def _verdict(self, task: Task) -> Verdict:
        """The verdict by today's rules; an interrupted turn is repeated regardless of them."""
        if task.message.cap:  # a scheduled task, which no one said
            return Wake("job")
        verdict = self._wake_classifier.judge_by_rules(task.called)
        if task.retry is None or isinstance(verdict, Wake):
            return verdict
        joined = isinstance(verdict, Observe) and verdict.may_join  # no line had called the bot
        return Wake("chance", weak=True) if joined else task.verdict

    def revise(self, left_of: Callable[[Task], Task | None]) -> None:
        """Replace each question; None removes it."""
        left = map(left_of, self._tasks)
        self._tasks = [task for task in left if task is not None]

    def _pop(self, meant: Callable[[MessageReceived], bool]) -> list[Task]:
        taken = [task for task in self._tasks if meant(task.message)]
        self._tasks = [task for task in self._tasks if not meant(task.message)]
        return taken


def _why_not(verdict: Verdict) -> Why:
    """Why it is only observed; empty if it called no one."""
    match verdict:
        case Wake():
            return "" if verdict.is_uncalled else Silence.STALE
        case Observe(reason=reason) | Ignore(reason=reason):
            return reason
        case NeedsQuoted():
            return ""


class Quotes:
    """Looks up what a question quotes, and defers the question if the server
    cannot be asked now.
    """

    def __init__(
        self,
        *,
        perception: Perception,
        deferred: DeferredQuestions,
        question_queue: QuestionQueue,
        message_log: MessageLog,
        lanes: Lanes[Work],
    ) -> None:
        self._perception = perception
        self._deferred = deferred
        self._question_queue = question_queue
        self._message_log = message_log
        self._lanes = lanes

    async def resolve(self, task: Task) -> Task | None:
        """The task with a wake as its verdict; None if it is not to be answered now."""
        match task.verdict:
            case Wake():
                return task
            case NeedsQuoted():
                return await self._look_up(task, task.verdict)
            case _:
                assert_never(task.verdict)

    async def _look_up(self, task: Task, verdict: NeedsQuoted) -> Task | None:
        try:
            is_ours = await self._perception.quotes_the_bot(task.message, verdict.message_id)
        except NotConnected as error:
            logger.info("message %s waits for a connection: %s", task.message.message_id, error)
            self._deferred.add(task)
            return None
        wake = Wake("quote") if is_ours else verdict.otherwise
        if isinstance(wake, Observe):
            self._question_queue.dismiss(task)
            return None
        self._message_log.judge(task.message, wake)
        # While finishing it stays in the journal, for the next start.
        return None if self._lanes.finishing else replace(task, verdict=wake, looked_up=True)
