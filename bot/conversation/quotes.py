"""In the lane: whether a message that quotes something quotes the bot. Only QQ may know that."""

from __future__ import annotations

import logging
from typing import assert_never

from bot.conversation.lanes import Lanes
from bot.conversation.perception import Perception
from bot.conversation.put_off import PutOff
from bot.conversation.questions import Questions
from bot.conversation.tasks import Task, Work
from bot.domain.errors import NotConnected
from bot.policy.wake import NeedsQuoted, Wake

logger = logging.getLogger(__name__)


class Quotes:
    """Looks up what a question quotes, and puts it off where nobody can say now."""

    def __init__(
        self, *, perception: Perception, put_off: PutOff, questions: Questions, lanes: Lanes[Work]
    ) -> None:
        self._perception = perception
        self._put_off = put_off
        self._questions = questions
        self._lanes = lanes

    async def is_for_us(self, task: Task) -> bool:
        """Whether it is to be answered now."""
        match task.verdict:
            case Wake():
                return True
            case NeedsQuoted(message_id=message_id):
                return await self._quotes_the_bot(task, message_id)
            case _:
                assert_never(task.verdict)

    async def _quotes_the_bot(self, task: Task, message_id: str) -> bool:
        try:
            quotes_the_bot = await self._perception.quotes_the_bot(task.message, message_id)
        except NotConnected as error:
            logger.info("message %s waits for a connection: %s", task.message.message_id, error)
            self._put_off.add(task)
            return False
        if not quotes_the_bot:
            self._questions.let_be(task)
        # While stopping it is left in the journal, for the next start.
        return quotes_the_bot and not self._lanes.finishing
