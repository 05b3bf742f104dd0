from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from frostagent.engine.call_state import MAX_RESULT
from frostagent.engine.tool_execution import Progress
from frostagent.engine.toolset import Toolset
from frostagent.types.messages import ToolCall
from frostagent.types.results import Image, ToolResult
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext, tool
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import broken, echo, executed_of, once, result_of, toolset


async def test_a_call_by_name_gives_the_result_of_the_tool() -> None:
    assert await result_of("add", '{"a": 2, "b": 40}') == ("42", "ok")


async def test_a_plain_function_runs_too_and_its_number_becomes_text() -> None:
    assert await result_of("count_words", '{"text": "a b c"}') == ("3", "ok")


async def test_an_unknown_name_is_an_error_result_that_suggests_the_nearest() -> None:
    content, code = await result_of("ad")
    assert content.startswith('error: tool not found: "ad". Did you mean "add"? Available: add, ask_always,')
    assert content.endswith("[TOOL_NOT_FOUND]")
    assert code == "TOOL_NOT_FOUND"


async def test_wrong_arguments_name_each_wrong_field() -> None:
    content, code = await result_of("add", '{"a": "many", "c": 1}')
    assert "a: Input should be a valid integer, unable to parse string as an integer, got 'many'" in content
    assert "c: no such field, leave it out" in content
    assert code == "TOOL_INVALID_ARGUMENTS"


async def test_a_missing_field_is_named() -> None:
    assert await result_of("add") == ("error: a: required [TOOL_INVALID_ARGUMENTS]", "TOOL_INVALID_ARGUMENTS")


@each_case("raw", ["[" * 100_000, '{"a": 1', '{"a": 1}{"a": 2}', "{'a': 1", "[1]", '"text"', "7"])
async def test_arguments_that_are_not_one_json_object_are_never_run(raw: str) -> None:
    content, code = await result_of("add", raw)
    assert code == "TOOL_INVALID_ARGUMENTS"
    assert "JSON" in content


async def test_a_crash_is_an_error_result_that_tells_no_details() -> None:
    content, code = await result_of("crash")
    assert "the tool broke (ZeroDivisionError)" in content
    assert "secret" not in content
    assert code == "TOOL_EXECUTION_FAILED"


@each_case("name", ["leave", "give_up", "time_out_inside"])
async def test_no_way_of_ending_badly_gets_out_of_a_tool(name: str) -> None:
    content, code = await result_of(name)
    assert content.startswith("error: ")
    assert code == "TOOL_EXECUTION_FAILED"


async def test_a_deadline_ends_a_call_and_says_so() -> None:
    assert await result_of("dawdle") == (
        "error: dawdle timed out after 0.01 s. Do not repeat it unchanged. [TOOL_TIMEOUT]",
        "TOOL_TIMEOUT",
    )


async def test_a_timed_out_effect_may_have_happened_and_the_model_is_told() -> None:
    content, _ = await result_of("send_slowly")
    assert "may have been done all the same" in content


async def test_a_tool_that_asks_again_although_it_was_allowed_fails() -> None:
    with pytest.raises(Suspend):
        await executed_of(toolset(), ToolCall("c", "ask_always", ""), tool_context())
    executed = await executed_of(toolset(), ToolCall("c", "ask_always", ""), replace(tool_context(), allowed=True))
    assert "asked to be allowed what it had been allowed" in executed.message.content
    assert executed.code == "TOOL_EXECUTION_FAILED"


async def test_a_long_result_is_shortened_before_the_model_reads_it() -> None:
    @tool
    async def flood() -> str:
        """Talks too much."""
        return "x" * 100_000

    tools = Toolset([flood], clock=ManualClock())
    executed = await executed_of(tools, ToolCall("c", "flood", ""), tool_context())
    assert MAX_RESULT < len(executed.message.content) < MAX_RESULT + 100


# --- what a tool declares -------------------------------------------------------------------------


async def test_what_was_mended_and_what_the_tool_was_run_with_is_told() -> None:
    executed = await once(echo(), '{"text": 5}')
    assert (executed.message.content, executed.arguments) == ("5", {"text": "5"})
    assert executed.coerced == ("text: number -> string",)


@each_case(("side_effects", "code"), [("read", "ok"), ("undeclared", "TOOL_INVALID_ARGUMENTS")])
async def test_unknown_keys_are_a_notice_for_tools_that_read_and_refused_for_the_others(
    side_effects: str, code: str
) -> None:
    executed = await once(echo(side_effects=side_effects), '{"txt": "hi"}')
    assert executed.code == code
    assert "txt" in executed.message.content


@each_case(
    ("declared", "who"),
    [({"prepare": broken}, "the preparation of its arguments"), ({"check": broken}, "its own check")],
)
async def test_what_breaks_around_a_body_is_an_error_result_too(declared: dict[str, Any], who: str) -> None:
    executed = await once(echo(**declared))
    assert executed.message.content.startswith(f"error: {who} broke (LookupError).")
    assert executed.code == "TOOL_EXECUTION_FAILED"


async def test_a_tool_that_became_unavailable_is_still_tried_and_says_why_where_it_cannot_run() -> None:
    assert (await once(echo(available=lambda: "has no wire"))).code == "ok"

    @tool(available=lambda: "has no wire")
    async def phone() -> str:
        """Calls."""
        raise ConnectionError

    executed = await once(phone)
    assert "it has no wire" in executed.message.content
    assert executed.code == "TOOL_UNAVAILABLE"
    assert (await once(replace(phone, available=lambda: ""))).code == "TOOL_EXECUTION_FAILED"
    assert (await once(replace(phone, function=None))).code == "TOOL_UNAVAILABLE"


async def test_a_failure_told_by_the_tool_reads_like_any_other() -> None:
    @tool
    async def shrug() -> ToolResult:
        """Fails politely."""
        return ToolResult("nothing found", details={"asked": 3}, is_error=True)

    executed = await once(shrug)
    assert executed.message.content == "error: nothing found [TOOL_EXECUTION_FAILED]"
    assert (executed.message.is_error, executed.details) == (True, {"asked": 3})


async def test_pictures_go_beside_the_text_and_details_never_to_the_model() -> None:
    cat = Image.of(b"cat")

    @tool
    async def draw() -> ToolResult:
        """Draws."""
        return ToolResult("a cat", (cat, cat), {"secret": 1}, terminate=True)

    executed = await once(draw)
    assert executed.message.content == "a cat\n[picture 1]\n[picture 2]"
    assert executed.message.images == (cat.url, cat.url)
    assert (executed.details, executed.terminate) == ({"secret": 1}, True)


async def test_what_is_kept_of_a_result_has_the_form_of_what_is_told() -> None:
    @tool
    async def recollect() -> ToolResult:
        """Tells a fact from elsewhere."""
        return ToolResult("对花生过敏", kept="[m\u202e1]")

    executed = await once(recollect)
    assert (executed.message.content, executed.message.kept) == ("对花生过敏", "[m1]")


async def test_progress_is_told_while_the_call_runs_and_never_afterwards() -> None:
    heard: list[ToolResult] = []
    kept: list[ToolContext] = []

    @tool
    async def work(context: ToolContext) -> str:
        """Works."""
        context.progress("half", percent=50)
        kept.append(context)
        return "done"

    @tool
    def work_in_a_thread(context: ToolContext) -> str:
        """Works."""
        context.progress(ToolResult(details={"percent": 80}))
        return "done"

    for offered in (work, work_in_a_thread):
        await once(offered, context=replace(tool_context(), reports=Progress(heard.append)))
    kept[0].progress("late")
    await asyncio.sleep(0)
    assert heard == [ToolResult("half", details={"percent": 50}), ToolResult(details={"percent": 80})]


# --- who may --------------------------------------------------------------------------------------
