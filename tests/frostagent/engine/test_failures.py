from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frostagent.engine.call_state import CallStage, CallState
from frostagent.engine.tool_execution import LONGEST, error_text, record_failure
from frostagent.text.masking import Mask
from frostagent.types.errors import ToolDenied, ToolFailed
from frostagent.types.messages import ToolCall
from frostagent.types.tools import tool
from tests.cases import each_case
from tests.fakes import tool_context
from tests.frostagent.toolbox import echo, once


def told(error: BaseException, doing: CallStage = CallStage.RUNNING) -> tuple[str, str]:
    """What the model reads of it, and its code."""
    flow = CallState(
        ToolCall("c", "say", "{}"), tool_context(), 0.0, tool=echo(), stage=doing, ran=doing is CallStage.RUNNING
    )
    record_failure(flow, error)
    assert flow.result is not None
    assert flow.result.is_error
    return flow.result.content, flow.code


def test_a_value_error_of_a_tool_is_told_in_its_words() -> None:
    content = "error: count must be 1-10 [TOOL_EXECUTION_FAILED]"
    assert told(ValueError("count must be 1-10")) == (content, "TOOL_EXECUTION_FAILED")
    assert told(UnicodeError("no such letter"))[0].startswith("error: no such letter")


@each_case("error", [ValueError(), LookupError("secret"), TypeError("secret"), OSError("secret")])
def test_any_other_bug_is_told_without_its_words(error: Exception) -> None:
    content, _ = told(error)
    assert content.startswith(f"error: the tool broke ({type(error).__name__}).")
    assert "secret" not in content


@each_case("doing", [CallStage.HOOK, CallStage.HOOK_AFTER, CallStage.CHECKING])
def test_a_value_error_of_somebody_else_is_a_bug(doing: CallStage) -> None:
    assert told(ValueError("secret"), doing)[0].startswith(f"error: {doing} broke (ValueError).")


def test_who_cannot_be_asked_has_not_allowed_it() -> None:
    content, code = told(ValueError("secret"), CallStage.ASKING)
    assert content == "error: nobody could be asked to allow it (ValueError). Do without it. [TOOL_DENIED]"
    assert code == "TOOL_DENIED"


def test_what_preparing_refuses_are_wrong_arguments() -> None:
    content = "error: limit: too much [TOOL_INVALID_ARGUMENTS]"
    assert told(ValueError("limit: too much"), CallStage.PREPARING) == (content, "TOOL_INVALID_ARGUMENTS")


def test_a_tools_words_are_one_short_line_without_secrets() -> None:
    mask = Mask(["hunter-two"])
    words = error_text(ValueError("no\n  such\tcity\n\nTraceback: x"), mask)
    assert words == "no such city Traceback: x"
    assert error_text(ValueError("hunter-two is wrong"), mask) == "*** is wrong"
    assert error_text(ValueError("https://bob:pw@h.test/?key=abcdef&q=1 said no"), mask) == (
        "https://***@h.test/?key=***&q=1 said no"
    )
    assert len(error_text(ValueError("x" * 1000))) == LONGEST


def test_a_secret_that_a_line_break_parts_is_none_of_the_words() -> None:
    assert error_text(ValueError("a hunter\ntwo b"), Mask(["hunter two", "hunter\ntwo"])) == "a *** b"


async def test_the_secrets_that_are_known_stay_out_of_what_a_tool_and_its_check_say() -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("not with hunter-two")

    def fail(text: str = "") -> str:
        """Fails."""
        raise ValueError("not with hunter-two")

    for offered in (tool(fail), echo(check=refuse), echo(prepare=refuse)):
        executed = await once(offered, mask=Mask(["hunter-two"]))
        assert executed.message.content.startswith("error: not with *** [TOOL_")


def test_a_failure_that_is_told_stays_what_it_is() -> None:
    assert told(ToolFailed("gone"))[0] == "error: gone [TOOL_EXECUTION_FAILED]"
    assert told(ToolDenied("no"), CallStage.HOOK) == ("error: no [TOOL_DENIED]", "TOOL_DENIED")
    assert told(asyncio.CancelledError())[0].startswith("error: the tool gave up on itself.")


def test_only_the_failure_of_the_tool_itself_is_put_down_to_its_being_unavailable() -> None:
    gone = echo(available=lambda: "has no wire")

    def code_of(error: BaseException, *, ran: bool = True) -> str:
        flow = CallState(ToolCall("c", "say", "{}"), tool_context(), 0.0, tool=gone, ran=ran)
        record_failure(flow, error)
        return flow.code

    assert code_of(ToolFailed("no")) == code_of(LookupError()) == code_of(ValueError("no")) == "TOOL_UNAVAILABLE"
    assert code_of(ToolDenied("no")) == "TOOL_DENIED"
    assert code_of(ToolFailed("no"), ran=False) == "TOOL_EXECUTION_FAILED"


def test_what_is_none_of_the_calls_business_gets_out() -> None:
    with pytest.raises(KeyboardInterrupt):
        told(KeyboardInterrupt())
