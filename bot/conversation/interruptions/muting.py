"""The bot is muted somewhere: the runs there end, since nobody would hear what comes of them.

Words that are ready are still sent: the mute may be over before they are. What waits is not asked
when its turn comes (`intake/restraint`); a run that waits for an owner's word may still wait when
the mute is lifted.
"""

from __future__ import annotations

import logging

from bot.conversation.intake.hearing import Hearing
from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.restraint import MUTED
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.questions import Questions
from bot.conversation.tasks import Task, Work
from bot.conversation.turns.live import LiveTurns
from bot.domain.events import Conversation, Muted
from bot.policy.wake import Observe

logger = logging.getLogger(__name__)


class Muting:
    """Takes mutes, and ends the turns that go on there."""

    def __init__(
        self,
        *,
        mutes: Mutes,
        live: LiveTurns,
        lanes: Lanes[Work],
        questions: Questions,
        hearing: Hearing,
    ) -> None:
        self._mutes = mutes
        self._live = live
        self._lanes = lanes
        self._questions = questions
        self._hearing = hearing

    def take(self, event: Muted) -> None:
        """Somebody was muted, or may speak again."""
        where = event.conversation
        self._mutes.take(event)
        if event.mutes_the_bot and self._mutes.holds_in(where):
            self._end(where)

    def _end(self, where: Conversation) -> None:
        for live in self._live.at(where):
            if not live.is_thinking:
                continue
            logger.info("the run of %s in %s ends: muted", live.message.message_id, where)
            live.stop(muted=True)
            if live.turn is not None:
                self._hearing.judge(live.message, Observe(MUTED))
                continue
            question = live.message  # it is still being prepared

            def is_meant(work: Work, question: object = question) -> bool:
                return isinstance(work, Task) and work.message is question

            for work in filter(is_meant, self._lanes.at(where)):
                if isinstance(work, Task):
                    self._questions.let_be(work, MUTED)
            self._lanes.drop_current(where, is_meant)
