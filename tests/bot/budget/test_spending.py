from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from adapters.storage.migrations import migrate
from adapters.storage.store import SqlStore, open_store
from bot.budget.limits import ALL, NOTHING, Amount, Cap, DayLimits, LimitLevel, OwnLimits
from bot.budget.spending import NOBODY, TURNS, Payer, Spending
from bot.core.calendar_days import midnight
from bot.core.conversation import Conversation
from bot.core.journal import UsageAdded, UsageReleased, UsageReserved
from bot.core.language import Language
from bot.core.other_bots import UsageTaken
from bot.core.query_results import SpentSum
from bot.memory.journal_observers import ObservedStore
from bot.web import read_today
from frostagent.clock import SystemClock
from frostagent.types.messages import Usage
from tests.bot.budget.till import ELSEWHERE, Empty, Till, opened, till_of
from tests.bot.budget.traffic import WAYS, Traffic
from tests.bot.test_settings_store import Ear
from tests.fakes import GROUP, PRIVATE, ManualClock
from tests.owners import both, read
from tests.settings import kept_settings


async def test_each_rung_is_reached_by_what_somebody_took_wherever_he_asked() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    rungs = []
    for turn_id, tokens in (("t1", 69), ("p1", 1), ("t1", 15), ("p1", 10), ("t1", 5)):
        till.takes(tokens, turn_id)
        rungs.append(till.rung())
    assert rungs == [LimitLevel.ALL, LimitLevel.CHEAP, LimitLevel.PLAIN, LimitLevel.BARE, LimitLevel.SPENT]
    assert [till.rung(who=5), till.rung(PRIVATE)] == [LimitLevel.ALL, LimitLevel.SPENT]
    till.spending.see(opened("o1", GROUP, 999))
    till.takes(100, "o1")  # an owner, who has no limit
    assert till.told == []  # of people the owner hears together
    people, _ = both(till.spending.alerts.take_people() or "")
    assert "：777（100%）。" in people


async def test_what_nobody_called_for_is_its_groups_alone_an_owners_words_too() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100), group=Cap(tokens=100)))
    for turn_id, who in (("c1", 777), ("c2", 999)):
        till.spending.see(replace(opened(turn_id, GROUP, who), uncalled=True))
        till.takes(50, turn_id)
    assert [till.spending.taken(key) for key in (777, 999, GROUP)] == [NOTHING, NOTHING, Amount(100)]
    rungs = [till.spending.rung_of(turn_id) for turn_id in ("c2", "p1", "unknown")]
    assert [*rungs, till.rung(who=0)] == [LimitLevel.SPENT, LimitLevel.ALL, LimitLevel.ALL, LimitLevel.SPENT]


async def test_the_owner_hears_of_a_day_that_is_spent_in_his_language() -> None:
    till = Till(DayLimits(group=Cap(cost=1.0), all=Cap(cost=1.0)), language=Language.ENGLISH)
    assert await till.spending.load()
    till.takes(10, cost=0.9)
    till.takes(10, cost=0.1)
    near = "90 % of what may be spent today is spent ($0.9000, 10 token). Once all is,"
    over = "100 % of what may be spent"
    assert [line.startswith(("All conversations: ", "Group 4242: ")) for line in till.told] == [True] * 4
    assert [near in line for line in till.told] == [True, True, False, False]
    assert [over in line for line in till.told] == [False, False, True, True]
    assert till.told[2].endswith(". Nobody there is answered until midnight.")


async def test_a_group_and_all_have_their_own_sums_and_the_owner_hears_of_each_at_80_and_100_once() -> None:
    till = await till_of(DayLimits(group=Cap(cost=1.0), all=Cap(tokens=1000)))
    till.takes(10, cost=0.79)
    assert till.told == []
    till.takes(10, cost=0.02)
    till.takes(10, cost=0.1)
    assert [line.startswith("群 4242 今天的额度用了 81%") for line in till.told] == [True]
    till.takes(970, cost=0.2)
    assert [line[:9] for line in till.told[1:]] == ["所有会话今天的额度", "群 4242 今天"]
    assert [till.rung(who=5), till.rung(ELSEWHERE, 5)] == [LimitLevel.SPENT, LimitLevel.SPENT]
    assert till.rung(who=999) is LimitLevel.ALL
    till.takes(200)
    assert till.rung(PRIVATE, 999) is LimitLevel.SPENT


async def test_of_unknown_price_only_the_tokens_count() -> None:
    till = await till_of(DayLimits(user=Cap(cost=0.01, tokens=100)))
    till.takes(60, cost=None)
    assert till.spending.taken(777) == Amount(60, 0.0)
    assert till.rung() is LimitLevel.ALL


async def test_what_is_reserved_counts_until_it_is_settled_or_released() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    for number, tokens in ((7, 60), (8, 40)):
        usage = Usage(tokens)
        till.spending.see(UsageReserved(turn_id="t1", number=number, model="m", usage=usage, at=till.clock.now()))
    assert till.rung() is LimitLevel.SPENT
    assert till.spending.reserved == Amount(100)
    till.spending.see(UsageReleased(turn_id="t1", number=8))
    till.takes(10, reserved=7)
    till.takes(0, reserved=7)
    assert till.spending.reserved == NOTHING
    assert [till.spending.taken(key) for key in (777, GROUP, ALL)] == [Amount(10)] * 3
    usage = Usage(60, cost=0.5)  # for a turn of which nobody knows yet whose it is
    till.spending.see(UsageReserved(turn_id="new", number=9, model="m", usage=usage, at=till.clock.now()))
    till.spending.see(opened("new", GROUP, 777))
    till.takes(10, "new", reserved=9, cost=0.25)
    assert [till.spending.taken(key) for key in (777, GROUP, ALL)] == [Amount(20, 0.25)] * 3


async def test_at_midnight_all_begins_anew_and_what_was_reserved_before_is_not_taken_off() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    till.takes(80)
    till.spending.see(UsageReserved(turn_id="t1", number=7, model="m", usage=Usage(20), at=till.clock.now()))
    assert till.rung() is LimitLevel.SPENT
    till.clock.time = till.spending.ends()
    assert (till.rung(), till.spending.taken(777)) == (LimitLevel.ALL, NOTHING)
    till.takes(5, reserved=7)
    assert till.spending.taken(ALL) == Amount(5)


async def test_a_clock_that_goes_back_over_midnight_gives_nobody_the_day_once_more() -> None:
    till = Till(DayLimits(user=Cap(tokens=100)))
    await till.spending.load()
    till.clock.time = midnight(till.clock.time, later=1) + 0.5
    till.takes(100)
    for moment in (-0.4, 0.6, -3600.0, 1.0):
        till.clock.time = till.spending.ends() - 86_400 + moment
        assert till.rung() is LimitLevel.SPENT
        assert till.spending.taken(777) == Amount(100)
    till.clock.time = till.spending.ends()
    assert till.rung() is LimitLevel.ALL
    till.takes(100)
    till.clock.time -= 3700.0  # the clock was wrong altogether: the day it shows now is another one
    assert till.rung() is LimitLevel.ALL


async def test_the_owner_hears_anew_on_another_day_and_not_anew_after_a_restart() -> None:
    till = Till(DayLimits(all=Cap(tokens=100)))
    till.book.rows = (SpentSum(GROUP, 777, 85, 0.0),)
    await till.spending.load()
    till.takes(5)
    assert till.told == []
    till.takes(10)
    assert len(till.told) == 1
    till.clock.time = till.spending.ends()
    till.takes(90)
    assert len(till.told) == 2


async def test_what_was_taken_or_reserved_before_midnight_is_none_of_the_new_days() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    before = till.clock.now()
    till.spending.see(UsageReserved(turn_id="t1", number=7, model="m", usage=Usage(20), at=before))
    till.clock.time = till.spending.ends()
    till.spending.see(UsageAdded(turn_id="t1", model="m", usage=Usage(30), at=before))
    assert (till.spending.taken(ALL), till.spending.reserved) == (NOTHING, NOTHING)


async def test_sums_that_were_read_while_the_day_ended_are_read_again() -> None:
    till = Till(DayLimits(user=Cap(tokens=100)))
    till.book.rows = (SpentSum(GROUP, 777, 100, 0.0),)

    class Slow(Empty):
        async def latest_payers(self, *, latest: int) -> tuple[tuple[str, Conversation, int], ...] | None:
            till.clock.time = midnight(till.clock.time, later=1)
            till.spending.ends()
            return await till.book.latest_payers(latest=latest)

    own = OwnLimits(settings=kept_settings(till.store, clock=till.clock), clock=till.clock)
    slow = Slow()
    slow.rows = till.book.rows
    till.spending = Spending(
        till.spending.limits, own=own, book=slow, owners=frozenset(), clock=till.clock, tell=read(till.told)
    )
    assert not await till.spending.load()
    assert till.spending.taken(777) == NOTHING


async def test_the_sums_of_before_are_read_once_and_added_and_until_then_only_owners_get_more_than_the_least() -> None:
    till = Till(DayLimits(user=Cap(tokens=100)))
    till.book.away, till.book.rows = True, (SpentSum(GROUP, 777, 40, 0.4),)
    assert not await till.spending.load()
    till.takes(10)
    assert [till.rung(), till.rung(who=999)] == [LimitLevel.BARE, LimitLevel.ALL]
    assert read_today(till.spending) is None
    till.book.away = False
    assert await till.spending.load()
    assert till.spending.taken(777) == Amount(50, 0.4)
    till.takes(5, "t0")
    assert till.spending.taken(777) == Amount(55, 0.4)
    assert [till.rung(), Till(DayLimits()).rung()] == [LimitLevel.ALL, LimitLevel.ALL]


async def test_who_reached_a_mark_just_before_midnight_is_told_of_as_of_the_day_before() -> None:
    till = await till_of(DayLimits(user=Cap(tokens=100)))
    till.takes(100)
    till.clock.time = till.spending.ends()  # nothing has happened since
    yesterday, _ = both(till.spending.alerts.take_people() or "")
    assert yesterday == "昨天个人一天的额度快用完或已用完的：777（100%）。"
    assert till.spending.alerts.take_people() is None


async def test_of_more_turns_than_are_known_the_newest_are() -> None:
    till = Till(DayLimits())
    till.book.turns = tuple((f"b{number}", GROUP, 777) for number in range(TURNS))
    assert await till.spending.load()
    till.spending.see(opened("t2", GROUP, 777))
    till.takes(5, "b0")
    till.takes(5, "t1")
    assert till.spending.taken(777) == Amount(10)


def test_who_nobody_knows_pays_for_all() -> None:
    assert NOBODY.keys == (ALL,)
    assert Payer(PRIVATE, 5).keys == (ALL, 5)


# --- the sums are those of the rows ---------------------------------------------------------------


class Shifted(SystemClock):
    """The time of the test, on which what the store does by itself goes on as ever."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.now = clock.now


@pytest.mark.parametrize("reserves", [True, False])
async def test_over_random_traffic_and_crashes_the_sums_are_those_of_the_rows_and_of_what_models_took(
    url: str, *, reserves: bool
) -> None:
    chance, clock = random.Random(reserves), ManualClock()
    clock.time = midnight(1_700_000_000.0) + 60
    day = Traffic(chance, clock, reserves)
    for life in range(4):  # what is under way at the end of one is never settled
        async with open_store(
            url, keep_days=0, keep_messages=0, clock=Shifted(clock), trouble=lambda _: None, migrate=migrate
        ) as store:
            own = OwnLimits(settings=kept_settings(store, store.books, clock=clock), clock=clock)
            spending = Spending(
                DayLimits(), own=own, book=store.books, owners=frozenset(), clock=clock, tell=lambda _: None
            )
            assert await spending.load()
            day.begin(ObservedStore(store, [spending]))
            await compare(spending, store, day)
            for _ in range(40):
                await day.go_on()
            if life == 2:
                clock.time = spending.ends() - 5000  # the next one begins before midnight, and goes on after it
            assert await store.commit()
            await compare(spending, store, day)
    assert day.ways >= {*WAYS, "ask", "ask_inside", "speak", "end_here", "is told", "is not told", "fails and takes"}


async def compare(spending: Spending, store: SqlStore, day: Traffic) -> None:
    """The sums in memory are those of /usage, of everybody, everywhere, and of what models took; the digest, which the
    console shows, and /metrics say the same.
    """
    begin = spending.ends() - 86_400
    today = [one for one in day.taken if one[0] >= begin]
    for key, where, who in ((ALL, None, None), (GROUP, GROUP, None), (5, None, 5), (777, None, 777)):
        row = await store.books.usage(since=begin, where=where, asker=who)
        assert row is not None
        taken = spending.taken(key)
        assert (taken.tokens, taken.cost) == pytest.approx((row.prompt + row.completion, row.cost)), key
        theirs = [
            one for one in today if (where is None or one[1].where == where) and (who is None or one[1].who == who)
        ]
        tokens, costs = sum(one[2] for one in theirs), [one[3] for one in theirs if one[3] is not None]
        assert (taken.tokens, taken.cost) == pytest.approx((tokens, sum(costs))), key
        assert (row.requests, row.unpriced) == (len(theirs), len(theirs) - len(costs)), key
        if who is None:
            told = await store.books.day(since=begin, until=spending.ends(), where=where)
            assert told is not None
            used = [used for _, used in told.models]
            sums = sum(one.prompt + one.completion for one in used), sum(one.cost for one in used)
            assert sums == pytest.approx((taken.tokens, taken.cost)), key
    figures = read_today(spending)
    assert figures is not None
    assert figures.used is None  # there is no limit
    assert (figures.tokens, figures.cost) == (spending.taken(ALL).tokens, spending.taken(ALL).known_cost)


async def test_what_is_taken_here_counts_in_every_bot_and_a_limit_is_told_of_where_it_is_passed() -> None:
    ear = Ear()
    here, there = (Till(DayLimits(all=Cap(tokens=100)), announcer=one) for one in (ear, Ear()))
    assert await here.spending.load()
    assert await there.spending.load()
    here.takes(60)
    reserved = Usage(30, cost=0.5)
    now = here.clock.now()
    here.spending.see(UsageReserved(turn_id="t1", number=4, model="m", usage=reserved, at=now))
    here.spending.see(UsageReleased(turn_id="t1", number=4))
    here.takes(25)
    assert [(note.tokens, note.cost) for note in ear.notes if isinstance(note, UsageTaken)] == [
        *((60, 0.0), (30, 0.5), (-30, -0.5), (25, 0.0))
    ]
    for note in ear.notes:
        assert isinstance(note, UsageTaken)
        there.spending.hear(note)
    keys = (ALL, 777, GROUP)
    assert [there.spending.taken(key) for key in keys] == [here.spending.taken(key) for key in keys]
    assert there.spending.taken(ALL).tokens == 85
    assert [len(here.told), len(there.told)] == [1, 0]
    there.takes(5)
    assert [len(here.told), len(there.told)] == [1, 0]  # the first mark was passed elsewhere
    there.takes(15)
    assert [len(here.told), len(there.told)] == [1, 1]
    assert "105" in there.told[0]


async def test_a_mark_that_is_passed_by_what_is_under_way_here_is_not_taken_for_told_elsewhere() -> None:
    till = Till(DayLimits(all=Cap(tokens=100)), announcer=Ear())
    assert await till.spending.load()
    till.takes(70)
    till.reserves(10, number=4)
    till.spending.hear(UsageTaken(GROUP, 777, 5.0, 0.0, till.clock.now(), till.clock.now()))
    assert (till.spending.taken(ALL).tokens, till.told) == (85, [])
    till.ends(4, took=9)
    assert [line.startswith("所有会话今天的额度用了 84%") for line in till.told] == [True]


async def test_what_was_taken_yesterday_elsewhere_is_not_counted_today() -> None:
    till = await till_of(DayLimits(all=Cap(tokens=100)))
    now = till.clock.time
    till.spending.hear(UsageTaken(GROUP, 777, 90.0, 0.0, midnight(now) - 1, now))
    assert till.rung() is LimitLevel.ALL
