"""Questions whose account is disconnected: they wait for it, and are classified again then."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from bot.conversation.intake.wake_classifier import WakeClassifier
from bot.conversation.queue.coalescer import Coalescer
from bot.conversation.queue.lanes import Lanes
from bot.conversation.queue.question_queue import QuestionQueue
from bot.conversation.tasks import YOUNG, Task, Work
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Silence, Verdict, Wake, Why


class DeferredQuestions:
    """Keeps them in order; one that has become too old meanwhile is only heard."""

    def __init__(
        self,
        *,
        wake_classifier: WakeClassifier,
        coalescer: Coalescer,
        question_queue: QuestionQueue,
        lanes: Lanes[Work],
        clock: Clock,
    ) -> None:
        self._wake_classifier = wake_classifier
        self._coalescer = coalescer
        self._question_queue = question_queue
        self._lanes = lanes
        self._clock = clock
        self._tasks: list[Task] = []

    def add(self, task: Task) -> None:
        """It waits."""
        self._tasks.append(task)

    def ask(self, account: int) -> None:
        """The account is there: line up its questions, unless nothing is begun any more."""
        if self._lanes.finishing:
            return
        for task in self._part(lambda message: message.self_id == account):
            verdict = self._verdict(task)
            if isinstance(verdict, Wake | NeedsQuoted) and self._is_young(task):
                self._coalescer.line_up(replace(task, verdict=verdict))
            elif not self._coalescer.take(task.message):
                self._question_queue.let_be(task, _why_not(verdict))

    def _is_young(self, task: Task) -> bool:
        return self._clock.now() - task.since < YOUNG

    def _verdict(self, task: Task) -> Verdict:
        """By today's rules; a turn that was begun is repeated whatever they say."""
        verdict = self._wake_classifier.whoever_may_speak(task.called)
        if task.retry is None or isinstance(verdict, Wake):
            return verdict
        joined = isinstance(verdict, Observe) and verdict.may_join  # nobody had called
        return Wake("chance", weak=True) if joined else task.verdict

    def drop(self, where: Conversation, message_id: str) -> None:
        """The message was recalled: it waits no more."""
        here = self._part(lambda message: message.conversation == where)
        left = (self._question_queue.recalled(task, message_id) for task in here)
        self._tasks += [task for task in left if task is not None]

    def forget(self, left_of: Callable[[Task], Task | None]) -> None:
        """Somebody is forgotten: only what is left of each waits."""
        left = map(left_of, self._tasks)
        self._tasks = [task for task in left if task is not None]

    def _part(self, meant: Callable[[MessageReceived], bool]) -> list[Task]:
        taken = [task for task in self._tasks if meant(task.message)]
        self._tasks = [task for task in self._tasks if not meant(task.message)]
        return taken


def _why_not(verdict: Verdict) -> Why:
    """Why it is only heard; empty where it called nobody."""
    match verdict:
        case Wake():
            return "" if verdict.is_uncalled else Silence.STALE
        case Observe(reason=reason) | Ignore(reason=reason):
            return reason
        case NeedsQuoted():
            return ""
