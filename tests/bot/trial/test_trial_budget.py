from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from adapters.storage.store import SqlStore
from bot.budget.meter import Meter
from bot.core.journal import ENTRIES, Entry, UsageAdded, UsageReleased, UsageReserved
from bot.core.ports import Store
from bot.core.query_results import UsageSum
from bot.core.trial_group import TRIED, TrialLimits
from bot.memory.journal_observers import shown_first
from bot.trial.trial_budget import TRIALS_A_DAY, BudgetTally, PaidModel, PaidStore, TrialBudget
from frostagent.models.failover import Failover
from frostagent.models.openai.client import OpenAIModel
from frostagent.models.prices import Price
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import ModelRejected
from frostagent.types.messages import Completion, ModelRequest, Usage, UserMessage
from frostagent.types.runs import StepFinished
from tests.bot.budget.till import limited
from tests.cases import each_case
from tests.fakes import CountingIds, ManualClock, RecordingStore, ScriptedModel, words

MOST = TrialLimits("m", 0.25, 1000, 3)
REQUEST = ModelRequest((UserMessage("how are you?"),))
NO_COST = replace(MOST, cost=0.0)


def reserved(number: int, *, tokens: int = 100, cost: float | None = None) -> UsageReserved:
    return UsageReserved(turn_id="t1", number=number, model="m@x", usage=Usage(tokens, 0, cost=cost), at=5.0)


def budget(
    most: TrialLimits = MOST, *, day: BudgetTally | None = None, spent: Callable[[], bool] = lambda: False
) -> tuple[TrialBudget, RecordingStore]:
    store = RecordingStore()
    return TrialBudget(most, day=day or BudgetTally(), is_spent=spent, store=store, clock=ManualClock()), store


def test_no_more_requests_are_made_than_it_has_whether_they_come_to_anything_or_not() -> None:
    one, _ = budget()
    for number in range(MOST.requests):
        assert one.lacks == ""
        one.record([reserved(number)])
        one.count_request()
        one.record([UsageReleased(turn_id="t1", number=number)])
    for _ in range(2):
        with pytest.raises(ModelRejected):
            one.count_request()
    assert (one.lacks, one.taken) == ("used_up", UsageSum(requests=3))


@each_case(
    ("most", "tokens", "cost", "lacks"),
    [
        (MOST, 1000, 0.25, ""),
        (MOST, 1001, 0.0, "used_up"),
        (MOST, 10, 0.2501, "used_up"),
        (NO_COST, 10, 9.0, ""),
        (MOST, 10, None, ""),
    ],
)
def test_a_request_is_not_made_where_what_it_may_take_is_beyond_the_rest(
    most: TrialLimits, tokens: int, cost: float | None, lacks: str
) -> None:
    one, _ = budget(most)
    one.record([reserved(1, tokens=tokens, cost=cost)])
    if lacks:
        with pytest.raises(ModelRejected):
            one.count_request()
        one.record([UsageReleased(turn_id="t1", number=1)])
        assert one.taken.prompt == 0
    else:
        one.count_request()
    assert one.lacks == lacks  # and so it stays: what was said to need more would need it again


def test_what_others_of_that_day_took_and_what_is_under_way_there_counts_too() -> None:
    day = BudgetTally()
    for number in range(TRIALS_A_DAY * MOST.requests):
        one, _ = budget(day=day)
        one.record([reserved(number, tokens=1)])
        one.count_request()
        one.record([UsageAdded(turn_id="t", model="m", usage=Usage(1, 1, reserved=number), at=0.0)])
    another, _ = budget(day=day)
    assert another.lacks == "often"
    with pytest.raises(ModelRejected):
        another.count_request()
    assert day.taken == UsageSum(12, 12, 0, 12, 0.0, 12)
    full = BudgetTally()
    full.reserve(1, Usage(TRIALS_A_DAY * MOST.tokens + 1))
    assert budget(day=full)[0].lacks == "often"
    full.release(1)
    assert budget(day=full)[0].lacks == ""


def test_what_was_taken_before_is_part_of_the_sum() -> None:
    day = BudgetTally(UsageSum(TRIALS_A_DAY * MOST.requests - 1, 10, 4, 5, 0.5, 2))
    one, _ = budget(day=day)
    one.count_request()
    one.record([UsageAdded(turn_id="t", model="m", usage=Usage(1, 1), at=0.0)])
    assert day.taken == UsageSum(TRIALS_A_DAY * MOST.requests, 11, 4, 6, 0.5, 3)
    assert one.taken == UsageSum(1, 1, 0, 1, 0.0, 1)
    assert budget(day=day)[0].lacks == "often"
    assert budget(day=BudgetTally(UsageSum(prompt=TRIALS_A_DAY * MOST.tokens + 1)))[0].lacks == "often"


def test_the_day_of_the_bot_is_looked_at_before_each_request() -> None:
    spent = list[bool]()
    one, _ = budget(spent=lambda: bool(spent))
    one.count_request()
    spent.append(True)
    assert one.lacks == "spent"
    with pytest.raises(ModelRejected):
        one.count_request()
    assert one.taken.requests == 1


async def test_a_journal_that_somebody_is_shown_first_still_tells_the_bots_of_money() -> None:
    one, told = budget()
    own, seen = RecordingStore(), list[Entry]()

    class Witness:
        sees = ENTRIES

        def see(self, entry: Entry) -> None:
            seen.append(entry)

    journal = shown_first(PaidStore(own, one), Witness())
    journal.put(reserved(1))
    assert await journal.commit(reserved(2))
    assert seen == own.entries == [reserved(1), reserved(2)]
    assert told.entries == [replace(entry, turn_id=TRIED) for entry in (reserved(1), reserved(2))]
    assert told.durable == 2  # before anything is spent


def test_the_bots_journal_is_told_of_money_alone_and_that_it_was_a_trials() -> None:
    one, store = budget()
    done = replace(words("fine"), usage=Usage(7, 3, cost=0.5, reserved=1), endpoint="m@x")
    entries: list[Entry] = [
        reserved(1),
        StepFinished(run_id="t1", step=1, completion=done, seconds=1.0),
        reserved(2),
        UsageReleased(turn_id="t1", number=2),
        UsageAdded(turn_id="t1", model="n", usage=Usage(1, 1), at=1.0),
        StepFinished(run_id="t1", step=2, completion=replace(words("nobody counted"), usage=None), seconds=1.0),
    ]
    assert one.record(entries)
    assert not one.record(entries[-1:])
    now = ManualClock().now()
    assert store.entries == [
        replace(reserved(1), turn_id=TRIED),
        UsageAdded(turn_id=TRIED, model="m@x", usage=Usage(7, 3, cost=0.5, reserved=1), at=now),
        replace(reserved(2), turn_id=TRIED),
        UsageReleased(turn_id=TRIED, number=2),
        UsageAdded(turn_id=TRIED, model="n", usage=Usage(1, 1), at=now),
    ]
    assert one.taken == UsageSum(0, 8, 0, 4, 0.5, 1)


async def test_a_request_is_in_the_bots_journal_before_the_model_is_asked() -> None:
    order = list[str]()

    class Slow(RecordingStore):
        async def commit(self, *entries: Entry) -> bool:
            is_durable = await super().commit(*entries)
            order.append("durable")
            return is_durable

    async def answer(_: ModelRequest) -> Completion:
        order.append("asked")
        return words("fine")

    bots, own, clock, ids = Slow(), RecordingStore(), ManualClock(), CountingIds()
    one = TrialBudget(MOST, day=BudgetTally(), is_spent=lambda: False, store=bots, clock=clock)
    with ScriptedModel(answer) as scripted:
        upstream = Upstream(PaidModel(scripted, one), price=Price(prompt=1.0, cached=1.0, completion=1.0))
        meter = Meter(journal := PaidStore(own, one), spending=limited(), clock=clock, ids=ids)
        failover = Failover([upstream], clock=clock, ids=ids, meter=meter)
        said = await failover.complete(REQUEST)
        assert order == ["durable", "asked"]
        assert [type(entry) for entry in bots.entries] == [UsageReserved]
        assert bots.entries == [replace(entry, turn_id=TRIED) for entry in own.entries]
        usage = said.usage or Usage()
        journal.put(UsageAdded(turn_id="t", model="m", usage=usage, at=0.0))
        assert (one.taken.requests, one.taken.prompt) == (1, usage.prompt)  # and nothing is under way
        one.count_request()
        one.count_request()
        with pytest.raises(ModelRejected):
            await failover.complete(REQUEST)
        assert order.count("asked") == 1
    assert isinstance(bots.entries[-1], UsageReleased)


async def test_while_the_bots_journal_cannot_be_written_no_request_is_made_and_then_it_is() -> None:
    bots, clock, ids = RecordingStore(), ManualClock(), CountingIds()
    one = TrialBudget(MOST, day=BudgetTally(), is_spent=lambda: False, store=bots, clock=clock)
    with ScriptedModel(words("fine")) as scripted:
        meter = Meter(PaidStore(RecordingStore(), one), spending=limited(), clock=clock, ids=ids)
        failover = Failover([Upstream(PaidModel(scripted, one))], clock=clock, ids=ids, meter=meter)
        bots.trouble = True
        with pytest.raises(ModelRejected):
            await failover.complete(REQUEST)
        assert (scripted.requests, one.taken, one.lacks) == ([], UsageSum(), "")
        bots.trouble = False
        await failover.complete(REQUEST)
        assert (len(scripted.requests), one.taken.requests) == (1, 1)


def test_a_model_and_a_journal_are_paid_for_and_any_other_port_is_as_it_was() -> None:
    one, _ = budget()
    model: Any = OpenAIModel.__new__(OpenAIModel)
    journal: Any = SqlStore.__new__(SqlStore)
    other: Store = RecordingStore()
    assert isinstance(one.wrap(model), PaidModel)
    assert isinstance(one.wrap(journal), PaidStore)
    assert one.wrap(other) is other
