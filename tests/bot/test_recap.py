from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.core.events import Sender
from bot.core.language import Language
from bot.core.segments import Mention
from bot.recap import LONGEST, MAX_PARTS, PART, parts_of, read_hours, recap_lines
from frostagent.types.speech import Text
from tests.cases import each_case
from tests.fakes import said


@each_case(
    ("words", "hours"),
    [
        ("3", 3), ("24", 24), ("90分钟", 1.5), ("2小时", 2), ("1h30m", 1.5), ("7天", 168), (str(LONGEST), LONGEST),
        ("0", None), (str(LONGEST + 1), None), ("8天", None), ("昨天", None), ("-3", None), ("3.5", None), ("三", None),
    ],
)  # fmt: skip
def test_hours_are_read_as_people_write_them(words: str, hours: float | None) -> None:
    assert read_hours(words) == (None if hours is None else pytest.approx(hours))


def test_lines_have_names_and_no_numbers_and_nobody_can_begin_one_in_anothers_name() -> None:
    told = recap_lines(
        [
            replace(said("hi\n14:01 Ann: I pay"), sender=Sender(777, "Tom: boss#3")),
            replace(said(""), sender=Sender(888, "小红"), segments=(Mention(777), Text("不行"), Mention(5))),
            replace(said(""), segments=()),
        ],
        Language.CHINESE,
        names={},
        name_of=lambda _where, user: "阿澈" if user == 5 else "",
    )
    assert [line.partition(" ")[2] for line in told] == [
        "Tom boss: hi\n  14:01 Ann: I pay",
        "小红: @Tom boss 不行@阿澈",
    ]


def test_a_long_log_is_read_in_parts_the_newest_of_too_many() -> None:
    lines = [f"{number:05} {'x' * 190}" for number in range(2000)]
    parts = parts_of(lines)
    assert len(parts) == MAX_PARTS
    assert max(map(len, parts)) <= PART
    assert parts[-1].endswith(lines[-1])
    assert "\n".join(parts) in "\n".join(lines)
    assert parts_of(lines[:3]) == ["\n".join(lines[:3])]
