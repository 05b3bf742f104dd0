"""All active work of a conversation, and its end: runs, suspended runs, queued sends, waiting
questions.
"""

from __future__ import annotations

from collections.abc import Collection

from bot.chat.active_turn import ActiveTurns
from bot.chat.lanes import Lanes
from bot.chat.question_queue import QuestionQueue
from bot.chat.suspended import SuspendedTurns
from bot.chat.tasks import Task, Work
from bot.chat.turn import Turns
from bot.outbox.outbox import Outbox
from bot.policy.wake import Silence
from frostagent.types.conversation import Conversation
from frostagent.types.runs import SuspendedRun


class ActiveWork:
    """Finds the active work of people, and ends it."""

    def __init__(
        self,
        *,
        live: ActiveTurns,
        turns: Turns,
        suspensions: SuspendedTurns,
        lanes: Lanes[Work],
        question_queue: QuestionQueue,
        outbox: Outbox,
    ) -> None:
        self._live = live
        self._turns = turns
        self._suspensions = suspensions
        self._lanes = lanes
        self._question_queue = question_queue
        self._outbox = outbox

    def askers(self, where: Conversation) -> frozenset[int]:
        """Those whose questions something goes on about there."""
        unsent = self._outbox.unsent(where)
        return frozenset(
            [
                *(live.asker for live in self._live.at(where)),
                *(run.asker.user_id for run in self._suspended(where).values()),
                *(turn.asker for turn in self._live.ended(where) if turn.turn_id in unsent),
                *(task.message.sender.user_id for task in self._asked(where)),
            ]
        )

    def end(self, where: Conversation, askers: Collection[int], *, waiting: bool) -> int:
        """End what goes on about their questions; how much that was. Their questions that wait only
        where nothing else goes on, or `waiting` are meant as well.
        """
        ended = 0
        for live in self._live.at(where):
            if live.asker in askers:
                live.stop()
                ended += live.turn is not None  # else its question still waits
        for turn_id, run in self._suspended(where).items():
            if run.asker.user_id in askers:
                self._turns.stop_waiting(turn_id)
                ended += 1
        over = {turn.turn_id for turn in self._live.ended(where) if turn.asker in askers}
        ended += self._outbox.withdraw(where, over) if over else 0
        return ended + (self._drop(where, askers) if waiting or not ended else 0)

    def _suspended(self, where: Conversation) -> dict[str, SuspendedRun]:
        waiting = self._suspensions.waiting().items()
        return {turn_id: run for turn_id, run in waiting if run.conversation == where}

    def _asked(self, where: Conversation) -> list[Task]:
        """Those that wait, or that nobody knows yet whether they are for us."""
        live = [live.message for live in self._live.at(where) if live.turn is not None]
        tasks = (work for work in self._lanes.at(where) if isinstance(work, Task))
        return [task for task in tasks if task.message not in live]

    def _drop(self, where: Conversation, askers: Collection[int]) -> int:
        meant = [task for task in self._asked(where) if task.message.sender.user_id in askers]
        for task in meant:
            self._question_queue.dismiss(task, Silence.STOPPED)

        def is_meant(work: Work) -> bool:
            return any(work is task for task in meant)

        return self._lanes.drop_waiting(where, is_meant) + self._lanes.drop_current(where, is_meant)
