"""The results of an agent: a reply, a typed value, or an error if there is no answer."""

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
    """A run that waits for an approval, as data. Pass it to `Agent.resume` to continue.

        if reply.waiting is not None:
            [pending] = reply.waiting.suspended.pending
            reply = await agent.resume(reply.waiting, {pending.call.id: Allow()})

    `session` is None if the question belongs to none; `history` is then what the question was
    given.
    """

    session: str | None
    question: UserMessage
    suspended: SuspendedRun
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[T]):
    """The result of a question. `output` is the answer: the `text`, or the requested value.

        reply = await agent.run("And tomorrow?", history=reply.messages)

    `messages` is the conversation so far without the instructions: history, question, and the run's
    `new_messages`. `stop` says how the run ended; None while it waits for an approval (`waiting`).
    `limit` says that the model had no turn or no budget left for further calls and had to answer.
    `tool_failures` lists every failed call, `unheard` the messages that arrived too late for the
    run to read.
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
        """A copy of the reply with another output."""
        return replace(cast("Reply[V]", self), output=output)


def ended_reply(
    run_id: str,
    outcome: Outcome,
    *,
    asked: tuple[Message, ...] = (),
    unheard: tuple[UserMessage, ...] = (),
) -> Reply[str]:
    """The reply to `asked`, from a run's end."""
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
    """A value that fits the schema. `reply` is the run that produced it, with all usage."""

    value: T
    reply: Reply[T]


class RunFailed(BotError):
    """A run ended without an answer. `reply.error` has the details.

    `kind` is a stable word: a model error's kind, or deadline, empty, tool, limit.
    """

    def __init__(self, reply: Reply[str]) -> None:
        self.reply = reply
        super().__init__(reply.error)

    @property
    def kind(self) -> str:
        """The first word of the error."""
        return self.reply.error.partition(":")[0]


class StepLimitReached(RunFailed):
    """The model still called tools at the step limit, and `on_limit` is "error"."""


class MustWait(BotError):
    """A call needs an approval that comes later, in a run that cannot wait."""


class UnfitAnswer(BotError):
    """The model's answer does not fit the schema, even after one correction.

    `problems` has one line for each misfit; `text` is the answer.
    """

    def __init__(self, text: str, problems: tuple[str, ...]) -> None:
        self.text = text
        self.problems = problems
        super().__init__("; ".join(problems))
