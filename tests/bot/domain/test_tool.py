from __future__ import annotations

import threading
from typing import Protocol

import pytest

from bot.domain.chat import ToolSpec
from bot.domain.errors import InvalidArguments, ToolUnavailable
from bot.domain.schema import UnsuitableType
from bot.domain.tool import DEFAULT_TIMEOUT, Tool, ToolContext, tool
from tests.fakes import tool_context


class Telescope(Protocol):
    """A capability."""

    def see(self) -> str: ...


class Glass:
    def see(self) -> str:
        return "stars"


@tool
async def greet(name: str, times: int = 1) -> str:
    """Greets somebody.

    Args:
        name: Who it is.
        times: How often.
    """
    return " ".join([f"hello {name}"] * times)


@tool(needs=(Telescope,), timeout=5, may_have_happened=True, name="look_up")
async def look(context: ToolContext, where: str) -> str:
    """Looks at the sky."""
    return f"{context.port(Telescope).see()} {where}"


def make(name: str = "ping", description: str = "Pings.") -> Tool:
    return Tool(name=name, description=description, parameters={}, check=lambda given: given, function=lambda: "pong")


def test_a_decorated_function_becomes_a_tool_that_says_all_the_model_needs() -> None:
    assert greet.spec == ToolSpec(
        "greet",
        "Greets somebody.",
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Who it is."},
                "times": {"type": "integer", "description": "How often.", "default": 1},
            },
            "required": ["name"],
        },
    )


def test_a_plain_decorator_and_one_with_settings_make_the_same_kind_of_tool() -> None:
    assert (greet.needs, greet.timeout, greet.may_have_happened) == ((), DEFAULT_TIMEOUT, False)
    assert (look.name, look.needs, look.timeout, look.may_have_happened) == ("look_up", (Telescope,), 5, True)


def test_the_context_is_not_a_parameter_of_the_model() -> None:
    assert list(look.parameters["properties"]) == ["where"]
    assert (look.wants_context, greet.wants_context) == (True, False)


async def test_the_function_can_still_be_called_as_before() -> None:
    assert await greet("Frost") == "hello Frost"
    assert await look(tool_context({Telescope: Glass()}), where="north") == "stars north"


async def test_running_it_gives_the_context_only_to_who_wants_it() -> None:
    assert await greet.run(tool_context(), greet.check({"name": "Frost", "times": "2"})) == "hello Frost hello Frost"
    assert await look.run(tool_context({Telescope: Glass()}), look.check({"where": "north"})) == "stars north"


async def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    @tool
    def where() -> int:
        """Tells its thread."""
        return threading.get_ident()

    assert await where.run(tool_context(), {}) != threading.get_ident()


async def test_a_name_only_parameter_is_as_good_as_any() -> None:
    @tool
    async def shout(context: ToolContext, *, word: str, mark: str = "!") -> str:
        """Shouts."""
        return word.upper() + mark

    assert await shout.run(tool_context(), shout.check({"word": "hey"})) == "HEY!"


def test_wrong_arguments_are_refused_before_the_body() -> None:
    with pytest.raises(InvalidArguments, match="name: required"):
        greet.check({})


def test_a_missing_capability_says_which() -> None:
    with pytest.raises(ToolUnavailable, match="needs Telescope, which is not there in this run"):
        tool_context().port(Telescope)


@pytest.mark.parametrize("name", ["ping", "p", "get_game_version2", "a" * 64])
def test_a_good_name_is_taken(name: str) -> None:
    assert make(name).name == name


@pytest.mark.parametrize("name", ["", "Ping", "_ping", "2ping", "pi-ng", "pi ng", "ping\n", "平", "pïng", "a" * 65])
def test_a_name_some_vendor_would_refuse_is_refused_here(name: str) -> None:
    with pytest.raises(ValueError, match="a tool's name must match"):
        make(name)


def test_a_tool_without_a_description_is_refused() -> None:
    async def silent() -> None: ...

    with pytest.raises(ValueError, match="silent has no description"):
        tool(silent)
    with pytest.raises(ValueError, match="ping has no description"):
        make(description="")


def test_a_parameter_without_a_flat_schema_is_refused_where_the_tool_is_defined() -> None:
    async def choose(what: int | str) -> None:
        """Chooses."""

    with pytest.raises(UnsuitableType, match=r"choose_arguments\.what: a parameter must have one type"):
        tool(choose)


def test_a_context_that_would_not_arrive_first_is_refused() -> None:
    async def late(what: str, context: ToolContext) -> None:
        """Comes late."""

    with pytest.raises(UnsuitableType, match="late: 'context', a ToolContext, must be the first parameter"):
        tool(late)


def test_the_spec_of_a_tool_is_a_copy() -> None:
    greet.spec.parameters["properties"] = {}
    assert greet.spec.parameters["properties"] != {}
