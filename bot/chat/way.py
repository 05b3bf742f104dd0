"""The way of a message through the bot, one line per stage: on arrival those that `bot/build.py`
lists, in the lane those of `LaneWay`.

It comes in on the connection's own reading loop, which must not wait, and is answered in the lane
of its conversation, which may.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from operator import eq
from typing import TypeAlias

from msgspec import Struct

from bot.approvals.registry import PendingDecisions
from bot.chat.active_conversations import ActiveConversations
from bot.chat.active_work import ActiveWork
from bot.chat.deduplicator import Deduplicator
from bot.chat.message_log import MessageLog
from bot.chat.question_queue import QuestionQueue, Quotes
from bot.chat.rate_limiter import RateLimiter
from bot.chat.tasks import Facts, Resume, Task, Work
from bot.chat.turn import Turns
from bot.chat.wake_classifier import WakeClassifier
from bot.core.events import MessageReceived
from bot.outbox.outbox import Outbox
from bot.policy.fallback_replies import SORRY, apology
from bot.policy.message_trimming import trim_message
from bot.policy.wake import Verdict


class Stage(Struct, frozen=True):
    """One stage before the verdict. `handle` says whether it has handled the message; then no later
    stage sees it. One that `answers` is left out for a message that is only heard. What a stage
    that `erases` has handled is known as taken, and no prompt repeats it.
    """

    handle: Callable[[MessageReceived], bool]
    answers: bool = False
    erases: bool = False


class JudgedStage(Struct, frozen=True):
    """The same for one that needs the verdict, and what is known of the message."""

    handle: Callable[[MessageReceived, Verdict, Facts], bool]
    answers: bool = False


class MessageWay:
    """Takes every message through its stages, until one has handled it: first the `stages`, then
    the `judged_stages`, whose last one handles all.
    """

    def __init__(
        self,
        *,
        deduplicator: Deduplicator,
        active_conversations: ActiveConversations,
        wake_classifier: WakeClassifier,
        message_log: MessageLog,
        stages: tuple[Stage, ...],
        judged_stages: tuple[JudgedStage, ...],
    ) -> None:
        self._deduplicator = deduplicator
        self._active_conversations = active_conversations
        self._wake_classifier = wake_classifier
        self._message_log = message_log
        self._stages = stages
        self._judged_stages = judged_stages

    def receive(self, message: MessageReceived, *, answer: bool = True) -> None:
        """On the reading loop: from the event to a place in a lane. Without `answer` only heard."""
        facts = self._wake_classifier.gather_facts(message)
        if not self._deduplicator.admit(message, facts):  # known already? in a new group?
            return
        message = trim_message(self._active_conversations.with_group_name(message))
        for stage in self._stages:
            if (answer or not stage.answers) and stage.handle(message):
                if stage.erases:
                    self._message_log.forget_answer(message, kept=False)
                return
        # Here it is judged: meant for the bot? may it speak?
        verdict = self._wake_classifier.judge_arrival(message, facts, answer=answer)
        for judged in self._judged_stages:
            if (answer or not judged.answers) and judged.handle(message, verdict, facts):
                return


LaneStage: TypeAlias = Callable[[Task], Awaitable[Task | None]]
"""One stage before the turn: the question for the next one; None if it is done with."""


class LaneWay:
    """The rest of that way, in the lane of its conversation."""

    def __init__(
        self,
        *,
        decisions: PendingDecisions,
        wake_classifier: WakeClassifier,
        rate_limiter: RateLimiter,
        message_log: MessageLog,
        question_queue: QuestionQueue,
        quotes: Quotes,
        turns: Turns,
        active_work: ActiveWork,
        outbox: Outbox,
    ) -> None:
        self._decisions = decisions
        self._wake_classifier = wake_classifier
        self._rate_limiter = rate_limiter
        self._message_log = message_log
        self._question_queue = question_queue
        self._turns = turns
        self._active_work = active_work
        self._outbox = outbox
        self.stages: tuple[LaneStage, ...] = (
            self._take_owner_replies,  # an owner's word that quotes the request?
            quotes.resolve,  # it quotes somebody else?
            self._veto,  # stale? muted? too often?
            self._apologise,  # nobody knows what was done for it?
        )

    async def do(self, work: Work) -> None:
        """From a place in a lane to the last send of the turn."""
        if isinstance(work, Resume):
            await self._go_on(work)
            return
        task = work
        for stage in self.stages:
            if (left := await stage(task)) is None:
                return
            task = left
        job = task.scheduled
        await self._turns.answer(
            task.message,
            lines=task.lines,
            retry=task.retry,
            wake=task.wake,
            claimed=job.claimed if job else None,
        )
        if job is not None:
            job.ended()

    async def _go_on(self, work: Resume) -> None:
        """Nobody would hear it where the bot may still be muted, and it may wait no longer."""
        question = work.question
        if question is None or not self._wake_classifier.may_be_muted(question.conversation):
            await self._turns.resume(work.turn_id, work.decisions)
        else:
            await self._active_work.lapse(work.turn_id)

    async def _take_owner_replies(self, task: Task) -> Task | None:
        """The question without an owner's words on a request that they quote."""
        left: Task | None = task
        for line in task.said:
            if await self._decisions.take_reply_later(line):
                self._message_log.forget_answer(line, kept=True)
                left = left.without(partial(eq, line)) if left else None
        return left

    async def _veto(self, task: Task) -> Task | None:
        """One that is known to be a question only now was not counted when it came."""
        facts = self._wake_classifier.gather_facts(task.message)  # they may have changed
        why = self._wake_classifier.judge_in_lane(task, facts)
        if not why and task.looked_up:
            why = self._rate_limiter.admit(task, is_earlier=facts.is_earlier)
        if not (why := why or self._rate_limiter.admit_today(task)):
            return task
        self._question_queue.dismiss(task, why)
        return None

    async def _apologise(self, task: Task) -> Task | None:
        """Its asker is asked to ask again."""
        if not task.lost:
            return task
        self._outbox.post_with(action=apology(task.message, SORRY))
        return None
