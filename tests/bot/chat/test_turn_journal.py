from __future__ import annotations

from bot.budget.limits import Cap, DayLimits
from bot.budget.meter import Meter
from bot.chat.turn_journal import TurnJournal
from bot.core.journal import TurnClosed, TurnOpened, UsageReserved
from bot.memory.history import History
from frostagent.types.messages import Completion, ModelRequest, Usage, UserMessage
from frostagent.types.runs import Stop
from tests.bot.budget.till import Till
from tests.bot.chat.test_turn import living
from tests.fakes import (
    GROUP,
    CountingIds,
    ManualClock,
    RecordingStore,
    said,
    words,
)


async def test_a_turn_is_committed_before_its_model_request_and_closed_with_its_round() -> None:
    async def think(request: ModelRequest) -> Completion:
        (opened,) = house.store.of("turn_opened")
        assert isinstance(opened, TurnOpened)
        assert request.messages[-1].text.startswith(f"{opened.user.text}\n[此刻] ")
        assert house.store.durable == len(house.store.entries)
        return words("yes")

    async with living(think) as house:
        question = said("hi")
        await house.turns.answer(question)
        closed = house.store.entries[-1]
        assert isinstance(closed, TurnClosed)
        assert closed.round == house.history.messages(GROUP)
        assert (closed.stop, closed.steps, closed.usage.prompt) == (Stop.ANSWERED, 1, 10)


async def test_where_requests_are_reserved_a_turn_is_committed_with_what_its_first_one_reserves() -> None:
    store, clock, spending = RecordingStore(), ManualClock(), Till(DayLimits(all=Cap(tokens=1000))).spending
    turn_journal = TurnJournal(store, History(store=store), clock, spending=spending)
    meter = Meter(store, clock=clock, ids=CountingIds(), spending=spending)
    asked = said("hi")
    opened = TurnOpened(turn_id="t1", question=asked, user=UserMessage("hi"), at=1.0)
    await turn_journal.begin(opened)
    assert (store.entries, store.durable) == ([opened], 0)
    assert await meter.reserve("m", lambda: Usage(5, 1))
    assert [type(entry) for entry in store.entries] == [TurnOpened, UsageReserved]
    assert store.durable == 2
    spending = Till(DayLimits()).spending
    await TurnJournal(store, History(store=store), clock, spending=spending).begin(opened)
    assert store.durable == len(store.entries) == 3
