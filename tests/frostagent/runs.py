"""An engine over a scripted model, and what is true of every run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from frostagent.engine.engine import Engine, OnLimit, Run
from frostagent.engine.toolset import Toolset
from frostagent.types.hooks import Hook
from frostagent.types.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from frostagent.types.ports import ChatModel
from frostagent.types.runs import Asker, Outcome, SuspendedRun
from frostagent.types.tools import Tool, tool
from tests.fakes import GROUP, ManualClock, RecordingObserver

# Runs that wait for somebody's word: tests/e2e/test_suspended_runs.py


@tool
async def echo(text: str) -> str:
    """Says it again."""
    return f"<{text}>"


@tool
async def fail() -> str:
    """Breaks."""
    raise RuntimeError


QUESTION = (SystemMessage("be nice"), UserMessage("hi"))


def engine(
    model: ChatModel,
    *tools: Tool,
    observer: RecordingObserver | None = None,
    clock: ManualClock | None = None,
    hooks: Sequence[Hook] = (),
    max_steps: int = 4,
    deadline: float = 5.0,
    on_limit: OnLimit = "answer",
) -> Engine:
    clock = clock or ManualClock()
    return Engine(
        model=model,
        toolset=Toolset(tools or (echo, fail), clock=clock, hooks=hooks),
        clock=clock,
        observer=observer or RecordingObserver(),
        max_steps=max_steps,
        deadline=deadline,
        on_limit=on_limit,
    )


def run(heard: Callable[[], bool] = lambda: False, *, may_be_silent: bool = False) -> Run:
    return Run(
        id="t1",
        conversation=str(GROUP),
        asker=Asker("1"),
        transcript=QUESTION,
        heard=heard,
        may_be_silent=may_be_silent,
    )


async def to_the_end(running: Awaitable[Outcome | SuspendedRun]) -> Outcome:
    ended = await running
    assert isinstance(ended, Outcome), "the run waits"
    return ended


def assert_valid(messages: tuple[Message, ...] | list[Message]) -> None:
    """Each call has exactly one result, in call order, right after the message that made it."""
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        assert not isinstance(message, ToolMessage), "a result without its call"
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                result = rest.pop(0)
                assert isinstance(result, ToolMessage)
                assert (result.call_id, result.name) == (call.id, call.name)
