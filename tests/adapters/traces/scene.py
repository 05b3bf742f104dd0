"""A real run of a real engine, told to an observer."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from frostagent.engine.engine import Engine, Run, RunState
from frostagent.engine.toolset import Toolset
from frostagent.types.messages import SystemMessage, UserMessage
from frostagent.types.ports import Clock, Observer
from frostagent.types.runs import Asker
from frostagent.types.tools import Tool, tool
from tests.fakes import GROUP, ManualClock, ScriptedModel, Step, calls, words

SECRET = "sk-very-secret-key"


@tool
async def look_up(city: str) -> str:
    """Looks up."""
    return f"{city}: 晴 {SECRET}"


@tool
async def fail(why: str) -> str:
    """Breaks."""
    raise RuntimeError(why)


@tool
async def hang() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return "never"


def engine(observer: Observer, clock: Clock, model: ScriptedModel, *tools: Tool) -> Engine:
    return Engine(model=model, toolset=Toolset(tools, clock=clock), clock=clock, observer=observer)


def a_run(name: str = "t1") -> Run:
    return Run(
        id=name,
        conversation=str(GROUP),
        asker=Asker("777"),
        transcript=(SystemMessage("be nice"), UserMessage("天气？")),
    )


async def run_scene(observer: Observer, *, clock: Clock | None = None, name: str = "t1") -> None:
    """Two calls in a step, one of them fails, then words."""
    script: list[Step] = [
        calls(("look_up", '{"city": "北京"}'), ("fail", '{"why": "private words"}')),
        words("北京晴。"),
    ]
    with ScriptedModel(*script) as model:
        await engine(observer, clock or ManualClock(), model, look_up, fail).run(a_run(name), RunState())


async def run_cancelled(observer: Observer) -> None:
    """A run that is cancelled while its call goes on."""
    with ScriptedModel(calls(("hang", "{}"))) as model, suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await engine(observer, ManualClock(), model, hang).run(a_run(), RunState())
