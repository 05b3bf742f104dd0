"""The day's sums while the journal is read once more; what else they are: test_spending.py."""

from __future__ import annotations

from bot.budget.limits import ALL, NOTHING, Amount, Cap, DayLimits
from bot.core.other_bots import UsageTaken
from bot.core.query_results import SpentSum
from tests.bot.budget.till import Till, opened, till_of
from tests.cases import each_case
from tests.fakes import GROUP


async def test_after_a_gap_the_sums_are_those_of_the_journal_and_what_is_taken_meanwhile() -> None:
    till = await till_of(DayLimits(all=Cap(tokens=100)))
    till.takes(40)
    till.book.rows = (SpentSum(GROUP, 777, 40, 0.0), SpentSum(None, 0, 9, 0.0))
    till.book.meanwhile = lambda: till.takes(5)
    await till.spending.reread()
    assert till.spending.taken(ALL) == Amount(54)
    till.book.away = True
    await till.spending.reread()
    assert till.spending.taken(ALL) == Amount(59)


@each_case(
    ("took", "in_the_rows", "known"),
    [
        (1000, 1000, 1000),  # the journal was read once it had ended
        (1000, 1300, 1300),  # and before that: rather too much than too little
        (1500, 1300, 1500),
        (None, 500, 500),  # it was released
        (None, 1800, 1800),
    ],
)
async def test_a_reservation_that_ends_while_the_journal_is_read_is_not_taken_off_what_is_read(
    took: int | None, in_the_rows: int, known: int
) -> None:
    till = await till_of(DayLimits(all=Cap(tokens=5000)))
    till.reserves(1300, 7)
    till.book.rows = (SpentSum(GROUP, 777, in_the_rows, 0.0),)
    till.book.meanwhile = lambda: till.ends(7, took)
    await till.spending.reread()
    assert [till.spending.taken(key) for key in (777, GROUP, ALL)] == [Amount(known)] * 3
    till.reserves(300, 8)
    till.ends(8, 200)
    assert till.spending.taken(ALL) == Amount(known + 200)


@each_case(("took", "known"), [(1000, 1500), (None, 500)])
async def test_a_reservation_that_begins_and_ends_while_the_journal_is_read_is_what_it_took(
    took: int | None, known: int
) -> None:
    till = await till_of(DayLimits(all=Cap(tokens=5000)))
    till.book.rows = (SpentSum(GROUP, 777, 500, 0.0),)

    def meanwhile() -> None:
        till.reserves(1300, 7)
        till.ends(7, took)

    till.book.meanwhile = meanwhile
    await till.spending.reread()
    assert till.spending.taken(ALL) == Amount(known)


async def test_a_reservation_of_a_turn_nobody_knew_is_not_taken_off_what_is_read_either() -> None:
    till = await till_of(DayLimits(all=Cap(tokens=5000)))
    till.reserves(1300, 7, "new")
    till.spending.see(opened("new", GROUP, 777))
    till.book.rows = (SpentSum(GROUP, 777, 1000, 0.0),)
    till.book.meanwhile = lambda: till.takes(1000, "new", reserved=7)
    await till.spending.reread()
    assert till.spending.taken(ALL) == Amount(2000)  # rather twice than never


async def test_what_waited_for_a_broker_while_the_journal_was_read_is_not_counted_twice() -> None:
    till = await till_of(DayLimits(all=Cap(tokens=100)))
    told = till.clock.time
    till.clock.time += 60
    till.book.rows = (SpentSum(GROUP, 777, 40, 0.0),)
    await till.spending.reread()
    till.spending.hear(UsageTaken(GROUP, 777, 40.0, 0.0, told, told))
    assert till.spending.taken(ALL) == Amount(40)
    till.spending.hear(UsageTaken(GROUP, 777, 2.0, 0.0, told, till.clock.time - 0.5))  # it may not be written yet
    assert till.spending.taken(ALL) == Amount(42)


@each_case("waited", [False, True])
@each_case(("more", "known"), [(1300, 1800), (-300, 500)])
async def test_what_is_heard_while_the_journal_is_read_is_rather_twice_than_never_in_what_is_read(
    more: int, known: int, waited: bool
) -> None:
    till = await till_of(DayLimits(all=Cap(tokens=5000)))
    till.takes(400)
    till.clock.time += 60
    told = till.clock.time - (30 if waited else 0.5)  # what waited so long is in the rows
    till.book.meanwhile = lambda: till.spending.hear(UsageTaken(GROUP, 777, more, 0.0, told, told))
    till.book.away = True
    await till.spending.reread()
    assert till.spending.taken(ALL) == Amount(400 + more)  # nothing was read
    till.book.away, till.book.rows = False, (SpentSum(GROUP, 777, 500, 0.0),)
    await till.spending.reread()
    assert [till.spending.taken(key) for key in (777, GROUP, ALL)] == [Amount(500 if waited else known)] * 3


async def test_what_ends_elsewhere_is_not_taken_off_rows_that_may_have_told_it() -> None:
    till = await till_of(DayLimits(all=Cap(tokens=5000)))
    till.book.rows = (SpentSum(GROUP, 777, 500, 0.0),)
    began = till.clock.time

    def meanwhile() -> None:
        till.clock.time += 20

    till.book.meanwhile = meanwhile
    await till.spending.reread()
    for told in (began - 0.5, began + 19):
        till.spending.hear(UsageTaken(GROUP, 777, -200, 0.0, told, told))
        assert till.spending.taken(ALL) == Amount(500)
    till.spending.hear(UsageTaken(GROUP, 777, 90, 0.0, began, began + 19))
    till.spending.hear(UsageTaken(GROUP, 777, -70, 0.0, began, began + 21))
    assert till.spending.taken(ALL) == Amount(520)


async def test_nor_off_the_first_that_are_read() -> None:
    till = Till(DayLimits(all=Cap(tokens=5000)))
    till.book.rows = (SpentSum(GROUP, 777, 500, 0.0),)
    now = till.clock.time
    till.spending.hear(UsageTaken(GROUP, 777, -200, 0.0, now, now + 1))
    assert await till.spending.load()
    assert till.spending.taken(ALL) == Amount(500)


async def test_a_gap_before_the_sums_are_read_is_closed_when_they_are() -> None:
    till, reads = Till(DayLimits(all=Cap(tokens=100))), list[int]()
    till.book.rows = (SpentSum(GROUP, 777, 40, 0.0),)
    till.book.meanwhile = lambda: reads.append(1)
    await till.spending.reread()
    assert till.spending.taken(ALL) == NOTHING
    assert await till.spending.load()
    assert (till.spending.taken(ALL), len(reads)) == (Amount(40), 2)
