from __future__ import annotations

import pytest

from frostagent.types.traits import Rate, SideEffects
from tests.cases import each_case


@each_case(("text", "rate"), [("5/60", Rate(5, 60)), (" 1 / 0.5 ", Rate(1, 0.5))])
def test_a_rate_is_written_as_calls_and_seconds(text: str, rate: Rate) -> None:
    assert Rate.parse(text) == rate
    assert Rate.parse(str(rate)) == rate


@each_case("text", ["", "5", "0/60", "5/0", "-1/60", "5/minute", "5/1e9", "5/60/60"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        Rate.parse(text)


def test_only_what_writes_may_have_happened_and_only_what_reads_is_harmless() -> None:
    assert [each.may_have_happened for each in SideEffects] == [False, False, False, True, True]
    assert [each.is_harmless for each in SideEffects] == [False, True, True, False, False]


@each_case(
    ("kinds", "together"),
    [
        ([], SideEffects.NONE),
        (["none", "read"], SideEffects.READ),
        (["read", "undeclared"], SideEffects.UNDECLARED),
        (["undeclared", "write"], SideEffects.WRITE),
        (["external", "write", "none"], SideEffects.EXTERNAL),
    ],
)
def test_who_may_do_several_things_does_what_is_trusted_least(kinds: list[str], together: SideEffects) -> None:
    assert SideEffects.strictest(map(SideEffects, kinds)) is together
