from __future__ import annotations

import pytest

from bot.domain.arguments import Checked
from bot.domain.chat import ToolCall
from bot.domain.result import ToolResult
from bot.flow import Flow, as_told, readable, with_left_out
from tests.fakes import tool_context


@pytest.mark.parametrize(("raw", "known"), [('{"a": "1"}', {"a": "1"}), ("[", {})])
def test_the_arguments_of_a_call_are_known_as_far_as_it_came(raw: str, known: dict[str, object]) -> None:
    flow = Flow(ToolCall("c", "add", raw), tool_context(), 0.0)
    assert flow.input == known
    flow.checked = Checked({"a": 1}, {"a": 1})
    assert flow.input == {"a": 1}


def test_a_failure_is_told_in_the_same_words_once() -> None:
    told = as_told(ToolResult("gone", is_error=True))
    assert told.content == "error: gone [TOOL_EXECUTION_FAILED]"
    assert as_told(told) is told
    assert as_told(ToolResult("error")) == ToolResult("error")
    assert as_told(ToolResult("error: gone", is_error=True)) == told
    assert as_told(ToolResult("gone [TOOL_TIMEOUT]", is_error=True)).content == "error: gone [TOOL_TIMEOUT]"


def test_what_was_left_out_is_said_after_the_result() -> None:
    result = with_left_out(ToolResult("fine"), Checked({}, {}, unknown=("citty", "at.z")))
    assert result.content == "fine\n(Left out, no such parameter: citty, at.z.)"


def test_what_was_left_out_is_said_before_the_code_of_a_failure() -> None:
    failed = as_told(ToolResult("gone", is_error=True))
    told = with_left_out(failed, Checked({}, {}, unknown=("z",))).content
    assert told == "error: gone\n(Left out, no such parameter: z.) [TOOL_EXECUTION_FAILED]"


def test_text_is_short_and_has_no_half_letters() -> None:
    assert readable("x" * 100, 40).count("x") == 40
    assert readable("a\ud800b 😀", 100) == "a\ufffdb 😀"
