"""All active work, and the only way to cancel it: runs, suspended runs, queued sends, drafts and
waiting questions.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from functools import partial
from operator import is_
from typing import TYPE_CHECKING

from bot.approvals.tool_calls import ToolApprovals
from bot.chat.active_turn import ActiveTurn, ActiveTurns
from bot.chat.cancellation import CONSEQUENCES, Consequences, Fate, Reason, Selector
from bot.chat.lanes import Lanes
from bot.chat.message_log import MessageLog
from bot.chat.question_queue import DeferredQuestions, QuestionQueue
from bot.chat.suspended import SuspendedTurns
from bot.chat.tasks import Resume, Task, Work
from bot.chat.turn import Turns
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.events import MessageReceived
from bot.core.ports import Store
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.outbox.outbox import Outbox
from bot.outbox.shadow import Shadow
from bot.policy.fallback_replies import in_question_language, is_quoted
from bot.policy.wake import Observe
from bot.recap import Recaps
from frostagent.types.ports import Clock

if TYPE_CHECKING:  # only with BOT_LINKS
    from bot.links import LinkSummaries

logger = logging.getLogger(__name__)

LOOK = 5.0  # seconds between two checks for expired approvals


class ActiveWork:
    """Finds active work, and cancels it. At shutdown the lanes cancel work in progress themselves,
    without a reason, which `Turns` takes to mean a shutdown.
    """

    def __init__(
        self,
        *,
        live: ActiveTurns,
        turns: Turns,
        suspensions: SuspendedTurns,
        deferred: DeferredQuestions,
        lanes: Lanes[Work],
        question_queue: QuestionQueue,
        message_log: MessageLog,
        history: History,
        store: Store,
        outbox: Outbox,
        shadow: Shadow,
        postbox: Postbox,
        approvals: ToolApprovals,
        clock: Clock,
        links: LinkSummaries | None = None,
        recaps: Recaps | None = None,
    ) -> None:
        self._links = links
        self._recaps = recaps
        self._live = live
        self._turns = turns
        self._suspensions = suspensions
        self._deferred = deferred
        self._lanes = lanes
        self._question_queue = question_queue
        self._message_log = message_log
        self._history = history
        self._store = store
        self._outbox = outbox
        self._shadow = shadow
        self._postbox = postbox
        self._approvals = approvals
        self._clock = clock

    def askers(self, where: Conversation) -> frozenset[int]:
        """The people whose questions are active there; 0 for a recap that nobody asked for."""
        unsent = self._outbox.unsent(where)
        return frozenset(
            [
                *(live.asker for live in self._live.at(where)),
                *self._suspensions.askers(where),
                *(turn.asker for turn in self._live.ended(where) if turn.turn_id in unsent),
                *(task.message.sender.user_id for task in self._before_their_turns(where)),
                *(self._links.askers(where) if self._links is not None else ()),
                *((0,) if self._recaps is not None and where in self._recaps.unasked() else ()),
            ]
        )

    def cancel(self, selector: Selector, reason: Reason) -> int:
        """Cancel the selected work as `CONSEQUENCES` says; returns how many pieces ended."""
        then = CONSEQUENCES[reason]
        ended = self._cancel_suspended(selector, then)
        if self._links is not None and selector.turn_id is None:
            ended += self._links.cancel(selector.selects)
        if self._recaps is not None and selector.turn_id is None:
            for where in self._recaps.unasked():
                if selector.selects_question(where, "", 0):
                    self._recaps.stop(where)
                    ended += 1
        if then.cuts:
            self._deferred.revise(lambda task: self._rest_of(task, selector, then))
        if then.redacts and selector.where is not None and selector.message_id is not None:
            self._shadow.recall(selector.where, selector.message_id)
            self._redact_runs(selector.where, selector.message_id)
        for where in self._places(selector):
            if then.run is Fate.ENDS:
                ended += self._end_runs(where, selector, reason)
            if then.withdraws_sends:
                ended += self._withdraw_sends(where, selector)
            if then.waiting_why and (selector.with_waiting or not ended):
                ended += self._end_waiting(where, selector, then)
            if then.cuts:
                ended += self._cut_questions(where, selector, reason)
        return ended

    def _places(self, selector: Selector) -> Iterable[Conversation]:
        if selector.where is not None:
            return (selector.where,)
        return dict.fromkeys((*self._lanes.places, *self._live.ended_places))

    async def forget(self, note: SubjectErased) -> None:
        """Cancel the questions of an erased person or group, and suspended runs whose turns were
        erased from the journal: they had read the person's words, and would show them to the model
        again.
        """
        if not (note.user or note.group):
            return
        selector = Selector(
            group=note.group or None,
            askers=frozenset({note.user}) if note.user else None,
            said_until=math.inf if note.said is None else note.said,
            taken_before=math.inf if note.since is None else note.since,
        )
        self.cancel(selector, Reason.FORGOTTEN)
        waiting = list(self._suspensions.waiting())
        if not waiting or not await self._store.commit():
            return
        erased = [turn_id for turn_id in waiting if await self._store.spoken(turn_id) is None]
        if not await self._store.commit():  # perhaps none could be read
            return
        for turn_id in erased:
            self.cancel(Selector(turn_id=turn_id), Reason.TURN_ERASED)

    async def lapse(self, turn_id: str) -> None:
        """End a suspended turn that may wait no longer while the bot is muted."""
        if question := self._suspensions.question(turn_id):
            await self._history.load(question.conversation)
            self.cancel(Selector(turn_id=turn_id), Reason.LAPSED)

    # --- runs that wait for an approval -----------------------------------------------------------

    async def expire_approvals(self) -> None:
        """Resume suspended turns whose approvals have expired, each once; if its lane is full, as
        soon as there is room. Runs until cancelled.
        """
        denied: set[tuple[str, float]] = set()  # a turn may wait again, with another expiry
        while True:
            await self._clock.sleep(LOOK)
            expired = {
                (turn_id, run.expires): self._suspensions.question(turn_id)
                for turn_id, run in self._suspensions.waiting().items()
                if run.expires <= self._clock.now()
            }
            denied &= expired.keys()
            for (turn_id, expires), question in expired.items():
                if question is None or (turn_id, expires) in denied:
                    continue
                if self._lanes.put(question.conversation, Resume(turn_id, {}, question)):
                    denied.add((turn_id, expires))
                    self._approvals.expire(turn_id)

    def _cancel_suspended(self, selector: Selector, then: Consequences) -> int:
        ended = 0
        if then.suspended is not Fate.GOES_ON:
            for turn_id in list(self._suspensions.waiting()):
                question = self._suspensions.question(turn_id)
                if question is not None and selector.selects_turn(turn_id, question):
                    self._cancel_suspended_turn(turn_id, question, then)
                    ended += 1
        if then.redacts and selector.where is not None and selector.message_id is not None:
            self._suspensions.redact(selector.where, selector.message_id)
        return ended

    def _cancel_suspended_turn(
        self, turn_id: str, question: MessageReceived, then: Consequences
    ) -> None:
        if then.suspended is Fate.ENDS:
            self._turns.end_suspended(turn_id, then)
        else:
            self._suspensions.drop(turn_id)
        if then.verdict:
            self._message_log.judge(question, Observe(then.verdict))
        if then.tells is not None:
            quote = question.message_id if is_quoted(question) else ""
            line = in_question_language(then.tells, question)
            self._postbox.post(question.conversation, line, quote=quote)

    # --- runs and their sends ---------------------------------------------------------------------

    def _end_runs(self, where: Conversation, selector: Selector, reason: Reason) -> int:
        ended, then = 0, CONSEQUENCES[reason]
        for live in self._live.at(where):
            if not selector.selects(live.message):
                continue
            if not then.withdraws_sends and (live.cancelled or not live.is_thinking):
                continue
            why = reason.name.lower()
            logger.info("the run of %s in %s ends: %s", live.message.message_id, where, why)
            live.stop(reason)
            ended += live.turn is not None  # else its question is still in its lane
            if live.turn is None and then.preparing_why:
                self._end_preparing(live, where, then)
            elif then.verdict:
                self._message_log.judge(live.message, Observe(then.verdict))
        return ended

    def _end_preparing(self, live: ActiveTurn, where: Conversation, then: Consequences) -> None:
        """Dismiss its question, as far as the lane still has it."""
        for work in self._lanes.at(where):
            if not isinstance(work, Task) or live.message not in work.said:
                continue
            if asked := work.without(lambda line: line not in live.said):
                self._question_queue.dismiss(asked, then.preparing_why)
            self._lanes.drop_current(where, partial(is_, work))

    def _redact_runs(self, where: Conversation, message_id: str) -> None:
        for live in self._live.at(where):
            live.recall(message_id, self._history.own(where, message_id))

    def _withdraw_sends(self, where: Conversation, selector: Selector) -> int:
        over = {
            turn.turn_id
            for turn in self._live.ended(where)
            if selector.turn_id in (None, turn.turn_id)
            and selector.selects_question(where, turn.message_id, turn.asker)
        }
        return self._outbox.withdraw(where, over) if over else 0

    # --- questions before their turns -------------------------------------------------------------

    def _before_their_turns(self, where: Conversation) -> list[Task]:
        """Questions that wait, or that may turn out not to be for the bot."""
        tasks = (work for work in self._lanes.at(where) if isinstance(work, Task))
        return [task for task in tasks if not self._has_begun(where, task)]

    def _has_begun(self, where: Conversation, work: Work) -> bool:
        return any(live.turn is not None for live in self._turns_of(where, work))

    def _turns_of(self, where: Conversation, work: Work) -> list[ActiveTurn]:
        lines = work.said if isinstance(work, Task) else (work.question,)
        return [live for live in self._live.at(where) if live.message in lines]

    def _end_waiting(self, where: Conversation, selector: Selector, then: Consequences) -> int:
        tasks = [t for t in self._before_their_turns(where) if selector.selects(t.message)]
        for task in tasks:
            self._question_queue.dismiss(task, then.waiting_why)

        def is_meant(work: Work) -> bool:
            return any(work is task for task in tasks)

        return self._lanes.drop_waiting(where, is_meant) + self._lanes.drop_current(where, is_meant)

    def _rest_of(self, task: Task, selector: Selector, then: Consequences) -> Task | None:
        if then.is_in_journal:
            return self._question_queue.without_recalled(task, selector.selects)
        return selector.rest_of(task)

    def _cut_questions(self, where: Conversation, selector: Selector, reason: Reason) -> int:
        then = CONSEQUENCES[reason]
        rest: list[Task] = []

        def left_of(work: Work) -> Work | None:
            if isinstance(work, Task):
                return self._rest_of(work, selector, then)
            is_meant = work.question is not None and selector.selects(work.question)
            return None if is_meant and then.run is Fate.LEAVES_NOTHING else work

        def is_cancelled(work: Work) -> bool:
            if then.run is Fate.GOES_ON and self._has_begun(where, work):
                return False
            left = left_of(work)
            if then.asks_rest:
                if isinstance(left, Task) and left is not work:
                    rest.append(left)
                return left is not work
            if left is not None:
                return False
            for live in self._turns_of(where, work):
                live.cancelled = reason
            return True

        ended = self._lanes.revise(where, left_of) + self._lanes.drop_current(where, is_cancelled)
        for task in rest:
            self._question_queue.requeue(task)
        if ended:
            logger.info(
                "%d questions in %s are not answered: %s", ended, where, reason.name.lower()
            )
        return ended
