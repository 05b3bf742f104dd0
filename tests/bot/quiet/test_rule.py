from __future__ import annotations

from bot.quiet.rule import Hours, parse_duration, quiet_minutes
from tests.cases import each_case


@each_case(
    ("hours", "quiet", "loud"),
    [
        (Hours(1410, 450), (1410, 1439, 0, 449), (450, 720, 1409)),
        (Hours(720, 810), (720, 809), (719, 810, 0)),
        (Hours(1380, 0), (1380, 1439), (0, 1379)),
        (Hours(0, 60), (0, 59), (60, 1439)),
    ],
)
def test_hours_begin_with_their_first_minute_and_may_go_over_midnight(
    hours: Hours, quiet: tuple[int, ...], loud: tuple[int, ...]
) -> None:
    assert all(map(hours.holds, quiet))
    assert not any(map(hours.holds, loud))


@each_case(
    ("text", "minutes"),
    [
        ("2h", 120),
        ("1h30m", 90),
        ("90 分钟", 90),
        ("2小时", 120),
        ("1个小时", 60),
        ("2 Hours", 120),
        ("30d", 43200),
        ("31d", None),
        ("0m", None),
        ("2", None),
        ("h", None),
        ("2h and more", None),
        ("-2h", None),
        ("", None),
    ],
)
def test_a_while_is_read_as_people_type_it(text: str, minutes: int | None) -> None:
    assert parse_duration(text) == minutes


@each_case(
    ("hours", "minute", "left"),
    [
        ((), 0, 0),
        ((Hours(1410, 450),), 1409, 0),
        ((Hours(1410, 450),), 1410, 480),
        ((Hours(1410, 450),), 449, 1),
        ((Hours(1410, 450),), 450, 0),
        ((Hours(0, 1440),), 0, 1440),
        ((Hours(600, 720), Hours(720, 780), Hours(630, 640)), 635, 145),
    ],
)
def test_how_long_it_is_quiet_counts_hours_that_follow_each_other(
    hours: tuple[Hours, ...], minute: int, left: int
) -> None:
    assert quiet_minutes(hours, minute) == left
