"""A call at a fixed price is reserved before it is made, and counted unless nothing is billed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from unittest.mock import patch

import pytest

from bot.budget.meter import CountedCalls, Meter
from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from bot.core.task_context import current_run, early_payer
from frostagent.types.errors import ToolDenied, ToolFailed
from frostagent.types.messages import Attempt, Usage
from tests.bot.budget.till import limited
from tests.cases import each_case
from tests.fakes import GROUP, CountingIds, ManualClock, RecordingStore

PRICE = 0.008


@pytest.fixture(autouse=True)
def in_a_turn() -> Iterator[None]:
    run, payer = current_run.set("t1"), early_payer.set((GROUP, 5))
    yield
    current_run.reset(run)
    early_payer.reset(payer)


async def made(call: Callable[[], Awaitable[int]]) -> tuple[list[Entry], list[Attempt]]:
    """What the journal has of a call whose answer is billed if it is 200, and the attempts that were counted."""
    store, clock, attempts = RecordingStore(), ManualClock(), list[Attempt]()
    spending = limited()
    meter = Meter(store, spending=spending, clock=clock, ids=CountingIds(), count=attempts.append)
    counted = CountedCalls("tavily search", price=PRICE, meter=meter, clock=clock)
    with suppress(ToolFailed, asyncio.CancelledError):
        await counted(call, lambda status: status == 200)
    return store.entries, attempts


def answering(status: int = 200, error: BaseException | None = None) -> Callable[[], Awaitable[int]]:
    async def call() -> int:
        if error is not None:
            raise error
        return status

    return call


@each_case(
    ("call", "outcome"),
    [
        (answering(), "ok"),
        (answering(error=ToolFailed("slow")), "transport"),
        (answering(error=asyncio.CancelledError()), "cancelled"),
    ],
)
async def test_a_call_that_may_be_billed_is_counted_to_its_turn(
    call: Callable[[], Awaitable[int]], outcome: str
) -> None:
    entries, (attempt,) = await made(call)
    reserved, added = (one for one in entries if isinstance(one, UsageReserved | UsageAdded))
    assert isinstance(reserved, UsageReserved)
    assert (reserved.turn_id, reserved.model, reserved.usage) == ("t1", "tavily search", Usage(cost=PRICE))
    assert isinstance(added, UsageAdded)
    assert (added.turn_id, added.model, added.usage) == (
        "t1",
        "tavily search",
        Usage(cost=PRICE, reserved=reserved.number),
    )
    assert attempt.outcome == outcome
    if outcome == "ok":  # what /metrics says is what the rows say
        assert attempt.completion is not None
        assert attempt.completion.usage == Usage(cost=PRICE)


async def test_a_call_that_was_refused_gives_back_what_was_reserved() -> None:
    entries, _ = await made(answering(429))
    reserved, released = (one for one in entries if isinstance(one, UsageReserved | UsageReleased | UsageAdded))
    assert isinstance(released, UsageReleased)
    assert isinstance(reserved, UsageReserved)
    assert released.number == reserved.number


async def test_a_call_that_the_days_limit_does_not_allow_is_not_made() -> None:
    store, clock, calls = RecordingStore(), ManualClock(), list[str]()
    spending = limited()
    meter = Meter(store, spending=spending, clock=clock, ids=CountingIds())
    counted = CountedCalls("tavily search", price=PRICE, meter=meter, clock=clock)

    async def call() -> int:
        calls.append("made")
        return 200

    with (
        patch.object(type(spending), "refuses", lambda *_: True),
        pytest.raises(ToolDenied, match="the day's limit is used up"),
    ):
        await counted(call, lambda _: True)
    assert calls == []
    assert any(isinstance(one, UsageReleased) for one in store.entries)
