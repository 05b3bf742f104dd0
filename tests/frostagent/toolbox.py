"""Tools that behave in every way a tool can, for the tests of what runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from msgspec.structs import replace

from frostagent.cancellation import BROKEN
from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.call_state import CallTotals, Executed
from frostagent.engine.registry import Registry
from frostagent.engine.toolset import Toolset
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.ports import Approver
from frostagent.types.results import Image, ToolResult
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import Suspend
from frostagent.types.tools import Tool, ToolContext, tool
from tests.fakes import ManualClock, tool_context


class Telescope(Protocol):
    """A capability no run has, unless a test gives it."""


@tool
async def add(a: int, b: int = 1) -> str:
    """Adds two numbers."""
    return str(a + b)


@tool
async def crash() -> str:
    """Breaks."""
    raise ZeroDivisionError("secret detail")


@tool
async def leave() -> str:
    """Asks the interpreter to go."""
    raise SystemExit(3)


@tool
async def give_up() -> str:
    """Raises a cancellation of its own."""
    raise asyncio.CancelledError


@tool(timeout=0.01)
async def dawdle() -> str:
    """Never comes back."""
    await asyncio.Event().wait()
    return "never"


@tool(timeout=0.01, side_effects="external")
async def send_slowly() -> str:
    """Never comes back, but has effects."""
    await asyncio.Event().wait()
    return "never"


@tool
async def time_out_inside() -> str:
    """Raises a TimeoutError that is not our deadline."""
    raise TimeoutError


@tool(needs=(Telescope,))
async def look(context: ToolContext) -> str:
    """Looks at the stars."""
    return type(context.port(Telescope)).__name__


@tool
def count_words(text: str) -> int:
    """A plain function: runs in a thread."""
    return len(text.split())


@tool
async def ask_first(context: ToolContext, what: str) -> str:
    """Does nothing before it is allowed."""
    if not context.allowed:
        raise Suspend(f"Do {what}?", seconds=60)
    return f"did {what}"


@tool
async def ask_always() -> str:
    """Asks, whatever was said."""
    raise Suspend("Again?", seconds=60)


class Stubborn:
    """Begins again whenever it is cancelled, until it is `released`; not for ever, so that a test that fails ends."""

    def __init__(self) -> None:
        self.began = 0
        self.released = self.closed = False

    async def __call__(self, *_: object) -> Any:
        while not self.released and self.began < 20:
            self.began += 1
            try:
                await asyncio.Event().wait()
            except BROKEN as error:  # as people write it: `except:`
                if self.closed:
                    raise  # it is thrown away
                self.closed = isinstance(error, GeneratorExit)
        return "released"


async def cancelled(body: Callable[[], Coroutine[Any, Any, object]]) -> asyncio.Task[object]:
    """A task that has begun with this, and is cancelled and over."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(body())
        await asyncio.sleep(0)
        task.cancel()
    return task


ALL = (add, crash, leave, give_up, dawdle, send_slowly, time_out_inside, look, count_words, ask_first, ask_always)


def toolset(*tools: Tool) -> Toolset:
    return Toolset(tools or ALL, clock=ManualClock())


def results_of(batch: Batch) -> tuple[ToolMessage, ...]:
    results = batch.results()
    assert results is not None, "a call still waits"
    return results


def calls_of(*names: str) -> Batch:
    return Batch([ToolCall(f"c{index}", name, "") for index, name in enumerate(names)])


async def executed_of(
    tools: Registry, call: ToolCall, context: ToolContext | None = None, tally: CallTotals | None = None
) -> Executed:
    """What comes of one call alone. Raises Suspend where it must wait for somebody's word."""
    batch = Batch([call])
    await CallExecutor(tools).run(batch, [context or tool_context()], tally)
    for answer in batch.answers():
        if isinstance(answer, PendingCall):
            raise Suspend(answer.asks, seconds=1)
    ((_, executed),) = batch.finished()
    return executed


async def once(offered: Tool, raw: str = "{}", *, context: ToolContext | None = None, **settings: Any) -> Executed:
    """The call of a tool that is the only one there is; of the settings, `approver` is the run's."""
    context = context or tool_context()
    if "approver" in settings:
        context = replace(context, ports={**context.ports, Approver: settings.pop("approver")})
    tools = Toolset([offered], clock=settings.pop("clock", None) or ManualClock(), **settings)
    tally = CallTotals()
    executed = await executed_of(tools, ToolCall("c1", offered.name, raw), context, tally)
    assert tally.left < CallTotals().left
    return executed


def echo(**declared: Any) -> Tool:
    """A tool that says its text again, with these declarations."""

    @tool(**declared)
    async def say(text: str = "hi") -> str:
        """Says it again."""
        return text

    assert isinstance(say, Tool)
    return say


def broken(*_: object) -> Any:
    """A hook, check or whatever, with a bug."""
    raise LookupError("secret")


class Switch:
    """A tool that can be turned off."""

    def __init__(self) -> None:
        self.reason: str | Exception = ""

        @tool(available=self.why_not, summary="For the operator.")
        async def fetch() -> ToolResult:
            """Fetches."""
            return ToolResult("got it", (Image.of(b"x"),), {"ms": 3})

        self.tool = fetch

    def why_not(self) -> str:
        if isinstance(self.reason, Exception):
            raise self.reason
        return self.reason


async def result_of(name: str, arguments: str = "{}", ports: dict[type, object] | None = None) -> tuple[str, str]:
    """Content and code of a call of one of all tools."""
    executed = await executed_of(toolset(), ToolCall("c9", name, arguments), tool_context(ports))
    assert (executed.message.call_id, executed.message.name) == ("c9", name)
    assert executed.message.is_error == (executed.code != "ok")
    return executed.message.content, executed.code
