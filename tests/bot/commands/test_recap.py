"""What a recap reads, and what is left of a model's words."""

from __future__ import annotations

from bot.commands.recap import MAX_WORDS, PART, in_parts, read_hours, tidy_recap
from frostagent.models.tokens import estimate_text
from tests.cases import each_case


@each_case(
    ("words", "hours"),
    [
        ((), 0.0),
        (("3",), 3.0),
        (("3小时",), 3.0),
        (("3", "小时"), 3.0),
        (("12h",), 12.0),
        (("2", "hours"), 2.0),
        (("999",), 168.0),
        (("0",), None),
        (("很久",), None),
        (("-3",), None),
    ],
)
def test_hours_are_read(words: tuple[str, ...], hours: float | None) -> None:
    assert read_hours(words) == hours


def test_parts_have_every_line_once_and_room_in_a_request() -> None:
    lines = [f"14:{number % 60:02} 小明#1: {'山' * (number % 190)}" for number in range(2000)]
    parts = list(in_parts(lines))
    assert [line for part in parts for line in part] == lines
    assert len(parts) > 1
    assert all(sum(map(estimate_text, part)) <= PART for part in parts)
    assert list(in_parts([])) == []
    assert list(in_parts(["山" * 99_999])) == [["山" * 99_999]]


@each_case(
    ("said", "told"),
    [
        ("· 小明#1约小红#22去香山", "· 小明约小红去香山"),
        ("  · 一\n\n\n· 二  ", "· 一\n· 二"),
        ("issue #12 和 C# 不变", "issue #12 和 C# 不变"),
        ("x" * 600, "x" * MAX_WORDS),
        (f"{'x' * 300}\n{'y' * 300}", "x" * 300),
        ("", ""),
    ],
)
def test_the_words_of_a_model_are_told_as_people_read_them(said: str, told: str) -> None:
    assert tidy_recap(said) == told
