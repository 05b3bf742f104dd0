from __future__ import annotations

from frostagent.engine.call_state import (
    CallState,
    RepeatedCall,
    Repeats,
    TooManyRepeats,
    call_key,
    readable,
    told_with_images,
    with_left_out,
    worded_failure,
)
from frostagent.types.arguments import Checked
from frostagent.types.messages import ToolCall
from frostagent.types.results import Image, ToolResult
from tests.cases import each_case
from tests.fakes import tool_context


@each_case(("raw", "known"), [('{"a": "1"}', {"a": "1"}), ("[", {})])
def test_the_arguments_of_a_call_are_known_as_far_as_it_came(raw: str, known: dict[str, object]) -> None:
    flow = CallState(ToolCall("c", "add", raw), tool_context(), 0.0)
    assert flow.input == known
    flow.checked = Checked({"a": 1}, {"a": 1})
    assert flow.input == {"a": 1}


def test_a_failure_is_told_in_the_same_words_once() -> None:
    told = worded_failure(ToolResult("gone", is_error=True))
    assert told.content == "error: gone [TOOL_EXECUTION_FAILED]"
    assert (told.code, worded_failure(told)) == ("TOOL_EXECUTION_FAILED", told)
    assert worded_failure(ToolResult("error")) == ToolResult("error")
    assert worded_failure(ToolResult("error: gone", is_error=True)) == told
    late = worded_failure(ToolResult("error: gone [TOOL_TIMEOUT]", is_error=True), "TOOL_TIMEOUT")
    assert (late.content, late.code) == ("error: gone [TOOL_TIMEOUT]", "TOOL_TIMEOUT")


def test_what_a_failure_reads_like_does_not_make_its_code() -> None:
    told = worded_failure(ToolResult("gone [TOOL_CANCELLED]", is_error=True))
    assert told.content == "error: gone [TOOL_CANCELLED] [TOOL_EXECUTION_FAILED]"
    assert told.code == "TOOL_EXECUTION_FAILED"
    flow = CallState(ToolCall("c", "add", "{}"), tool_context(), 0.0, result=told)
    assert flow.code == "TOOL_EXECUTION_FAILED"
    flow.result = ToolResult("fine [TOOL_CANCELLED]")
    assert flow.code == "ok"


def test_a_picture_that_the_text_names_has_no_line_besides() -> None:
    pictures = (Image.of(b"a"), Image.of(b"b"))
    assert told_with_images(ToolResult("see [picture 2]", pictures)) == "see [picture 2]\n[picture 1]"
    assert told_with_images(ToolResult("see")) == "see"


def test_what_was_left_out_is_said_after_the_result() -> None:
    result = with_left_out(ToolResult("fine"), Checked({}, {}, unknown=("citty", "at.z")))
    assert result.content == "fine\n(Left out, no such parameter: citty, at.z.)"


def test_what_was_left_out_is_said_before_the_code_of_a_failure() -> None:
    failed = worded_failure(ToolResult("gone", is_error=True))
    told = with_left_out(failed, Checked({}, {}, unknown=("z",))).content
    assert told == "error: gone\n(Left out, no such parameter: z.) [TOOL_EXECUTION_FAILED]"


def test_text_is_short_and_has_no_half_letters() -> None:
    assert readable("x" * 100, 40).count("x") == 40
    assert readable("a\ud800b 😀", 100) == "a\ufffdb 😀"


def test_text_has_no_escapes_and_no_marks_that_nobody_sees() -> None:
    assert readable("\x1b[1;31mERROR\x1b[0m\r\nfile\u202etxt.exe\0\u200b", 100) == "ERROR\nfiletxt.exe"
    assert readable("\x1b[0m" * 100 + "x" * 40, 40) == "x" * 40


KEY = call_key("look_up", {"city": "Rome", "days": 3})
SUNNY = ToolResult("sunny")


def asked(repeats: Repeats, result: ToolResult | None = SUNNY) -> RepeatedCall | TooManyRepeats | None:
    """A step that makes the call once."""
    verdict = repeats.judge(KEY)
    if verdict is None and result is not None:
        repeats.keep(KEY, result)
    repeats.next_step()
    return verdict


def test_the_layout_of_the_arguments_does_not_matter_but_their_values_do() -> None:
    assert call_key("look_up", {"days": 3, "city": "Rome"}) == KEY
    assert call_key("look_up", {"days": "3", "city": "Rome"}) != KEY
    assert call_key("look", {"days": 3, "city": "Rome"}) != KEY


def test_the_second_call_gets_what_is_known_the_third_an_error_and_the_fourth_is_the_last() -> None:
    repeats = Repeats()
    assert [asked(repeats) for _ in range(5)] == [
        None,
        RepeatedCall(SUNNY),
        TooManyRepeats(3, is_last=False),
        TooManyRepeats(4, is_last=True),
        TooManyRepeats(5, is_last=True),
    ]


def test_a_call_that_failed_may_be_tried_a_second_time() -> None:
    repeats = Repeats()
    assert [asked(repeats, None) for _ in range(3)] == [None, None, TooManyRepeats(3, is_last=False)]


def test_within_one_step_a_call_may_come_twice() -> None:
    repeats = Repeats()
    assert [repeats.judge(KEY), repeats.judge(KEY)] == [None, None]
    repeats.keep(KEY, SUNNY)
    repeats.next_step()
    assert asked(repeats) == RepeatedCall(SUNNY)


def test_after_a_write_or_a_new_message_everything_is_new() -> None:
    repeats = Repeats()
    asked(repeats)
    repeats.forget()
    assert asked(repeats) is None


def test_a_tool_called_wrongly_three_times_in_a_row_is_closed() -> None:
    repeats = Repeats()
    for fits in (False, False, True, False, False):
        repeats.took("add", fits=fits)
    assert not repeats.is_closed("add")
    repeats.took("add", fits=False)
    assert repeats.is_closed("add")
    assert not repeats.is_closed("look_up")
