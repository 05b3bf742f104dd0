"""The way of a message through the bot, a stage a line. READ FIRST.

It comes in on the connection's own reading loop, which must not wait, and is answered in the lane
of its conversation, which may.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import eq
from typing import assert_never

from bot.conversation.approval.owner_replies import OwnerReplies
from bot.conversation.intake.active_conversations import ActiveConversations
from bot.conversation.intake.deduplicator import Deduplicator
from bot.conversation.intake.message_log import MessageLog, SelfMessages
from bot.conversation.intake.wake_classifier import WakeClassifier
from bot.conversation.interruptions.steering import Steering
from bot.conversation.interruptions.stop_handler import StopHandler
from bot.conversation.queue.coalescer import Coalescer
from bot.conversation.queue.question_queue import QuestionQueue
from bot.conversation.queue.quotes import Quotes
from bot.conversation.queue.rate_limiter import RateLimiter
from bot.conversation.tasks import Resume, Task, Work
from bot.conversation.turns.turn import Turns
from bot.domain.events import MessageReceived
from bot.policy.fallback_replies import SORRY, apology
from bot.policy.message_trimming import trim_message
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Silence, Wake, Why
from bot.speaking.outbox import Outbox


class MessageWay:
    """Takes every message through its stages, each of which may be its last. `start_command` says
    whether a message is a command its sender may use, which is then being answered.
    """

    def __init__(
        self,
        *,
        deduplicator: Deduplicator,
        active_conversations: ActiveConversations,
        self_messages: SelfMessages,
        word: OwnerReplies,
        stop_handler: StopHandler,
        start_command: Callable[[MessageReceived], bool],
        wake_classifier: WakeClassifier,
        steering: Steering,
        message_log: MessageLog,
        coalescer: Coalescer,
    ) -> None:
        self._deduplicator = deduplicator
        self._active_conversations = active_conversations
        self._self_messages = self_messages
        self._word = word
        self._stop_handler = stop_handler
        self._start_command = start_command
        self._wake_classifier = wake_classifier
        self._steering = steering
        self._message_log = message_log
        self._coalescer = coalescer

    def take(self, message: MessageReceived, *, answer: bool = True) -> None:
        """On the reading loop: from the event to a place in a lane. Without `answer` only heard."""
        if not self._deduplicator.lets_in(message):  # known already? in a new group?
            return
        message = trim_message(self._active_conversations.named(message))
        if self._self_messages.tells(message):  # a file of our own, told as somebody's?
            self._message_log.forget_answer(message, kept=False)
            return
        if self._word.take(message):  # an owner's word on what waits?
            self._message_log.forget_answer(message, kept=False)
            return
        if answer and self._stop_handler.take(message):  # is somebody to stop?
            return
        if answer and self._start_command(message):  # a command, answered without a model?
            self._message_log.forget_answer(message, kept=False)
            return
        verdict = self._wake_classifier.on(
            message, answer=answer
        )  # meant for the bot? may it speak?
        if answer and self._steering.take(message, verdict):  # part of what is being answered?
            return
        match verdict:
            case Ignore(reason=reason):
                self._message_log.ignore(message, reason)
            case Observe():
                self._coalescer.hear(message, verdict)
            case Wake() | NeedsQuoted():
                self._coalescer.ask(message, verdict)
            case _:
                assert_never(verdict)


class LaneWay:
    """The rest of that way, in the lane of its conversation."""

    def __init__(
        self,
        *,
        word: OwnerReplies,
        wake_classifier: WakeClassifier,
        rate_limiter: RateLimiter,
        message_log: MessageLog,
        question_queue: QuestionQueue,
        quotes: Quotes,
        turns: Turns,
        outbox: Outbox,
    ) -> None:
        self._word = word
        self._wake_classifier = wake_classifier
        self._rate_limiter = rate_limiter
        self._message_log = message_log
        self._question_queue = question_queue
        self._quotes = quotes
        self._turns = turns
        self._outbox = outbox

    async def do(self, work: Work) -> None:
        """From a place in a lane to the last send of the turn."""
        if isinstance(work, Resume):
            await self._go_on(work)
            return
        asked = await self._without_words(work)  # an owner's word that quotes the request?
        task = await self._quotes.settled(asked) if asked else None  # it quotes somebody else?
        if task is None:
            return
        if why := self._against(task, looked_up=task is not asked):  # stale? muted? too often?
            self._question_queue.let_be(task, why)
        elif task.lost:  # nobody knows what was done for it: its asker is asked to ask again
            self._outbox.post_with(action=apology(task.message, SORRY))
        else:
            await self._turns.take(task.message, lines=task.lines, retry=task.retry, wake=task.wake)

    async def _go_on(self, work: Resume) -> None:
        """Nobody would hear it where the bot may still be muted, and it may wait no longer."""
        question = work.question
        if question is None or not self._wake_classifier.may_be_muted(question.conversation):
            await self._turns.resume(work.turn_id, work.decisions)
        elif await self._turns.lapse(work.turn_id):
            self._message_log.judge(question, Observe(Silence.MUTED))

    def _against(self, task: Task, *, looked_up: bool) -> Why:
        """Why it is not answered; of what had to be `looked_up` nobody knew that it was a wake."""
        why = self._wake_classifier.against(task, looked_up=looked_up)
        why = why or (self._rate_limiter.against(task) if looked_up else "")
        return why or self._rate_limiter.spent(task)

    async def _without_words(self, task: Task) -> Task | None:
        """The task that is left where an owner's words on a request that they quote are in
        it.
        """
        left: Task | None = task
        for line in task.said:
            if await self._word.take_later(line):
                self._message_log.forget_answer(line, kept=True)
                left = left.without(partial(eq, line)) if left else None
        return left
