"""Whatever a tool or a hook gives back or raises, and what is seen of a call on its way."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from frostagent.engine.call_state import CallTotals
from frostagent.engine.toolset import Toolset
from frostagent.types.hooks import AfterCall, BeforeCall, Hook, Rewrite
from frostagent.types.messages import ToolCall
from frostagent.types.results import Image, ToolResult
from frostagent.types.suspension import Allow, ApprovalRequest
from frostagent.types.tools import Tool, tool
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import echo, executed_of, once

FAILED = "TOOL_EXECUTION_FAILED"


class Office:
    """An approver who allows everything."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def approve(self, request: ApprovalRequest) -> Allow:
        self.asked.append(request)
        return Allow()


class Panic(BaseException):
    """As a library in Rust raises it."""


def gives(value: object) -> Tool:
    @tool
    async def give() -> Any:
        """Gives it."""
        if isinstance(value, BaseException):
            raise value
        return value

    return give


@each_case(
    ("value", "content", "code"),
    [
        (ToolResult(cast("str", {"temp": 22})), '{"temp": 22}', "ok"),
        (ToolResult("ok", images=cast("tuple[Image, ...]", ("data:image/png;base64,",))), "broke (TypeError)", FAILED),
        (ToolResult("ok", details="words"), "ok", "ok"),
        (Panic("rust"), "broke (Panic)", FAILED),
        (BaseExceptionGroup("many", [Panic()]), "broke (BaseExceptionGroup)", FAILED),
    ],
)
async def test_whatever_a_tool_gives_or_raises_is_a_result(value: object, content: str, code: str) -> None:
    executed = await once(gives(value))
    assert content in executed.message.content
    assert executed.code == code


@each_case(
    ("result", "content"),
    [
        (ToolResult(cast("str", None)), "(no output)"),
        (ToolResult("", images=cast("tuple[Image, ...]", ("x",))), "a hook broke (TypeError)"),
    ],
)
async def test_whatever_a_hook_rewrites_a_result_to_is_one(result: ToolResult, content: str) -> None:
    executed = await once(echo(), hooks=[Hook(after_call=lambda event: Rewrite(result))])
    assert content in executed.message.content


async def test_defaults_are_seen_by_all_who_decide_and_nobody_changes_them_behind_the_others() -> None:
    seen: list[Any] = []

    def meddle(event: BeforeCall) -> None:
        seen.append(dict(event.input))
        cast("dict[str, Any]", event.input)["text"] = "something else"

    office = Office()
    executed = await once(echo(permission="require_approval"), hooks=[Hook(before_call=meddle)] * 2, approver=office)
    assert seen == [{"text": "hi"}] * 2
    assert office.asked[0].arguments == executed.arguments == {"text": "hi"}
    assert executed.message.content == "hi"


async def test_a_result_that_is_known_goes_through_the_after_hooks_once() -> None:
    def mark(event: AfterCall) -> Rewrite:
        return Rewrite(replace(event.output, content=f"{event.output.content}<seen>"))

    tools = Toolset([echo(idempotent=True, side_effects="read")], clock=ManualClock(), hooks=[Hook(after_call=mark)])
    tally, contents = CallTotals(), []
    for _ in range(2):
        executed = await executed_of(tools, ToolCall("c", "say", ""), tool_context(), tally)
        tally.repeats.next_step()
        contents.append(executed.message.content)
    assert contents[0] == "hi<seen>"
    assert contents[1].endswith("\nhi<seen>")
