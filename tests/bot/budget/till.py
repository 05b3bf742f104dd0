"""A day's sums between fakes."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec.structs import replace

from bot.budget.limits import Cap, DayLimits, LimitLevel, OwnLimits
from bot.budget.shared_spending import SharedSpending
from bot.budget.spending import Spending
from bot.core.calendar_days import midnight
from bot.core.conversation import Conversation
from bot.core.journal import Entry, TurnOpened, UsageAdded, UsageReleased, UsageReserved
from bot.core.language import Language
from bot.core.other_bots import Announcer
from bot.core.query_results import SpentSum
from frostagent.types.messages import Usage
from tests.adapters.storage.entries import opening
from tests.bot.commands.books import PaperBooks
from tests.fakes import BOT, GROUP, PRIVATE, ManualClock, RecordingStore, said
from tests.owners import read
from tests.settings import kept_settings

ELSEWHERE = Conversation(BOT, "group", 5252)


class Empty(PaperBooks):
    """A book of a journal in which nothing is yet, but for `rows`; `away` while it cannot be read."""

    away = False
    rows: tuple[SpentSum, ...] = ()
    turns: tuple[tuple[str, Conversation, int], ...] = (("t0", GROUP, 777),)
    meanwhile: Callable[[], None] = list[None]().clear

    async def taken(self, *, since: float, until: float) -> tuple[SpentSum, ...] | None:
        self.meanwhile()
        return None if self.away else self.rows if since <= until else ()

    async def latest_payers(self, *, latest: int) -> tuple[tuple[str, Conversation, int], ...] | None:
        return None if self.away else self.turns[:latest]


class Till:
    """A day's sums between fakes; `told` is what the owner heard."""

    def __init__(
        self,
        limits: DayLimits,
        *,
        language: Language = Language.CHINESE,
        announcer: Announcer | None = None,
        store: RecordingStore | None = None,
    ) -> None:
        self.clock, self.told, self.book = ManualClock(), list[str](), Empty()
        self.clock.time = midnight(1_700_000_000.0) + 3600
        self.store = store or RecordingStore()
        own = OwnLimits(settings=kept_settings(self.store, clock=self.clock), clock=self.clock)
        clock, owners, tell = self.clock, frozenset({999}), read(self.told, language)
        self.spending = (
            Spending(limits, own=own, book=self.book, owners=owners, clock=clock, tell=tell)
            if announcer is None
            else SharedSpending(
                limits, own=own, book=self.book, owners=owners, clock=clock, tell=tell, announcer=announcer
            )
        )
        self.spending.see(opened("t1", GROUP, 777))
        self.spending.see(opened("p1", PRIVATE, 777))

    def takes(self, tokens: int, turn_id: str = "t1", *, reserved: int = 0, cost: float | None = None) -> None:
        usage = Usage(tokens, cost=cost, reserved=reserved)
        self.spending.see(UsageAdded(turn_id=turn_id, model="m", usage=usage, at=self.clock.now()))

    def reserves(self, tokens: int, number: int, turn_id: str = "t1") -> None:
        at = self.clock.now()
        self.spending.see(UsageReserved(turn_id=turn_id, number=number, model="m", usage=Usage(tokens), at=at))

    def ends(self, number: int, took: int | None) -> None:
        """The reservation: it took so much, or is released."""
        if took is None:
            self.spending.see(UsageReleased(turn_id="t1", number=number))
        else:
            self.takes(took, reserved=number)

    def rung(self, where: Conversation = GROUP, who: int = 777) -> LimitLevel:
        return self.spending.rung(where, who)


async def till_of(limits: DayLimits) -> Till:
    """One whose journal was read."""
    till = Till(limits)
    assert await till.spending.load()
    return till


def limited() -> Spending:
    """Of a day with a limit that nothing here reaches: all requests are reserved."""
    return Till(DayLimits(all=Cap(tokens=10**9))).spending


def unlimited() -> Spending:
    return Till(DayLimits()).spending


def opened(turn_id: str, where: Conversation, who: int) -> TurnOpened:
    return replace(opening(turn_id), question=said("hi", where=where, user=who))


def traffic(chance: random.Random, turn_id: str, under_way: list[UsageReserved], now: float) -> list[Entry]:
    """What happens next: a turn that asks, once or more, or an end of something under way."""
    usage = Usage(chance.randrange(500), chance.randrange(90), cost=chance.choice((None, 0.25, 0.5)))
    if under_way and chance.random() < 0.5:
        one = under_way.pop(chance.randrange(len(under_way)))
        settled = replace(usage, reserved=one.number)
        return [
            chance.choice(
                (
                    UsageReleased(turn_id=one.turn_id, number=one.number),
                    UsageAdded(turn_id=one.turn_id, model="m", usage=settled, at=now),
                )
            )
        ]
    where, who = chance.choice((GROUP, ELSEWHERE, PRIVATE)), chance.choice((5, 777))
    reserved = UsageReserved(turn_id=turn_id, number=1 + chance.randrange(10**6), model="m", usage=usage, at=now)
    under_way.append(reserved)
    turn = replace(opened(turn_id, where, who), uncalled=chance.random() < 0.3)
    if chance.random() < 0.3:  # a voice, before the turn is open, which it may never be
        payer = where, 0 if turn.uncalled else who
        heard = replace(reserved, number=reserved.number + 10**6, payer=payer)
        added = UsageAdded(turn_id=turn_id, model="w", usage=Usage(30, reserved=heard.number), at=now, payer=payer)
        early: list[Entry] = [heard, added, replace(added, usage=Usage(40))]
        if chance.random() < 0.5:
            under_way.pop()
            return early[: chance.randint(1, 3)]
        return [*early, turn, reserved]
    return [turn, reserved, UsageAdded(turn_id=turn_id, model="m", usage=usage, at=now)]
