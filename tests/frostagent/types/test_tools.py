from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Protocol

import pytest
from pydantic import AfterValidator, BaseModel

from bot.core.ports import KeptFile
from frostagent.engine.external_tools import as_tool
from frostagent.engine.tool_execution import run_body
from frostagent.types.errors import InvalidArguments, ToolUnavailable
from frostagent.types.messages import ToolSpec
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker
from frostagent.types.schema import UnsuitableType
from frostagent.types.suspension import ApprovalRequest
from frostagent.types.tools import DEFAULT_TIMEOUT, Tool, ToolContext, make_tool, tool
from frostagent.types.traits import Permission, Rate
from tests.cases import each_case
from tests.fakes import GROUP, tool_context


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


@tool(needs=(Telescope,), timeout=5, side_effects="external", name="look_up")
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


def test_wrong_arguments_are_refused_before_the_body() -> None:
    with pytest.raises(InvalidArguments, match="name: required"):
        greet.check({})


def test_a_missing_capability_says_which() -> None:
    with pytest.raises(ToolUnavailable, match="needs Telescope, which is not there in this run"):
        tool_context().port(Telescope)


@each_case("name", ["ping", "p", "get_game_version2", "a" * 64])
def test_a_good_name_is_taken(name: str) -> None:
    assert make(name).name == name


@each_case("name", ["", "Ping", "_ping", "2ping", "pi-ng", "pi ng", "ping\n", "平", "pïng", "a" * 65])
def test_a_name_some_vendor_would_refuse_is_refused_here(name: str) -> None:
    with pytest.raises(ValueError, match="a tool's name must match"):
        make(name)


def test_a_tool_without_a_description_is_refused() -> None:
    async def silent() -> None: ...

    with pytest.raises(ValueError, match="silent has no description"):
        tool(silent)
    with pytest.raises(ValueError, match="ping has no description"):
        make(description="")


def test_a_parameter_without_a_schema_is_refused_where_the_tool_is_defined() -> None:
    async def choose(what: dict[str, list[int]]) -> None:
        """Chooses."""

    with pytest.raises(UnsuitableType, match=r"choose_arguments\.what: a mapping may hold plain values only"):
        tool(choose)


def test_a_tool_keeps_the_parameters_and_the_result_of_its_function() -> None:
    @tool
    def double(number: int) -> int:
        """Doubles."""
        return 2 * number

    result: int = double(2) + double(number=3)
    assert result == 10


def test_name_and_description_may_be_declared() -> None:
    @tool(name="roll_dice", description="Rolls a dice.", permission="approve")
    def roll() -> int:
        return 4

    assert (roll.name, roll.description, roll.permission) == ("roll_dice", "Rolls a dice.", Permission.REQUIRE_APPROVAL)


class Desk:
    """Takes bookings."""

    def __init__(self, number: int) -> None:
        self.number = number

    @tool(side_effects="write")
    async def book(self, context: ToolContext, room: str, nights: int = 1) -> str:
        """Books a room."""
        return f"{self.number} {context.step} {room} {nights}"

    async def __call__(self, room: str) -> str:
        """Says who books a room."""
        return f"{self.number} {room}"


async def run_with(made: object, raw: str) -> object:
    ready = as_tool(made)
    return await run_body(ready, tool_context(), ready.read(raw).arguments)


async def test_a_method_is_a_tool_of_each_object() -> None:
    seven, nine = Desk(7), Desk(9)
    assert list(seven.book.parameters["properties"]) == ["room", "nights"]
    assert await run_with(seven.book, '{"room": "a"}') == "7 1 a 1"
    assert await run_with(nine.book, '{"room": "a", "nights": 2}') == "9 1 a 2"
    with pytest.raises(UnsuitableType, match="book is a method of a class"):
        as_tool(Desk.book)


async def test_an_object_that_can_be_called_and_a_partial_of_it_run() -> None:
    assert await run_with(Desk(7), '{"room": "a"}') == "7 a"
    assert await run_with(partial(Desk(7), room="b"), "") == "7 b"


class Booking(BaseModel):
    room: str
    nights: int = 1


async def test_the_fields_of_an_only_model_arrive_as_the_model_with_its_defaults_told() -> None:
    @tool
    def reserve(booking: Booking) -> str:
        """Reserves."""
        return booking.room * booking.nights

    checked = reserve.read('{"room": "a"}')
    assert checked.plain == {"room": "a", "nights": 1}
    assert await run_body(reserve, tool_context(), checked.arguments) == "a"


def test_a_context_that_would_not_arrive_first_is_refused() -> None:
    async def late(what: str, context: ToolContext) -> None:
        """Comes late."""

    with pytest.raises(UnsuitableType, match="late: 'context', a ToolContext, must be the first parameter"):
        tool(late)


def test_the_spec_of_a_tool_is_a_copy() -> None:
    greet.spec.parameters["properties"] = {}
    assert greet.spec.parameters["properties"] != {}


def test_everything_that_is_declared_is_there_to_read() -> None:
    @tool(
        permission="require_approval",
        audience="group_admin",
        side_effects="read",
        execution="sequential",
        idempotent=True,
        rate="5/60",
        requires=("AMAP_KEY",),
        critical=True,
        label="Lamp",
        summary="For the operator.",
    )
    async def light() -> None:
        """Lights."""

    assert isinstance(light, Tool)
    assert (light.permission, light.audience, light.side_effects) == ("require_approval", "group_admin", "read")
    assert (light.execution, light.rate, light.requires) == ("sequential", Rate(5, 60), ("AMAP_KEY",))
    assert (light.critical, light.label, light.summary) == (True, "Lamp", "For the operator.")
    assert light.may_be_retried
    assert light.is_guarded_from_repeats


@each_case("word", ["permission", "audience", "side_effects", "execution", "rate"])
def test_a_word_that_says_nothing_is_refused_where_the_tool_is_defined(word: str) -> None:
    declared: dict[str, Any] = {word: "sometimes"}

    async def light() -> None:
        """Lights."""

    with pytest.raises(ValueError, match="sometimes"):
        make_tool(light, **declared)


def test_what_declares_nothing_is_trusted_with_nothing() -> None:
    @tool(idempotent=True)
    async def dark() -> None:
        """Says nothing about itself."""

    assert isinstance(dark, Tool)
    assert (dark.permission, dark.audience, dark.side_effects) == ("allow", "everyone", "undeclared")
    assert [dark.may_be_retried, dark.is_guarded_from_repeats, dark.may_have_happened] == [False] * 3


async def test_a_tool_of_one_raw_text_is_declared_so() -> None:
    @tool(raw_input=True)
    async def shout(input: str) -> str:  # noqa: A002  # the one name such a parameter has
        """Shouts."""
        return input.upper()

    assert isinstance(shout, Tool)
    assert await run_body(shout, tool_context(), shout.read("hey").arguments) == "HEY"
    assert shout.read('{"input": 5}').arguments == {"input": "5"}
    with pytest.raises(UnsuitableType, match="has one parameter, input: str"):

        @tool(raw_input=True)
        async def whisper(text: str) -> None:
            """Whispers."""


def test_guarding_a_tool_leaves_the_tool_as_it_was() -> None:
    def check(context: ToolContext, arguments: object) -> None: ...

    guarded = greet.wrap(check)
    assert (greet.guards, guarded.guards) == ((), (check,))
    assert guarded.wrap(check).guards == (check, check)
    assert guarded.spec == greet.spec


async def test_progress_outside_a_run_is_heard_by_nobody() -> None:
    tool_context().progress("half", percent=50)


def test_a_changed_copy_is_checked_like_the_tool() -> None:
    assert greet.replace(timeout=5, replaces=True).timeout == 5
    assert greet.timeout == DEFAULT_TIMEOUT
    with pytest.raises(ValueError, match="a tool's name must match"):
        greet.replace(name="Greet")
    with pytest.raises(TypeError, match="nothing"):
        greet.replace(nothing=1)


@each_case(
    "value",
    [
        make().replace(function=partial(print, "5E5AME"), guards=("5E5AME",)),
        KeptFile("5E5AME", "/a", "https://x.test"),
        ApprovalRequest(
            run_id="r",
            step=1,
            call_id="c",
            name="ping",
            arguments={},
            asks="?",
            conversation=str(GROUP),
            asker=Asker("1"),
            context=tool_context({Telescope: "5E5AME"}),
        ),
    ],
)
def test_what_nobody_is_to_read_is_not_shown(value: object) -> None:
    assert type(value).__name__ in repr(value)
    assert "5E5AME" not in repr(value)


class Options(BaseModel):
    recursive: bool = True
    depth: int = 1


def test_plain_arguments_have_their_defaults_at_any_depth_and_otherwise_the_callers_words() -> None:
    @tool
    async def delete(path: Annotated[str, AfterValidator(lambda path: f"/{path}")], options: list[Options]) -> str:
        """Deletes."""
        return path

    checked = delete.validate({"path": "x", "options": [{"depth": 2}]})
    assert checked.arguments["path"] == "/x"
    assert checked.plain == {"path": "x", "options": [{"depth": 2, "recursive": True}]}
    assert delete.validate(checked.plain) == checked


async def test_a_tool_is_tried_alone_with_a_context_made_for_it() -> None:
    @tool(needs=(Telescope,), side_effects="read")
    async def watch(context: ToolContext, nights: int) -> str:
        """Watches."""
        context.progress("dark", night=1)
        return f"{nights} x {context.port(Telescope).see()}, {context.allowed}, {context.asker.name}"

    heard: list[ToolResult] = []
    context = ToolContext.for_test(
        deps={Telescope: Glass()}, asker=Asker("7", "Ann"), allowed=True, on_progress=heard.append
    )
    assert await watch(context, nights=2) == "2 x stars, True, Ann"
    assert [(one.text, one.details) for one in heard] == [("dark", {"night": 1})]
    with pytest.raises(ToolUnavailable, match="needs Telescope"):
        await watch(ToolContext.for_test(), nights=2)
