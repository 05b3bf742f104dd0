from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from bot.budget.meter import Meter
from bot.core.journal import Entry, RequestMade, RequestPurpose, UsageAdded, UsageReleased, UsageReserved
from bot.core.task_context import current_errand, current_run
from frostagent.engine.budget import Budget, BudgetShare, Limits, Room
from frostagent.models.failover import ANSWER, Failover
from frostagent.models.prices import Price
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import (
    DaySpent,
    ModelBilling,
    ModelError,
    ModelOverloaded,
    ModelRejected,
    ModelStalled,
    ModelTransport,
)
from frostagent.types.messages import (
    AssistantMessage,
    Attempt,
    Completion,
    FinishReason,
    ModelRequest,
    Usage,
    UserMessage,
)
from tests.bot.budget.till import limited, unlimited
from tests.cases import each_case
from tests.fakes import CountingIds, ManualClock, RecordingStore, ScriptedModel, Step, until, words

REQUEST = ModelRequest((UserMessage("how are you?"),))
PRICE = Price(prompt=10.0, cached=1.0, completion=100.0)


async def asked(
    *steps: Step, allowance: BudgetShare | None = None, reserves: bool = True
) -> tuple[list[Entry], Upstream]:
    """What the journal has of a request, made for the turn t1."""
    store, clock, ids = RecordingStore(), ManualClock(), CountingIds()
    token = current_run.set("t1")
    upstream = Upstream(model := ScriptedModel(*steps), price=PRICE)
    try:
        with model:
            meter = Meter(store, spending=limited() if reserves else unlimited(), clock=clock, ids=ids)
            failover = Failover([upstream], clock=clock, ids=ids, meter=meter, attempts=1)
            answer = await failover.complete(replace(REQUEST, allowance=allowance))
            if answer.usage:
                store.put(UsageAdded(turn_id="t1", model="scripted", usage=answer.usage, at=0.0))
    except (ModelError, LookupError, asyncio.CancelledError):
        pass
    finally:
        current_run.reset(token)
    return store.entries, upstream


async def cancelled(_: ModelRequest) -> Completion:
    raise asyncio.CancelledError


async def broken(_: ModelRequest) -> Completion:
    raise LookupError


async def test_a_request_is_reserved_before_it_is_made_and_its_answer_takes_the_place_of_that() -> None:
    (reserved, added), upstream = await asked(words("fine"))
    assert isinstance(reserved, UsageReserved)
    assert (reserved.turn_id, reserved.usage) == ("t1", upstream.reading(REQUEST, answer=ANSWER))
    assert isinstance(added, UsageAdded)
    assert added.usage.reserved == reserved.number > 0
    assert reserved.step == 0  # no run's


def asking(requests: int) -> BudgetShare:
    """The share of a run whose question took so many requests, with the one that is made."""
    budget = Budget()
    budget.take(requests=requests)
    share = budget.share()
    share.step = requests
    return share


async def test_without_limits_all_is_reserved_but_the_first_request_of_a_question() -> None:
    (only,), _ = await asked(words("fine"), allowance=asking(1), reserves=False)
    assert isinstance(only, UsageAdded)
    assert only.usage.reserved == 0
    for allowance, reserves in ((asking(2), False), (asking(1), True), (None, False)):
        (reserved, added), _ = await asked(words("fine"), allowance=allowance, reserves=reserves)
        assert isinstance(reserved, UsageReserved)
        assert isinstance(added, UsageAdded)
        assert added.usage.reserved == reserved.number
        assert reserved.step == (allowance.step if allowance else 0)


async def test_the_second_attempt_of_the_first_request_is_reserved() -> None:
    store, clock, ids = RecordingStore(), ManualClock(), CountingIds()
    with ScriptedModel(ModelTransport("nobody there"), words("fine")) as model:
        meter = Meter(store, spending=unlimited(), clock=clock, ids=ids)
        failover = Failover([Upstream(model), Upstream(model)], clock=clock, ids=ids, meter=meter, attempts=1)
        answer = await failover.complete(replace(REQUEST, allowance=asking(1)))
    (reserved,) = store.entries
    assert isinstance(reserved, UsageReserved)
    assert answer.usage is not None
    assert answer.usage.reserved == reserved.number


@each_case("step", [ModelBilling("no money"), broken, ModelTransport("nobody there")])
async def test_what_no_vendor_charges_for_is_released(step: Step) -> None:
    (reserved, released, made), _ = await asked(step)
    assert isinstance(reserved, UsageReserved)
    assert released == UsageReleased(turn_id="t1", number=reserved.number)
    assert isinstance(made, RequestMade)
    kind = step.kind if isinstance(step, ModelError) else "crashed"
    assert (made.turn_id, made.model, made.outcome, made.message) == ("t1", "scripted", kind, None)


async def test_a_request_on_an_errand_is_written_down_as_one_whatever_became_of_it() -> None:
    """Not one that answers: that is a step of its run."""
    for errand, step, outcome in (
        (RequestPurpose.FACTS, words("fine"), "ok"),
        (RequestPurpose.SUMMARY, ModelBilling("no money", status=402), "billing:402"),
        ("", ModelOverloaded("broken", status=500), "overloaded:500"),
        ("", ModelTransport("nobody there"), "transport"),
    ):
        token = current_errand.set(errand)
        try:
            entries, _ = await asked(step)
        finally:
            current_errand.reset(token)
        (made,) = [one for one in entries if isinstance(one, RequestMade)]
        assert (made.run, made.outcome, made.message) == (errand, outcome, None)


def having_taken(took: Usage, *, asked_twice: bool = False) -> ModelError:
    error = ModelRejected("no answer in the end")
    error.took, error.asked_twice = took, asked_twice
    return error


CUT = having_taken(Usage())


@each_case(("step", "answer"), [(ModelStalled("slow"), 0), (cancelled, 0), (CUT, ANSWER)])
async def test_what_was_read_is_charged_though_no_answer_came_or_half_of_one(step: Step, answer: int) -> None:
    (reserved, added, made), upstream = await asked(step)
    assert isinstance(reserved, UsageReserved)
    assert isinstance(added, UsageAdded)
    assert added.usage == upstream.reading(REQUEST, answer=answer, reserved=reserved.number)
    assert isinstance(made, RequestMade)


@each_case("step", [ModelStalled("slow"), CUT])
async def test_of_a_run_in_a_chat_too_an_attempt_that_failed_by_itself_is_charged_at_its_step(step: Step) -> None:
    share = Budget().share()
    share.step = 3
    (reserved, added, _), _ = await asked(step, allowance=share)
    assert isinstance(reserved, UsageReserved)
    assert isinstance(added, UsageAdded)
    assert (added.usage.reserved, added.step) == (reserved.number, 3)
    assert share.lost is None


async def test_what_a_vendor_says_that_a_failed_answer_took_is_what_is_charged() -> None:
    (reserved, added, _), _ = await asked(having_taken(Usage(700, 40, cost=0.5)))
    assert isinstance(reserved, UsageReserved)
    assert isinstance(added, UsageAdded)
    assert added.usage == Usage(700, 40, cost=0.5, reserved=reserved.number)
    (_, added, _), _ = await asked(having_taken(Usage(700, 40)))
    assert isinstance(added, UsageAdded)
    assert added.usage.cost == PRICE.of(Usage(700, 40))


@each_case("told", [Usage(700, 40), Usage()])
async def test_of_a_failed_answer_that_was_asked_for_twice_both_times_are_charged(told: Usage) -> None:
    (reserved, added, _), upstream = await asked(having_taken(told, asked_twice=True))
    assert isinstance(reserved, UsageReserved)
    assert isinstance(added, UsageAdded)
    second = upstream.taken(told, REQUEST, answer=ANSWER)
    both = second + upstream.reading(REQUEST, answer=ANSWER)
    assert added.usage == replace(both, reserved=reserved.number)


async def test_of_a_step_of_a_turn_whoever_broke_it_off_writes_that_down() -> None:
    share = Budget().share()
    share.step = 1
    (reserved, _), upstream = await asked(cancelled, allowance=share)
    assert isinstance(reserved, UsageReserved)
    assert share.lost == ("scripted", upstream.reading(REQUEST, reserved=reserved.number))


async def test_of_a_run_that_is_no_turn_what_was_broken_off_is_charged() -> None:
    (_, added, _), upstream = await asked(cancelled, allowance=Budget().share())
    assert isinstance(added, UsageAdded)
    assert replace(added.usage, reserved=0) == upstream.reading(REQUEST)
    assert added.step == 0


async def test_an_answer_that_a_filter_spoilt_is_charged_and_so_is_the_next() -> None:
    spoilt = words("", finish=FinishReason.CONTENT_FILTER)
    store, share = RecordingStore(), asking(2)
    share.step = 2
    with ScriptedModel(spoilt, words("fine")) as model:
        clock, ids = ManualClock(), CountingIds()
        meter = Meter(store, spending=unlimited(), clock=clock, ids=ids)
        failover = Failover([Upstream(model)], clock=clock, ids=ids, meter=meter)
        earlier = (UserMessage("bad"), AssistantMessage("words"), UserMessage("how?"))
        assert (await failover.complete(ModelRequest(earlier, allowance=share))).message.text == "fine"
    first, added, second = store.entries
    assert isinstance(first, UsageReserved)
    assert isinstance(added, UsageAdded)
    assert spoilt.usage is not None
    assert (added.usage, added.step) == (replace(spoilt.usage, reserved=first.number), 2)
    assert isinstance(second, UsageReserved)


@each_case("owed", [False, True])
async def test_what_comes_too_late_is_given_back_and_nobody_is_asked_unless_it_is_for_last_words(owed: bool) -> None:
    asked = list[tuple[str, int, int]]()

    def refuses(turn_id: str, number: int) -> bool:
        asked.append((turn_id, number, store.durable))
        return True

    store, clock, ids, share = RecordingStore(), ManualClock(), CountingIds(), Budget(Limits(requests=2)).share()
    assert share.begin() is Room.MORE
    assert not owed or share.begin() is Room.LAST
    request = replace(REQUEST, allowance=share)
    upstreams = [Upstream(ScriptedModel(words("fine"))), Upstream(ScriptedModel())]
    attempts = list[Attempt]()
    (spending := limited()).refuses = refuses  # type: ignore[method-assign]  # what others took decides it
    meter = Meter(store, spending=spending, clock=clock, ids=ids, count=attempts.append)
    complete = Failover(upstreams, clock=clock, ids=ids, meter=meter).complete
    token = current_run.set("t1")
    if owed:
        assert (await complete(request)).message.text == "fine"
    else:
        with pytest.raises(DaySpent):
            await complete(request)
    current_run.reset(token)
    reserved, *given_back = store.entries
    assert isinstance(reserved, UsageReserved)
    assert asked == [("t1", reserved.number, 1)]  # once it is written down
    assert given_back == ([] if owed else [UsageReleased(turn_id="t1", number=reserved.number)])
    assert len(attempts) == owed


class SlowStore(RecordingStore):
    """It commits once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def commit(self, *entries: Entry) -> bool:
        self.put(*entries)
        await self.may.wait()
        return True


async def test_no_request_is_made_before_its_reservation_is_written_and_one_that_is_broken_off_is_released() -> None:
    store = SlowStore()
    meter = Meter(store, spending=limited(), clock=ManualClock(), ids=CountingIds())
    async with asyncio.TaskGroup() as group:
        first = group.create_task(meter.reserve("m", lambda: Usage(5)))
        await until(lambda: store.entries)
        assert not first.done()
        first.cancel()
    assert first.cancelled()
    reserved, released = store.entries
    assert isinstance(reserved, UsageReserved)
    assert released == UsageReleased(turn_id=reserved.turn_id, number=reserved.number)
    store.may.set()
    assert await meter.reserve("m", lambda: Usage(5)) == reserved.number + 1
