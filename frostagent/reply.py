"""The answers of an agent: a reply, a typed value, or one of the errors it raises where there is
no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from frostagent.types.errors import BotError
from frostagent.types.messages import Message, Usage, UserMessage
from frostagent.types.runs import Outcome, Stop, SuspendedRun, ToolFailure

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A run that waits for somebody's word, as data: `Agent.resume` goes on with it.

    `session` is None where the question belongs to none.
    """

    session: str | None
    question: UserMessage
    suspended: SuspendedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a question. `stop` says how its run ended, None while it waits (`waiting`).

    `messages` is what the run added to the transcript, `limit` says that the step limit was
    reached, `tool_failures` lists every call that failed, and `unheard` what was said into the run
    too late to be heard in it.
    """

    run_id: str
    text: str
    stop: Stop | None
    usage: Usage
    steps: int
    messages: tuple[Message, ...]
    limit: bool = False
    error: str = ""
    tool_failures: tuple[ToolFailure, ...] = ()
    unheard: tuple[UserMessage, ...] = ()
    waiting: Waiting | None = None

    @classmethod
    def of(cls, run_id: str, outcome: Outcome, *, unheard: tuple[UserMessage, ...] = ()) -> Reply:
        """The end of a run, as a reply."""
        return cls(
            run_id=run_id,
            text=outcome.text,
            stop=outcome.stop,
            usage=outcome.usage,
            steps=outcome.steps,
            messages=outcome.messages,
            limit=outcome.limit,
            error=outcome.error,
            tool_failures=outcome.tool_failures,
            unheard=unheard,
        )

    @classmethod
    def to(cls, waiting: Waiting, *, unheard: tuple[UserMessage, ...] = ()) -> Reply:
        """The reply of a run that waits."""
        suspended = waiting.suspended
        return cls(
            run_id=suspended.run_id,
            text="",
            stop=None,
            usage=suspended.usage,
            steps=suspended.steps,
            messages=suspended.messages,
            unheard=unheard,
            waiting=waiting,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Structured(Generic[T]):
    """A value that fits the schema that was asked for. `reply` is the run that found it out, with
    all usage.
    """

    value: T
    reply: Reply


class RunFailed(BotError):
    """A run came to no answer. `kind` is a stable word: a model error's, or deadline, empty, tool,
    limit.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(reply.error)

    @property
    def kind(self) -> str:
        """The first word of the error."""
        return self.reply.error.partition(":")[0]


class StepLimitReached(RunFailed):
    """The model still called tools after the last step it had, and `on_limit` is "error"."""


class MustWait(BotError):
    """A run that may not wait came to a call that somebody must allow first."""


class UnfitAnswer(BotError):
    """The model's last words do not fit the schema, repaired once; `problems` has a line for each
    misfit.
    """

    def __init__(self, text: str, problems: tuple[str, ...]) -> None:
        self.text = text
        self.problems = problems
        super().__init__("; ".join(problems))
