"""A message's way through the bot, one line per stage: on arrival the stages listed in
`bot/build.py`, in the lane those of `LaneWay`. It arrives in the connection's receive loop, which
must not wait, and is answered in the lane of its conversation, which may.
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
    """A stage before the verdict. `handle` returns True if it has handled the message; later stages
    then do not see it. One that `answers` is skipped for messages that are only observed. A message
    handled by a stage that `erases` counts as received, and appears in no prompt.
    """

    handle: Callable[[MessageReceived], bool]
    answers: bool = False
    erases: bool = False


class JudgedStage(Struct, frozen=True):
    """A stage that needs the verdict and the facts of a message."""

    handle: Callable[[MessageReceived, Verdict, Facts], bool]
    answers: bool = False


class MessageWay:
    """Takes every message through its stages until one handles it: first the `stages`, then the
    `judged_stages`, the last of which handles all.
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
        """From the event to a place in a lane, in the receive loop. Without `answer` it is only
        observed.
        """
        facts = self._wake_classifier.gather_facts(message)
        if not self._deduplicator.admit(message, facts):  # a duplicate? from a new group?
            return
        message = trim_message(self._active_conversations.with_group_name(message))
        for stage in self._stages:
            if (answer or not stage.answers) and stage.handle(message):
                if stage.erases:
                    self._message_log.forget_answer(message, kept=False)
                return
        # The verdict: is it for the bot? may the bot speak?
        verdict = self._wake_classifier.judge_arrival(message, facts, answer=answer)
        for judged in self._judged_stages:
            if (answer or not judged.answers) and judged.handle(message, verdict, facts):
                return


LaneStage: TypeAlias = Callable[[Task], Awaitable[Task | None]]
"""A stage before the turn; returns the question for the next stage, None if it is finished."""


class LaneWay:
    """The rest of the way, in the lane."""

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
            self._take_owner_replies,  # an owner's reply that quotes the request?
            quotes.resolve,  # does it quote the bot or another person?
            self._veto,  # stale? muted? too often?
            self._apologise,  # is its earlier outcome unknown?
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
        """Resume the turn, or end it if the bot may still be muted there: it may wait no longer."""
        question = work.question
        if question is None or not self._wake_classifier.may_be_muted(question.conversation):
            await self._turns.resume(work.turn_id, work.decisions)
        else:
            await self._active_work.lapse(work.turn_id)

    async def _take_owner_replies(self, task: Task) -> Task | None:
        """The question without owners' replies that quote a request."""
        left: Task | None = task
        for line in task.said:
            if await self._decisions.take_reply_later(line):
                self._message_log.forget_answer(line, kept=True)
                left = left.without(partial(eq, line)) if left else None
        return left

    async def _veto(self, task: Task) -> Task | None:
        """A question known as one only now was not counted on arrival."""
        facts = self._wake_classifier.gather_facts(task.message)  # they may have changed
        why = self._wake_classifier.judge_in_lane(task, facts)
        if not why and task.looked_up:
            why = self._rate_limiter.admit(task, is_earlier=facts.is_earlier)
        if not (why := why or self._rate_limiter.admit_today(task)):
            return task
        self._question_queue.dismiss(task, why)
        return None

    async def _apologise(self, task: Task) -> Task | None:
        """Ask its asker to repeat the question."""
        if not task.lost:
            return task
        self._outbox.post_with(action=apology(task.message, SORRY))
        return None
