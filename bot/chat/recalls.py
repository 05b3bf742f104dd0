"""A message that was recalled: nobody reads it, and nobody answers it any more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from bot.chat.active_turn import ActiveTurns
from bot.chat.lanes import Lanes
from bot.chat.question_queue import QuestionQueue
from bot.chat.tasks import Task, Work
from bot.chat.turn import Turns
from bot.core.events import MessageRecalled
from bot.memory.history import History
from frostagent.types.conversation import Conversation

logger = logging.getLogger(__name__)

LetGo: TypeAlias = Callable[[Conversation, str], None]
"""Lets go of the message of this id."""


class Recalls:
    """Takes a message back wherever it is by now; first those `let_go` of it."""

    def __init__(
        self,
        *,
        let_go: Sequence[LetGo],
        history: History,
        question_queue: QuestionQueue,
        turns: Turns,
        live: ActiveTurns,
        lanes: Lanes[Work],
    ) -> None:
        self._let_go = let_go
        self._history = history
        self._question_queue = question_queue
        self._turns = turns
        self._live = live
        self._lanes = lanes

    def take(self, event: MessageRecalled) -> None:
        """Forget it; its turn, if there is one, leaves nothing behind."""
        where, message_id = event.conversation, event.message_id
        for let_go in self._let_go:
            let_go(where, message_id)
        if event.user_id == event.self_id:  # said by this process or by an earlier one
            self._history.doubt(where)

        def left_of(work: Work) -> Work | None:
            if isinstance(work, Task):
                return self._question_queue.without_recalled(work, message_id)
            is_about = work.question is not None and work.question.message_id == message_id
            return None if is_about else work

        def is_gone(work: Work) -> bool:
            if left_of(work) is not None:
                return False
            if (question := work.message if isinstance(work, Task) else work.question) is not None:
                self._turns.disown(question)
            return True

        for live in self._live.at(where):
            live.recall(message_id, self._history.own(where, message_id))
        if self._lanes.revise(where, left_of) + self._lanes.drop_current(where, is_gone):
            logger.info("message %s in %s was recalled: not answered", message_id, where)
