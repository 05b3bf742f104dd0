from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest
from msgspec.structs import replace

from bot.budget.meter import A_SECOND, CountedSpeech, Meter
from bot.core.journal import Entry, RequestMade, UsageAdded, UsageReleased, UsageReserved
from bot.core.task_context import current_run, early_payer
from frostagent.models.prices import Price
from frostagent.types.errors import MediaError
from frostagent.types.messages import Attempt, Dictation, Usage
from tests.bot.budget.till import limited, unlimited
from tests.fakes import GROUP, CountingIds, ManualClock, RecordingStore

PRICE = Price(prompt=10.0, cached=10.0, completion=20.0)
HALF_A_MINUTE = Usage(30 * A_SECOND)


@pytest.fixture(autouse=True)
def before_a_turn() -> Iterator[None]:
    run, payer = current_run.set("t1"), early_payer.set((GROUP, 5))
    yield
    current_run.reset(run)
    early_payer.reset(payer)


async def heard(
    dictate: Callable[[bytes], Awaitable[Dictation]], *, reserves: bool = True, price: Price | None = PRICE
) -> tuple[list[Entry], list[Attempt]]:
    """What the journal has of half a minute of speech, and the attempts that were counted."""
    store, clock, attempts = RecordingStore(), ManualClock(), list[Attempt]()
    spending = limited() if reserves else unlimited()
    meter = Meter(store, spending=spending, clock=clock, ids=CountingIds(), count=attempts.append)
    speech = CountedSpeech(dictate, name="whisper-1@stt", price=price, meter=meter, clock=clock)
    with suppress(MediaError, asyncio.CancelledError, LookupError):
        assert await speech(b"RIFF", 30.0) == "hello"
    return store.entries, attempts


def saying(usage: Usage | None = None, error: BaseException | None = None) -> Callable[[bytes], Awaitable[Dictation]]:
    async def dictate(wav: bytes) -> Dictation:
        assert wav == b"RIFF"
        if error is not None:
            raise error
        return Dictation("hello", usage)

    return dictate


@pytest.mark.parametrize(("told", "taken"), [(None, HALF_A_MINUTE), (Usage(70, 4), Usage(70, 4))])
async def test_speech_is_reserved_by_its_seconds_and_charged_as_told_to_who_is_about_to_ask(
    told: Usage | None, taken: Usage
) -> None:
    (reserved, added), (attempt,) = await heard(saying(told))
    assert isinstance(reserved, UsageReserved)
    assert (reserved.turn_id, reserved.model, reserved.payer) == ("t1", "whisper-1@stt", (GROUP, 5))
    assert reserved.usage == Usage(HALF_A_MINUTE.prompt, cost=PRICE.of(HALF_A_MINUTE))
    assert isinstance(added, UsageAdded)
    assert (added.turn_id, added.payer) == ("t1", (GROUP, 5))
    assert added.usage == Usage(taken.prompt, taken.completion, cost=PRICE.of(taken), reserved=reserved.number)
    assert attempt.outcome == "ok"
    assert attempt.completion is not None
    assert attempt.completion.usage == Usage(taken.prompt, taken.completion, cost=PRICE.of(taken))


async def test_without_a_limit_it_is_reserved_too_and_without_a_price_the_tokens_count() -> None:
    (reserved, added), _ = await heard(saying(), reserves=False, price=None)
    assert isinstance(reserved, UsageReserved)
    assert reserved.step == 0  # no run's
    assert isinstance(added, UsageAdded)
    assert added.usage == replace(HALF_A_MINUTE, reserved=reserved.number)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(MediaError("too late", took=Usage()), "transport"), (asyncio.CancelledError(), "cancelled")],
)
async def test_what_was_listened_to_in_vain_is_charged_as_estimated(error: BaseException, outcome: str) -> None:
    (reserved, added, made), (attempt,) = await heard(saying(error=error))
    assert isinstance(reserved, UsageReserved)
    assert isinstance(added, UsageAdded)
    assert added.usage == Usage(HALF_A_MINUTE.prompt, cost=PRICE.of(HALF_A_MINUTE), reserved=reserved.number)
    assert isinstance(made, RequestMade)
    assert (made.outcome, attempt.outcome) == (outcome, outcome)


@pytest.mark.parametrize(("error", "outcome"), [(MediaError("refused"), "transport"), (LookupError(), "crashed")])
async def test_what_nobody_listened_to_is_released(error: BaseException, outcome: str) -> None:
    (reserved, released, made), _ = await heard(saying(error=error))
    assert isinstance(reserved, UsageReserved)
    assert released == UsageReleased(turn_id="t1", number=reserved.number)
    assert isinstance(made, RequestMade)
    assert made.outcome == outcome


async def test_speech_of_who_has_nothing_left_is_listened_to_as_ever() -> None:
    store, clock = RecordingStore(), ManualClock()
    (spending := limited()).refuses = lambda *_: True  # type: ignore[method-assign]  # others took what was left
    meter = Meter(store, spending=spending, clock=clock, ids=CountingIds())
    speech = CountedSpeech(saying(), name="whisper-1@stt", price=None, meter=meter, clock=clock)
    assert await speech(b"RIFF", 30.0) == "hello"
    assert [type(entry) for entry in store.entries] == [UsageReserved, UsageAdded]
