"""The answers of an agent: a reply, a typed value, or one of the errors it raises where there is
no answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, cast

from typing_extensions import TypeVar

from frostagent.types.errors import BotError
from frostagent.types.messages import Message, Usage, UserMessage
from frostagent.types.runs import Outcome, Stop, SuspendedRun, ToolFailure

T = TypeVar("T", default=str)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A run that waits for an approval, as data: `Agent.resume` goes on with it.

    `session` is None where the question belongs to none; `history` is what such a question was
    given.
    """

    session: str | None
    question: UserMessage
    suspended: SuspendedRun
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[T]):
    """The result of a question. `output` is the answer: the `text`, or the value that was asked
    for.

    `messages` is the conversation up to here without the instructions: the history, the question
    and what the run added (`new_messages`). Give it as `history` to go on. `stop` says how the run
    ended, None while it waits for an approval (`waiting`). `limit` says that the model had no turn
    or no budget left for further calls and had to answer, `tool_failures` lists every call that
    failed, and `unheard` what was said into the run too late to be heard in it.
    """

    run_id: str
    output: T
    text: str
    stop: Stop | None
    usage: Usage
    steps: int
    messages: tuple[Message, ...]
    new_messages: tuple[Message, ...]
    limit: bool = False
    error: str = ""
    tool_failures: tuple[ToolFailure, ...] = ()
    unheard: tuple[UserMessage, ...] = ()
    waiting: Waiting | None = None

    def with_output(self, output: V) -> Reply[V]:
        """The same reply with another output."""
        return replace(cast("Reply[V]", self), output=output)


def ended_reply(
    run_id: str,
    outcome: Outcome,
    *,
    asked: tuple[Message, ...] = (),
    unheard: tuple[UserMessage, ...] = (),
) -> Reply[str]:
    """The end of a run, as the reply to what was `asked`."""
    return Reply(
        run_id=run_id,
        output=outcome.text,
        text=outcome.text,
        stop=outcome.stop,
        usage=outcome.usage,
        steps=outcome.steps,
        messages=(*asked, *outcome.messages),
        new_messages=outcome.messages,
        limit=outcome.limit,
        error=outcome.error,
        tool_failures=outcome.tool_failures,
        unheard=unheard,
    )


def waiting_reply(
    waiting: Waiting, *, asked: tuple[Message, ...] = (), unheard: tuple[UserMessage, ...] = ()
) -> Reply[str]:
    """The reply of a run that waits."""
    suspended = waiting.suspended
    return Reply(
        run_id=suspended.run_id,
        output="",
        text="",
        stop=None,
        usage=suspended.usage,
        steps=suspended.steps,
        messages=(*asked, *suspended.messages),
        new_messages=suspended.messages,
        unheard=unheard,
        waiting=waiting,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Structured(Generic[T]):
    """A value that fits the schema that was asked for. `reply` is the run that found it out, with
    all usage.
    """

    value: T
    reply: Reply[T]


class RunFailed(BotError):
    """A run came to no answer. `kind` is a stable word: a model error's, or deadline, empty, tool,
    limit.
    """

    def __init__(self, reply: Reply[str]) -> None:
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
