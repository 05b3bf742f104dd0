from __future__ import annotations

from collections.abc import Iterator

from bot.core import errors as service_errors
from bot.core.errors import ActionRefused
from frostagent.types import errors
from frostagent.types.errors import (
    BotError,
    ConfigError,
    ContextOverflow,
    InvalidArguments,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    Problem,
    ToolError,
    ToolFailed,
    ToolRateLimited,
)
from tests.cases import each_case


def family(kind: type[BotError]) -> Iterator[type[BotError]]:
    for child in kind.__subclasses__():
        yield child
        yield from family(child)


TREES = {errors.__name__: errors.__doc__, service_errors.__name__: service_errors.__doc__}
OURS = [kind for kind in family(BotError) if kind.__module__ in TREES]
PUBLIC = [kind for kind in OURS if not kind.__name__.startswith("_")]


@each_case("kind", PUBLIC)
def test_every_error_is_drawn_in_the_tree(kind: type[BotError]) -> None:
    assert f"+-- {kind.__name__} " in f"{TREES[kind.__module__]} ".replace("\n", " \n")


def test_every_model_error_has_a_word_of_its_own() -> None:
    kinds = [kind.kind for kind in PUBLIC if issubclass(kind, ModelError)]
    assert len(kinds) == len(set(kinds))


def test_every_tool_error_has_a_code_of_its_own_and_only_failures_share_one() -> None:
    codes = [kind.code for kind in PUBLIC if issubclass(kind, ToolError) and kind is not ToolError]
    assert len(codes) == len(set(codes))
    assert all(code.startswith("TOOL_") for code in codes)


def test_a_config_error_tells_every_problem_at_once_each_with_its_mend() -> None:
    error = ConfigError(
        Problem("LLM_MODEL", "is empty", "Name a model."), Problem("BOT_PORT", "is unknown", "Remove it.")
    )
    assert str(error) == "LLM_MODEL: is empty. Name a model.\nBOT_PORT: is unknown. Remove it."
    assert [problem.name for problem in error.problems] == ["LLM_MODEL", "BOT_PORT"]


@each_case("kind", [kind for kind in PUBLIC if issubclass(kind, ModelError)])
def test_every_model_error_keeps_the_status_and_the_code_of_the_vendor(kind: type[ModelError]) -> None:
    error = kind("nope", status=418, code="teapot")
    assert (str(error), error.status, error.code) == ("nope", 418, "teapot")
    assert kind("nope").status is None


@each_case("kind", [ModelRateLimited, ModelOverloaded])
def test_a_busy_vendor_may_say_how_long_to_wait(kind: type[ModelRateLimited | ModelOverloaded]) -> None:
    assert kind("busy", status=429, retry_after=1.5).retry_after == 1.5
    assert kind("busy").retry_after is None


def test_an_overflow_names_the_window_where_the_vendor_did() -> None:
    assert ContextOverflow("too long", limit=4096).limit == 4096
    assert ContextOverflow("too long").limit is None


@each_case(("wording", "told"), [("禁言中", "禁言中"), ("", "no reason given")])
def test_a_refused_action_says_what_and_why(wording: str, told: str) -> None:
    error = ActionRefused("send_group_msg", retcode=1200, wording=wording)
    assert str(error) == f"send_group_msg refused (1200): {told}"
    assert (error.action, error.retcode, error.wording) == ("send_group_msg", 1200, wording)


def test_invalid_arguments_carry_one_line_per_wrong_field() -> None:
    assert InvalidArguments("a: required; b: too long", fields=("a: required", "b: too long")).fields == (
        "a: required",
        "b: too long",
    )
    assert InvalidArguments("not an object").fields == ()


def test_wrong_arguments_belong_to_the_failures_and_carry_their_fields() -> None:
    error = InvalidArguments("a: required", fields=("a: required",))
    assert error.details == {"family": ToolError.code, "fields": ["a: required"]}
    assert ToolRateLimited("too often", seconds=3).details == {"seconds": 3}
    assert ToolFailed("gone").details == {}
    assert (ToolFailed("busy", transient=True).transient, ToolFailed("gone").transient) == (True, False)
