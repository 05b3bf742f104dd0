from __future__ import annotations

import threading
from collections.abc import Awaitable
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from frostagent.engine.tool_execution import run_body, unavailable_reason
from frostagent.types.errors import ToolUnavailable
from frostagent.types.tools import Tool, ToolContext, tool
from tests.cases import each_case
from tests.fakes import tool_context


class Telescope(Protocol):
    """A capability."""

    def see(self) -> str: ...


class Glass:
    def see(self) -> str:
        return "stars"


@tool
async def greet(name: str, times: int = 1) -> str:
    """Greets somebody."""
    return f"hello {name}" * times


@tool(needs=(Telescope,))
async def look(context: ToolContext, where: str) -> str:
    """Looks at the sky."""
    return f"{context.port(Telescope).see()} {where}"


PING = Tool(name="ping", description="Pings.", parameters={}, check=lambda given: given, function=lambda: "pong")


async def test_running_it_gives_the_context_only_to_who_wants_it() -> None:
    assert await run_body(greet, tool_context(), greet.check({"name": "Frost", "times": "2"})) == "hello Frost" * 2
    assert await run_body(look, tool_context({Telescope: Glass()}), look.check({"where": "north"})) == "stars north"


async def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    @tool
    def where() -> int:
        """Tells its thread."""
        return threading.get_ident()

    assert await run_body(where, tool_context(), {}) != threading.get_ident()


async def test_a_name_only_parameter_is_as_good_as_any() -> None:
    @tool
    async def shout(context: ToolContext, *, word: str, mark: str = "!") -> str:
        """Shouts."""
        return word.upper() + mark

    assert await run_body(shout, tool_context(), shout.check({"word": "hey"})) == "HEY!"


async def test_a_tool_without_a_body_says_so() -> None:
    bodiless = replace(PING, function=None)
    assert unavailable_reason(bodiless) == "has no body"
    with pytest.raises(ToolUnavailable, match="ping has no body"):
        await run_body(bodiless, tool_context(), {})
    with pytest.raises(TypeError, match="ping has no body"):
        bodiless()


async def test_a_plain_function_may_return_something_to_wait_for() -> None:
    async def later() -> str:
        return "now"

    def soon() -> Awaitable[str]:
        return later()

    assert await run_body(replace(PING, function=soon), tool_context(), {}) == "now"


def leave() -> str:
    raise SystemExit(3)


@each_case(
    ("available", "reason"),
    [
        (lambda: True, ""),
        (lambda: None, ""),
        (lambda: (True, ""), ""),
        (lambda: (False, "is asleep"), "is asleep"),
        (lambda: False, "is not available"),
        (lambda: "has no key", "has no key"),
        (leave, "cannot say whether it is available (SystemExit)"),
    ],
)
def test_a_tool_may_say_in_any_way_whether_it_is_available(available: Any, reason: str) -> None:
    assert unavailable_reason(replace(greet, available=available)) == reason
