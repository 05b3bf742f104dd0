from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import Sender
from bot.core.language import Language
from bot.core.segments import Mention
from bot.recap import (
    DAILY_RECAP,
    LONGEST,
    MAX_PARTS,
    OFF,
    PART,
    USUAL,
    DailyRecaps,
    parts_of,
    read_hours,
    read_time,
    recap_lines,
)
from bot.settings_store import SettingsStore
from frostagent.types.speech import Text
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore, SteppedClock, said


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


@each_case(
    ("words", "time"),
    [
        ("22:00", "22:00"), ("8:05", "08:05"), ("08：05", "08:05"), ("0:00", "00:00"),
        ("24:00", None), ("12:60", None), ("22", None), ("晚上", None), ("", None),
    ],
)  # fmt: skip
def test_the_time_of_a_daily_recap_is_read_as_people_write_it(words: str, time: str | None) -> None:
    assert read_time(words) == time


SECOND = Conversation(GROUP.platform_id + 1, "group", GROUP.session_id)
OTHER = Conversation(SECOND.platform_id, "group", GROUP.session_id + 1)
PRIVATE = Conversation(SECOND.platform_id, "private", GROUP.session_id + 1)


class Asked:
    """What was asked of the jobs."""

    def __init__(self, *, heard: dict[Conversation, float], filed: str | None = None) -> None:
        self.clock = SteppedClock()
        self.made = list[tuple[Conversation, str]]()
        self.silent = set[Conversation]()
        store = RecordingStore()
        self.settings = SettingsStore([DAILY_RECAP], store=store, choices=store, clock=self.clock)
        self.recaps = DailyRecaps(
            usual="22:00",
            filed=lambda where: filed if where == OTHER else None,
            settings=self.settings,
            schedule=self.schedule,
            heard=lambda: {where: self.clock.now() - ago for where, ago in heard.items()},
            may_speak=lambda where: where not in self.silent,
            language=lambda _: Language.CHINESE,
            clock=self.clock,
        )

    async def schedule(self, where: Conversation, time: str, _: Language) -> bool:
        self.made.append((where, time))
        return True

    async def look(self) -> list[tuple[Conversation, str]]:
        """What one look asked for."""
        self.made.clear()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.recaps.run())
            await self.clock.advance(1.0)
            task.cancel()
        return self.made


async def test_one_of_several_accounts_in_a_group_makes_its_recap_whichever_heard_the_command() -> None:
    asked = Asked(heard={SECOND: 60.0, GROUP: 60.0, OTHER: 60.0, PRIVATE: 60.0})
    assert await asked.look() == [(GROUP, "22:00"), (OTHER, "22:00")]
    for told, time, due in (
        (SECOND, "21:00", "21:00"),
        (GROUP, "20:00", "20:00"),
        (SECOND, OFF, ""),
        (GROUP, "", "22:00"),
    ):
        assert await asked.recaps.choose(told, time, Language.CHINESE)
        assert dict(asked.made[-2:]) == {GROUP: due, SECOND: ""}
        assert asked.recaps.time_of(GROUP) == asked.recaps.time_of(SECOND) == due
        assert (await asked.recaps.is_wanted(GROUP), await asked.recaps.is_wanted(SECOND)) == (bool(due), False)
        assert dict(await asked.look()) == ({GROUP: due} if due else {}) | {OTHER: "22:00"}


async def test_an_account_that_hears_a_group_no_more_leaves_its_recap_to_another() -> None:
    asked = Asked(heard={GROUP: USUAL, SECOND: 60.0})
    assert await asked.look() == [(SECOND, "22:00")]


async def test_no_recap_is_set_where_the_bot_may_not_speak_or_the_file_says_off() -> None:
    asked = Asked(heard={GROUP: 60.0, OTHER: 60.0}, filed="")
    asked.silent.add(GROUP)
    assert await asked.look() == []
    asked.silent.clear()
    assert await asked.look() == [(GROUP, "22:00")]
