"""Lanes that were held until QQ shows what happened in their places meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from bot.conversation.intake.seen import SeenMessages
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.put_off import PutOff
from bot.conversation.queue.questions import Questions
from bot.conversation.tasks import Resume, Work
from bot.domain.events import Conversation, MessageReceived
from bot.policy.answered_questions import answered_ids, history_order, quoted_ids

logger = logging.getLogger(__name__)


class HeldLanes:
    """Lets them go on by what a history shows."""

    def __init__(
        self, *, lanes: Lanes[Work], seen: SeenMessages, put_off: PutOff, questions: Questions
    ) -> None:
        self._lanes = lanes
        self._seen = seen
        self._put_off = put_off
        self._questions = questions

    def go_on(
        self, where: Conversation, history: Sequence[MessageReceived], accounted: Collection[str]
    ) -> None:
        """Let a lane go on: in the order in which QQ has what was said, without what was answered.

        Own words in the history whose ids are not `accounted` for are an earlier process's.
        """
        place_of = history_order(history)
        now, before = (
            quoted_ids(history, accounted=accounted),
            answered_ids(history, accounted=accounted),
        )

        def unanswered(work: Work) -> Work | None:
            if isinstance(work, Resume):
                return work
            return self._questions.unanswered(work, before if work.may_be_answered else now)

        if before and self._lanes.revise(where, unanswered):
            logger.info("questions in %s are not answered: they were, before", where)
        self._seen.show(where, history)
        self._lanes.release(
            where, order=lambda work: place_of(None if isinstance(work, Resume) else work.message)
        )

    def put_off(self, where: Conversation) -> None:
        """Its account is gone again: what is older than this process waits until QQ can show what
        became of it.
        """

        def waits(work: Work) -> bool:
            if isinstance(work, Resume) or not self._seen.is_earlier(work.message):
                return False
            self._put_off.add(work)
            return True

        self._lanes.drop_waiting(where, waits)
