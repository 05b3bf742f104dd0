from __future__ import annotations

import asyncio
import random

import pytest
from msgspec.structs import replace

from bot.budget.limits import Cap, DayLimits
from bot.budget.meter import Meter
from bot.budget.trial_account import TRIALS_A_DAY, TrialAccount
from bot.core.calendar_days import midnight
from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from bot.core.trial_group import TRIED, TrialLimits
from bot.memory.journal_observers import ObservedStore
from frostagent.engine.budget import Budget, Limits, Room
from frostagent.models.failover import Failover
from frostagent.models.prices import Price
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import DaySpent, ModelRejected
from frostagent.types.messages import Completion, ModelRequest, Usage, UserMessage
from frostagent.types.runs import StepFinished
from tests.bot.budget.bank import bank
from tests.bot.budget.till import limited, unlimited
from tests.bot.commands.books import PaperBooks
from tests.fakes import GROUP, CountingIds, ManualClock, RecordingStore, ScriptedModel, words

CEILING = TrialLimits("m", 0.25, 1000, 3)
REQUEST = ModelRequest((UserMessage("how are you?"),))
NO_COST = replace(CEILING, cost=0.0)


def reserved(number: int, *, tokens: int = 100, cost: float | None = None, at: float = 5.0) -> UsageReserved:
    return UsageReserved(turn_id="t1", number=number, model="m@x", usage=Usage(tokens, 0, cost=cost), at=at)


def settled(number: int, *, tokens: int = 100) -> UsageAdded:
    return UsageAdded(turn_id="t1", model="m@x", usage=Usage(tokens, reserved=number), at=5.0)


def released(number: int) -> UsageReleased:
    return UsageReleased(turn_id="t1", number=number)


async def ask(one: TrialAccount, number: int, **more: float) -> bool:
    """Whether a request is admitted, whose reservation stays; one that is refused is released."""
    one.see(reserved(number, tokens=int(more.get("tokens", 100)), cost=more.get("cost"), at=one._clock.now()))
    try:
        await one.admit(number)
    except DaySpent:
        one.see(released(number))
        return False
    return True


async def test_only_its_number_of_requests_is_made_whether_they_succeed_or_fail(url: str) -> None:
    async with bank(url) as bot:
        one = bot.account(CEILING)
        for number in range(1, CEILING.requests + 1):
            assert one.lacks == ""
            assert await ask(one, number)
            one.see(released(number))
        assert not await ask(one, 8)
        assert not await ask(one, 9)
        assert (one.lacks, one.requests, await bot.rows()) == ("used_up", 3, [])


async def test_of_requests_made_at_the_same_time_no_more_are_admitted(url: str) -> None:
    async with bank(url) as bot:
        one = bot.account(CEILING)
        made = await asyncio.gather(*(ask(one, number, tokens=1) for number in range(1, 7)))
        assert (sum(made), one.requests, len(await bot.rows())) == (3, 3, 3)


@pytest.mark.parametrize(
    ("ceiling", "tokens", "cost", "lacks"),
    [
        (CEILING, 1000, 0.25, ""),
        (CEILING, 1001, 0.0, "used_up"),
        (CEILING, 10, 0.2501, "used_up"),
        (NO_COST, 10, 9.0, ""),
        (CEILING, 10, None, ""),
    ],
)
async def test_a_request_is_refused_if_its_estimate_exceeds_the_rest(
    url: str, ceiling: TrialLimits, tokens: int, cost: float | None, lacks: str
) -> None:
    async with bank(url) as bot:
        one = bot.account(ceiling)
        more = {"tokens": tokens} if cost is None else {"tokens": tokens, "cost": cost}
        assert await ask(one, 1, **more) is not bool(lacks)
        assert one.lacks == lacks  # and stays so: a question that needed more would need it again
        assert len(await bot.rows()) == (not lacks)


async def test_all_trials_of_a_day_share_a_limit_that_the_journal_remembers_over_restarts(url: str) -> None:
    clock = ManualClock()
    clock.time = midnight(clock.time) + 60
    number = 0
    for _ in range(TRIALS_A_DAY):  # each in a process of its own
        async with bank(url, clock=clock) as bot:
            doctors = replace(settled(0), turn_id="", at=clock.now())
            assert await bot.store.commit(doctors)  # are no trials
            one = bot.account(CEILING)
            assert await one.find_lack() == ""
            for _ in range(CEILING.requests):
                number += 1
                assert await ask(one, number, tokens=1)
    async with bank(url, clock=clock) as bot:
        late = bot.account(CEILING)
        assert not await ask(late, 99)
        assert (late.lacks, await bot.account(CEILING).find_lack()) == ("often", "often")
        clock.time += 86_400
        assert await bot.account(CEILING).find_lack() == ""


async def test_tokens_of_a_day_are_shared_as_requests_are(url: str) -> None:
    async with bank(url) as bot:
        spent = replace(settled(0, tokens=TRIALS_A_DAY * CEILING.tokens - 10), turn_id=TRIED, at=bot.clock.now())
        assert await bot.store.commit(spent)
        one = bot.account(CEILING)
        assert await ask(one, 1, tokens=10)
        assert not await ask(one, 2, tokens=1)
        assert one.lacks == "often"


async def test_no_request_is_made_once_the_bots_own_day_is_spent(url: str) -> None:
    async with bank(url, limits=DayLimits(all=Cap(tokens=500))) as bot:
        one = bot.account(CEILING)
        assert await ask(one, 1, tokens=100)
        assert bot.spending.reserved.tokens == 100
        assert await bot.store.commit(replace(settled(0, tokens=400), turn_id="", at=bot.clock.now()))
        assert one.lacks == "spent"
        assert not await ask(one, 2, tokens=1)
        assert (one.requests, one.lacks, await bot.account(CEILING).find_lack()) == (1, "spent", "spent")


async def test_a_request_that_other_bots_of_the_cluster_left_nothing_for_is_refused(url: str) -> None:
    async with bank(url) as bot:
        bot.spending.refuses = lambda turn_id, number: (turn_id, number) == (TRIED, 7)  # type: ignore[method-assign]  # others did
        one = bot.account(CEILING)
        assert await ask(one, 6)
        assert not await ask(one, 7)
        assert one.lacks == "spent"


async def test_the_bots_journal_learns_of_usage_alone_and_not_whose_it_was_in_the_trial(url: str) -> None:
    async with bank(url) as bot:
        one = bot.account(CEILING)
        done = replace(words("fine"), usage=Usage(7, 3, cost=0.5, reserved=1), endpoint="m@x")
        entries: list[Entry] = [
            replace(reserved(1), step=2, payer=(GROUP, 777)),
            StepFinished(run_id="t1", step=1, completion=done, seconds=1.0),
            reserved(2),
            released(2),
            replace(settled(0, tokens=1), model="n"),
            StepFinished(run_id="t1", step=2, completion=replace(words("uncounted"), usage=None), seconds=1.0),
            replace(reserved(3), step=2, payer=(GROUP, 777)),
        ]
        for entry in entries:
            assert type(entry) in one.sees
            one.see(entry)
        rows = await bot.rows()
        told = [(row.turn_id, row.step, row.conversation, row.asker, row.model, row.prompt, row.cost) for row in rows]
        nobody = (TRIED, 0, "", 0)
        assert told == [(*nobody, "m@x", 7, 0.5), (*nobody, "n", 1, None), (*nobody, "m@x", 100, None)]
        assert [row.reserved for row in rows] == [0, 0, 3]


async def test_a_request_is_in_the_bots_journal_before_the_model_is_asked(url: str) -> None:
    own, clock, ids = RecordingStore(), ManualClock(), CountingIds()
    async with bank(url, clock=clock) as bot:
        one, under_way = bot.account(CEILING), list[tuple[str, bool]]()

        async def answer(_: ModelRequest) -> Completion:
            under_way.extend((row.turn_id, row.reserved > 0) for row in await bot.rows())
            return words("fine")

        with ScriptedModel(answer) as scripted:
            upstream = Upstream(scripted, price=Price(prompt=1.0, cached=1.0, completion=1.0))
            journal = ObservedStore(own, [one])
            meter = Meter(journal, spending=unlimited(), clock=clock, ids=ids, account=one)
            failover = Failover([upstream], clock=clock, ids=ids, meter=meter)
            first = Budget().share()  # which an ordinary bot without limits would not reserve
            first.begin()
            said = await failover.complete(replace(REQUEST, allowance=first))
            assert under_way == [(TRIED, True)]
            journal.put(UsageAdded(turn_id="t", model="m", usage=said.usage or Usage(), at=0.0))
            assert [(row.turn_id, row.reserved) for row in await bot.rows()] == [(TRIED, 0)]
            one.requests = CEILING.requests
            last = Budget(Limits(requests=1)).share()
            assert last.begin() is Room.LAST
            for owed in (None, last):  # an ordinary limit lets last words pass
                with pytest.raises(DaySpent):
                    await failover.complete(replace(REQUEST, allowance=owed))
            assert len(scripted.requests) == 1
            assert [(row.turn_id, row.reserved) for row in await bot.rows()] == [(TRIED, 0)]
        assert isinstance(own.entries[-1], UsageReleased)


@pytest.mark.parametrize("cannot", ["be written", "be read"])
async def test_no_request_is_made_while_the_bots_journal_is_away_and_the_next_one_is(url: str, cannot: str) -> None:
    clock, ids, store = ManualClock(), CountingIds(), RecordingStore()
    async with bank(url, clock=clock) as bot:
        books = PaperBooks(away=cannot == "be read")
        one = bot.account(CEILING, store=store, books=books)
        store.trouble = cannot == "be written"
        assert await one.find_lack() == ("failed" if cannot == "be read" else "")
        with ScriptedModel(words("fine")) as scripted:
            meter = Meter(ObservedStore(RecordingStore(), [one]), spending=limited(), clock=clock, ids=ids, account=one)
            failover = Failover([Upstream(scripted)], clock=clock, ids=ids, meter=meter)
            with pytest.raises(ModelRejected):
                await failover.complete(REQUEST)
            assert (scripted.requests, one.requests, one.lacks) == ([], 0, "")
            store.trouble, books._away = False, False
            await failover.complete(REQUEST)
            assert (len(scripted.requests), one.requests) == (1, 1)


@pytest.mark.parametrize("seed", range(4))
async def test_over_random_traffic_the_rows_are_the_requests_that_were_made_and_never_beyond_any_limit(
    url: str, seed: int
) -> None:
    chance, ceiling = random.Random(seed), TrialLimits("m", 0.25, 1000, 12)
    async with bank(url, limits=DayLimits(all=Cap(tokens=3500))) as bot:
        number, made = 0, dict[int, tuple[int, float]]()
        for _ in range(TRIALS_A_DAY + 2):
            one, under_way = bot.account(ceiling), dict[int, tuple[int, float]]()
            while not one.lacks:
                wanted = {}
                for _ in range(chance.randint(1, 3)):
                    number += 1
                    wanted[number] = chance.randrange(10, 200), chance.random() * 0.05
                asked = (ask(one, each, tokens=tokens, cost=cost) for each, (tokens, cost) in wanted.items())
                for each, is_made in zip(wanted, await asyncio.gather(*asked), strict=True):
                    if is_made:
                        made[each] = under_way[each] = wanted[each]
                for each in [each for each in under_way if chance.random() < 0.7]:
                    tokens, cost = under_way.pop(each)
                    if chance.random() < 0.2:  # it failed, and took nothing
                        one.see(released(each))
                        del made[each]
                    else:
                        made[each] = took = chance.randint(1, tokens), cost
                        taken = Usage(took[0], cost=took[1], reserved=each)
                        one.see(UsageAdded(turn_id="t", model="m", usage=taken, at=bot.clock.now()))
                rows = await bot.rows()
                assert (len(rows), sum(row.prompt for row in rows)) == (len(made), sum(t for t, _ in made.values()))
                assert sum(row.cost for row in rows) == pytest.approx(sum(cost for _, cost in made.values()))
                assert one.requests <= ceiling.requests
            assert len(made) <= TRIALS_A_DAY * ceiling.requests
            assert sum(tokens for tokens, _ in made.values()) <= 3500  # of the bot's day
            assert sum(cost for _, cost in made.values()) <= TRIALS_A_DAY * ceiling.cost
