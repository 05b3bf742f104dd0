"""In the lane: whether a message that quotes something quotes the bot. Only QQ may know that."""

from __future__ import annotations

import logging
from typing import assert_never

from msgspec.structs import replace

from bot.conversation.context.perception import Perception
from bot.conversation.intake.message_log import MessageLog
from bot.conversation.queue.deferred import DeferredQuestions
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.question_queue import QuestionQueue
from bot.conversation.tasks import Task, Work
from bot.domain.errors import NotConnected
from bot.policy.wake import NeedsQuoted, Observe, Wake

logger = logging.getLogger(__name__)


class Quotes:
    """Looks up what a question quotes, and puts it off where nobody can say now."""

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

    async def settled(self, task: Task) -> Task | None:
        """The task with a wake for its verdict; None where it is not to be answered now."""
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
            self._question_queue.let_be(task)
            return None
        self._message_log.judge(task.message, wake)
        # While stopping it is left in the journal, for the next start.
        return None if self._lanes.finishing else replace(task, verdict=wake)
