from __future__ import annotations

import asyncio

from bot.commands.alarms import ENOUGH, LITTLE, LOOK, AlarmMonitor
from bot.commands.digest import Standing
from bot.core.language import Bilingual, Language
from bot.core.query_results import DaySum, UsageSum
from frostagent.cancellation import background
from tests.bot.commands.books import PaperBooks
from tests.fakes import GROUP, SteppedClock


class Tower:
    """What is seen: the room on the disk, look after look, and two days at each; what is in progress, a letter each."""

    def __init__(
        self,
        *frees: int | None,
        days: tuple[DaySum, ...] = (),
        busy: tuple[str, ...] = (),
        language: Language = Language.CHINESE,
        host: str = "",
        news: tuple[Bilingual | None, ...] = (),
    ) -> None:
        self.news = list(news)
        self.frees = list(frees)
        self.busy = list(busy)
        self.told: list[str] = []
        self.clock = SteppedClock()
        self.lookout = AlarmMonitor(
            stands=self.stands,
            busy=lambda: dict.fromkeys(self.busy.pop(0) if self.busy else "", GROUP),
            gather=(lambda: self.news.pop(0) if self.news else None, lambda: None),
            books=PaperBooks(days=days),
            tell=lambda kind, line: self.told.append(f"{kind}: {line}"),
            clock=self.clock,
            language=language,
            host=host,
        )

    async def stands(self) -> Standing:
        return Standing(free=self.frees.pop(0) if self.frees else None)

    async def look(self, times: int) -> list[str]:
        async with asyncio.timeout(30), background(self.lookout.run()):
            for _ in range(times):
                await self.clock.advance(LOOK)
        return self.told


def day(**models: UsageSum) -> DaySum:
    return DaySum(models=tuple(models.items()))


async def test_a_disk_that_is_nearly_full_is_told_once_and_again_after_there_was_room() -> None:
    tower = Tower(LITTLE, LITTLE - 1, None, 5, LITTLE, 2**20)
    assert [line.partition("，")[0] for line in await tower.look(6)] == [
        "disk: 磁盘只剩 1024 MB",
        "disk: 磁盘只剩 1 MB",
    ]


async def test_one_of_several_machines_is_named() -> None:
    (told,) = await Tower(5, host="gray").look(1)
    assert told.startswith("disk of gray: gray: 磁盘只剩 0 MB")


async def test_a_model_three_times_as_dear_for_a_token_as_yesterday_is_told_once_a_day() -> None:
    was = UsageSum(ENOUGH, 900, 0, 100, 1.0)
    more = UsageSum(10 * ENOUGH, 9000, 0, 1000, 29.9)
    dear = UsageSum(3 * ENOUGH, 1800, 0, 200, 6.0)
    long = UsageSum(ENOUGH, 9000, 0, 1000, 4.0)
    few, unpriced = UsageSum(ENOUGH - 1, 900, 0, 100, 9.0), UsageSum(ENOUGH, 900, 0, 100, 9.0, 1)
    hardly, free = UsageSum(ENOUGH - 1, 900, 0, 100, 0.1), UsageSum(ENOUGH, 900, 0, 100, 0.0)
    before = day(a=was, b=was, c=was, d=was, e=hardly, g=was, h=free)
    today = day(a=dear, b=more, c=few, d=unpriced, e=dear, f=dear, g=long, h=dear)
    told = await Tower(days=(today, before, today, before)).look(3)
    assert [line.partition("，")[0] for line in told] == [
        "price of a: a 今天每个 token 的花费是昨天的 3.0 倍",
        "price of g: g 今天每次请求的花费是昨天的 4.0 倍",
    ]


async def test_what_is_in_progress_at_two_looks_in_a_row_is_told_once() -> None:
    tower = Tower(busy=("ab", "b", "b", "a", "c", "ac"))
    told = [line.partition(" 有")[0] for line in await tower.look(5)]
    assert told == [f"stuck in {GROUP}: {GROUP}"]
    assert len(await tower.look(1)) == 2


async def test_all_of_it_is_told_in_english_where_the_owners_read_that() -> None:
    was, dear = UsageSum(ENOUGH, 900, 0, 100, 1.0), UsageSum(ENOUGH, 900, 0, 100, 3.0)
    tower = Tower(LITTLE - 1, LITTLE, days=(day(a=dear), day(a=was)), busy=("b", "b"), language=Language.ENGLISH)
    assert [line.partition(": ")[2] for line in await tower.look(2)] == [
        "The disk has 1024 MB left. Once it is full, nothing is stored and no question is answered.",
        (
            "a costs 3.0 times as much per token today as yesterday: check its price, its cache and the "
            "length of the questions."
        ),
        (
            f"A turn in {GROUP} has been running for more than ten minutes, and all later ones wait. "
            "Try /stop all there, then a restart."
        ),
    ]


async def test_what_has_gathered_is_a_line_of_a_kind_of_its_own_at_each_look() -> None:
    news = (Bilingual("one", "一"), None, Bilingual("two", "二"))
    assert await Tower(news=news).look(4) == ["one: 一", "two: 二"]
    assert await Tower(news=news, language=Language.ENGLISH).look(3) == ["one: one", "two: two"]
