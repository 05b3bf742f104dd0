"""Questions that were taken: each finds a place in its lane, or is heard like any other message."""

from __future__ import annotations

import logging

from bot.conversation.ages import Ages
from bot.conversation.hearing import Hearing
from bot.conversation.lanes import Lanes
from bot.conversation.ledger import Ledger
from bot.conversation.overflow import Overflow
from bot.conversation.places import Places
from bot.conversation.seen import Past, SeenMessages
from bot.conversation.tasks import Task, Work
from bot.domain.events import MessageReceived
from bot.domain.ports import Clock
from bot.policy.wake import NeedsQuoted, Wake

logger = logging.getLogger(__name__)


class Questions:
    """Makes tasks of messages, and finds a lane for each."""

    def __init__(
        self,
        *,
        lanes: Lanes[Work],
        seen: SeenMessages,
        ages: Ages,
        places: Places,
        overflow: Overflow,
        hearing: Hearing,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self._lanes = lanes
        self._seen = seen
        self._ages = ages
        self._places = places
        self._overflow = overflow
        self._hearing = hearing
        self._ledger = ledger
        self._clock = clock

    def task(self, message: MessageReceived, verdict: Wake | NeedsQuoted) -> Task:
        """The task, with what is known of whether an earlier process did it."""
        told = not self._ages.is_missed(message)
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
        is_shown = self._ages.is_missed(message) or self._lanes.is_held(where)
        if self._seen.is_earlier(message) and not is_shown:
            self._places.look_at(where)
        if self._lanes.put(where, task):
            return
        self.let_be(task)
        if isinstance(task.verdict, Wake):
            self._overflow.take(message)

    def let_be(self, task: Task, why: str = "") -> None:
        """Nobody answers it after all, and `why` where it was for the bot: it is heard like any
        other message.
        """
        self.give_up(task)
        if not task.lost:
            self._hearing.overhear(task.message, why)

    def give_up(self, task: Task) -> None:
        """Close the turn that it was to repeat, if there is one."""
        if task.retry is not None:
            self._ledger.give_up(task.retry.turn_id)
