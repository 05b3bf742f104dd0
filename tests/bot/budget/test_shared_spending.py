from __future__ import annotations

from bot.budget.limits import LIFTED, Cap, DayLimits, LimitLevel, LimitOverride, OwnLimits
from bot.budget.shared_spending import SharedSpending
from bot.core.calendar_days import midnight
from bot.core.journal import DayStanding, UsageAdded, UsageReleased, UsageReserved
from bot.core.other_bots import UsageTaken
from frostagent.types.messages import Usage
from tests.bot.budget.till import Empty, opened
from tests.bot.test_settings_store import Ear
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock, RecordingStore
from tests.settings import kept_settings

OWNER = 999
LIMITS = DayLimits(user=Cap(tokens=100), all=Cap(cost=1.0))


class Desk:
    """One of several bots that share limits, between fakes."""

    def __init__(self, limits: DayLimits = LIMITS) -> None:
        self.clock, store, book = ManualClock(midnight(1_700_000_000.0) + 3600), RecordingStore(), Empty()
        self.own = OwnLimits(settings=kept_settings(store, clock=self.clock), clock=self.clock)
        self.ear = Ear()
        self.spending = SharedSpending(
            limits,
            own=self.own,
            book=book,
            owners=frozenset({OWNER}),
            clock=self.clock,
            tell=lambda _: None,
            announcer=self.ear,
        )
        for turn_id, who in (("t1", 777), ("t2", 777), ("t5", OWNER)):
            self.spending.see(opened(turn_id, GROUP, who))

    def finds(self, number: int = 1, turn_id: str = "t1", who: int = 777, *, cost: float = 0, tokens: int = 0) -> bool:
        """A reservation finds what was taken; whether it is refused then."""
        at = self.clock.now()
        stood = DayStanding(turn_id, number, who, at, (0, cost), (tokens, 0))
        self.spending.find((stood,))
        return self.spending.refuses(turn_id, number)

    def reserves(self, number: int, tokens: int) -> None:
        at, usage = self.clock.now(), Usage(tokens)
        self.spending.see(UsageReserved(turn_id="t1", number=number, model="m", usage=usage, at=at))

    def told(self) -> list[float]:
        """The tokens that the others heard of."""
        return [note.tokens for note in self.ear.notes if isinstance(note, UsageTaken)]


async def desk_of(limits: DayLimits = LIMITS) -> Desk:
    desk = Desk(limits)
    assert await desk.spending.load()
    return desk


@each_case(
    ("who", "cost", "tokens", "refused"),
    [
        (777, 0.99, 99, False),
        (777, 1.0, 0, True),
        (777, 0.0, 100, True),
        (0, 0.99, 100, False),  # what nobody called for is nobody's
        (OWNER, 1.19, 1000, False),
        (OWNER, 1.2, 0, True),
    ],
)
async def test_what_was_reserved_is_refused_where_the_day_was_spent_before(
    who: int, cost: float, tokens: int, refused: bool
) -> None:
    desk = await desk_of()
    assert desk.finds(who=who, cost=cost, tokens=tokens if who else 0) is refused
    assert not desk.spending.refuses("t1", 1)  # it is said once


async def test_a_turn_that_was_refused_has_its_last_words_left_until_the_day_is_over() -> None:
    desk = await desk_of()
    spending = desk.spending
    assert not desk.finds(tokens=50)
    assert desk.finds(number=2, tokens=120)
    assert not spending.refuses("t1", 3)
    assert [spending.rung_of("t1"), spending.rung_of("t2"), spending.rung(GROUP, 777)] == [
        LimitLevel.SPENT,
        *[LimitLevel.ALL] * 2,
    ]
    assert spending.is_spent("t1")
    desk.clock.time = spending.ends()
    assert spending.rung_of("t1") is LimitLevel.ALL


async def test_what_was_found_of_a_day_that_is_over_is_nothing_to_the_next() -> None:
    desk = await desk_of()
    late = DayStanding("t1", 1, 777, desk.clock.now(), (0, 5.0), (500, 0))
    desk.spending.find((late,))
    desk.clock.time = desk.spending.ends()
    assert not desk.spending.refuses("t1", 1)
    desk.spending.find((late,))
    assert not desk.spending.refuses("t1", 1)


async def test_what_an_owner_set_for_somebody_holds() -> None:
    desk = await desk_of(DayLimits())
    assert desk.spending.counts == (False, False)
    assert await desk.own.keep(777, LimitOverride(tokens=10))
    assert desk.spending.counts == (False, True)
    assert desk.finds(tokens=10)
    assert await desk.own.keep(777, LIFTED)
    assert not desk.finds(number=2, turn_id="t2", tokens=10)


async def test_others_hear_of_what_is_reserved_once_it_stands_in_the_journal_or_ends() -> None:
    desk = await desk_of()
    for number, tokens in ((1, 10), (2, 20), (3, 30)):
        desk.reserves(number, tokens)
    assert (desk.told(), desk.spending.taken(777).tokens) == ([], 60)
    assert not desk.finds(2)
    assert desk.told() == [20]
    desk.spending.see(UsageReleased(turn_id="t1", number=1))
    assert desk.told() == [20, 10, -10]
    took = Usage(7, reserved=3)
    desk.spending.see(UsageAdded(turn_id="t1", model="m", usage=took, at=desk.clock.now()))
    assert not desk.finds(3)
    assert desk.told() == [20, 10, -10, 30, -23]
    assert desk.spending.taken(777).tokens == 27


async def test_where_nothing_is_counted_they_hear_of_it_at_once() -> None:
    desk = await desk_of(DayLimits(group=Cap(tokens=100)))
    desk.reserves(1, 10)
    assert desk.told() == [10]
    desk.spending.see(UsageReleased(turn_id="t1", number=1))
    assert desk.told() == [10, -10]


def test_what_has_no_limit_need_not_be_counted() -> None:
    kinds = LIMITS, DayLimits(group=Cap(1.0)), DayLimits(all=Cap(1.0))
    counts = [Desk(limits).spending.counts for limits in kinds]
    assert counts == [(True, True), (False, False), (True, False)]
