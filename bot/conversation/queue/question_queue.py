"""Questions that were taken: each gets a place in its lane, or is heard like any other message."""

from __future__ import annotations

import logging
from collections.abc import Collection

from bot.conversation.intake.active_conversations import ActiveConversations
from bot.conversation.intake.deduplicator import Past, SeenMessages
from bot.conversation.intake.message_log import MessageLog
from bot.conversation.intake.server_clock import ServerClock
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.rate_limiter import RateLimiter
from bot.conversation.tasks import Task, Work
from bot.conversation.turns.turn_journal import TurnJournal
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.policy.wake import NeedsQuoted, Silence, Wake, Why

logger = logging.getLogger(__name__)


class QuestionQueue:
    """Makes tasks of messages, and queues each in its lane."""

    def __init__(
        self,
        *,
        lanes: Lanes[Work],
        seen: SeenMessages,
        server_clock: ServerClock,
        active_conversations: ActiveConversations,
        rate_limiter: RateLimiter,
        message_log: MessageLog,
        turn_journal: TurnJournal,
        clock: Clock,
    ) -> None:
        self._lanes = lanes
        self._seen = seen
        self._server_clock = server_clock
        self._active_conversations = active_conversations
        self._rate_limiter = rate_limiter
        self._message_log = message_log
        self._turn_journal = turn_journal
        self._clock = clock

    def task(self, message: MessageReceived, verdict: Wake | NeedsQuoted) -> Task:
        """The task, with what is known of whether an earlier process did it."""
        told = not self._server_clock.is_missed(message)
        return Task(
            message,
            verdict,
            self._clock.now(),
            told=self._seen.is_earlier(message),
            lost=self._seen.past_of(message, told=told) is Past.LOST,
        )

    def line_up(self, task: Task) -> None:
        """A lane for it, or a word to its asker that nobody comes to it.

        One that is older than this process may have been answered: what QQ shows is looked at
        first, once.
        """
        message, where = task.message, task.message.conversation
        if self._lanes.finishing:
            logger.info(
                "message %s in %s came while stopping: for the next start",
                message.message_id,
                where,
            )
            return
        is_shown = self._server_clock.is_missed(message) or self._lanes.is_held(where)
        if self._seen.is_earlier(message) and not is_shown:
            self._active_conversations.look_at(where)
        if isinstance(task.verdict, Wake):
            if why := self._rate_limiter.against(task):  # he, or the group, asks too often?
                self.let_be(task, why)
                return
            if not task.wake.is_uncalled:  # who called nobody is in nobody's way
                self._make_room(where)
        if self._lanes.put(where, task):
            return
        self.let_be(task, Silence.FULL)
        self._tell_of(task)

    def put_back(self, task: Task) -> None:
        """Its lane again, for one that had a place there: the oldest makes room, and is told."""
        if self._lanes.finishing:
            return
        self._make_room(task.message.conversation)
        if not self._lanes.put(task.message.conversation, task):
            self.let_be(task, Silence.FULL)
            self._tell_of(task)

    def _make_room(self, where: Conversation) -> None:
        """In a full lane the newest questions count: nobody waits any more for the oldest."""
        oldest = self._lanes.displace(where, lambda work: isinstance(work, Task))
        if isinstance(oldest, Task):
            self.let_be(oldest, Silence.FULL)
            self._tell_of(oldest)

    def _tell_of(self, task: Task) -> None:
        if isinstance(task.verdict, Wake) and not task.wake.is_uncalled:
            self._rate_limiter.turn_away(task.message)

    def outgrow(self, line: MessageReceived) -> None:
        """A question of somebody whose later ones fill what is answered in one go: it is heard, and
        shown to be no more than that.
        """
        self._message_log.overhear(line, Silence.FULL)
        self._rate_limiter.turn_away(line)

    def let_be(self, task: Task, why: Why = "") -> None:
        """Nobody answers it after all, and `why` where it was for the bot: it is heard like any
        other message.
        """
        self.give_up(task)
        if not task.lost:
            for line in task.said:
                self._message_log.overhear(line, "" if line in task.beside else why)

    def unanswered(self, task: Task, answered: Collection[str]) -> Task | None:
        """The rest of a question without those of its lines that were answered before; they
        are heard.
        """
        left = task.without(lambda line: line.message_id in answered)
        if left is None:
            self.let_be(task)
        elif left is not task:
            for line in task.said:
                if line.message_id in answered:
                    self._message_log.overhear(line)
        return left

    def recalled(self, task: Task, message_id: str) -> Task | None:
        """The rest of a question whose line of this id was taken back; None where nobody asks
        any more: what else belonged to it leaves with it, as it does where it was answered already.
        """
        left = task.without(lambda line: line.message_id == message_id)
        if left is None:
            self.give_up(task)
            self._message_log.let_go(line for line in task.said if line.message_id != message_id)
        return left

    def give_up(self, task: Task) -> None:
        """Close the turn that it was to repeat, if there is one."""
        if task.retry is not None:
            self._turn_journal.give_up(task.message.conversation, task.retry.turn_id)
