from __future__ import annotations

from frostagent.engine.call_state import RepeatedCall, Repeats, TooManyRepeats, call_key
from frostagent.types.results import ToolResult

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
