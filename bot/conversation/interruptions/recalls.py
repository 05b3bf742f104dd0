"""A message that was recalled: nobody reads it, and nobody answers it any more."""

from __future__ import annotations

import logging

from bot.conversation.intake.hearing import Hearing
from bot.conversation.intake.seen import SeenMessages
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.put_off import PutOff
from bot.conversation.queue.questions import Questions
from bot.conversation.tasks import Task, Work
from bot.conversation.turns.live import LiveTurns
from bot.conversation.turns.suspensions import Suspensions
from bot.conversation.turns.turn import Turns
from bot.domain.events import MessageRecalled

logger = logging.getLogger(__name__)


class Recalls:
    """Takes a message back wherever it is by now."""

    def __init__(
        self,
        *,
        seen: SeenMessages,
        hearing: Hearing,
        put_off: PutOff,
        questions: Questions,
        suspensions: Suspensions,
        turns: Turns,
        live: LiveTurns,
        lanes: Lanes[Work],
    ) -> None:
        self._seen = seen
        self._hearing = hearing
        self._put_off = put_off
        self._questions = questions
        self._suspensions = suspensions
        self._turns = turns
        self._live = live
        self._lanes = lanes

    def take(self, event: MessageRecalled) -> None:
        """Forget it; its turn, if there is one, leaves nothing behind."""
        where, message_id = event.conversation, event.message_id
        self._hearing.forget(where, message_id)
        self._seen.forget(where, message_id)
        self._suspensions.abandon(where, message_id)
        self._put_off.drop(where, message_id)

        def left_of(work: Work) -> Work | None:
            if isinstance(work, Task):
                return self._questions.recalled(work, message_id)
            is_about = work.question is not None and work.question.message_id == message_id
            return None if is_about else work

        def is_gone(work: Work) -> bool:
            if left_of(work) is not None:
                return False
            if (question := work.message if isinstance(work, Task) else work.question) is not None:
                self._turns.disown(question)
            return True

        for live in self._live.at(where):
            live.recall(message_id)
        if self._lanes.revise(where, left_of) + self._lanes.drop_current(where, is_gone):
            logger.info("message %s in %s was recalled: not answered", message_id, where)
