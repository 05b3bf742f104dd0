"""Cancels waiting questions of a person or a group whose data is erased.

Such a question's turn would open after the erasure and keep the words again. A turn that has begun
goes on: the journal takes nothing more of it. A run that waits for an approval and has read the
person's words would show them to the model again: it ends, and its asker is told to ask again.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bot.chat.active_turn import ActiveTurns
from bot.chat.lanes import Lanes
from bot.chat.question_queue import DeferredQuestions
from bot.chat.suspended import SuspendedTurns
from bot.chat.tasks import Task, Work
from bot.core.erasure import SubjectErased
from bot.core.events import MessageReceived
from bot.core.ports import Store
from bot.outbox.delivery import Postbox
from bot.policy.fallback_replies import LOST, in_question_language, is_quoted
from frostagent.types.conversation import Conversation


class ErasureCancel:
    """Cancels questions in lanes, deferred ones, and runs that wait for an approval."""

    def __init__(
        self,
        *,
        lanes: Lanes[Work],
        live: ActiveTurns,
        deferred: DeferredQuestions,
        suspensions: SuspendedTurns,
        store: Store,
        postbox: Postbox,
        put_back: Callable[[Task], None],
    ) -> None:
        self._put_back = put_back
        self._store = store
        self._postbox = postbox
        self._lanes = lanes
        self._live = live
        self._deferred = deferred
        self._suspensions = suspensions

    async def forget(self, note: SubjectErased) -> None:
        """Questions that this person, or anybody in this group, had `said` by then wait no more,
        unless they were taken `since` (by our clock), nor do those whose turns have left the
        journal.
        """
        said = math.inf if note.said is None else note.said
        since = math.inf if note.since is None else note.since

        def is_theirs(message: MessageReceived) -> bool:
            if message.time > said:
                return False
            where = message.conversation
            is_there = where.is_group and where.session_id == note.group
            return is_there or 0 != message.sender.user_id == note.user

        def left_of(task: Task) -> Task | None:
            return task if task.since >= since else task.without(is_theirs)

        self._suspensions.give_up(lambda asked: asked.time <= since and is_theirs(asked))
        self._deferred.revise(left_of)
        for where in self._lanes.places:
            self._drop(where, left_of)
        await self._give_up_readers()

    async def _give_up_readers(self) -> None:
        waiting = list(self._suspensions.waiting())
        if not waiting or not await self._store.commit():
            return
        lost = [one for one in waiting if await self._store.spoken(one) is None]
        if not await self._store.commit():  # it may be that none could be read
            return
        for turn_id in lost:
            if (question := self._suspensions.question(turn_id)) is None:
                continue  # somebody's word came meanwhile
            self._suspensions.give_up(question.__eq__)
            quote = question.message_id if is_quoted(question) else ""
            self._postbox.post(
                question.conversation, in_question_language(LOST, question), quote=quote
            )

    def _drop(self, where: Conversation, left: Callable[[Task], Task | None]) -> None:
        begun = [live.message for live in self._live.at(where) if live.turn is not None]
        rest: list[Task] = []

        def left_of(work: Work) -> Work | None:
            if not isinstance(work, Task) or work.message in begun:
                return work
            return left(work)

        def is_changed(work: Work) -> bool:
            kept = left_of(work)
            if isinstance(kept, Task) and kept is not work:
                rest.append(kept)
            return kept is not work

        self._lanes.revise(where, left_of)
        self._lanes.drop_current(where, is_changed)
        for task in rest:  # what was said since waits once more
            self._put_back(task)
