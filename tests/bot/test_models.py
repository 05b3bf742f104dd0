from __future__ import annotations

import asyncio

import pytest

from bot.domain.chat import Completion, ModelRequest, UserMessage
from bot.domain.errors import (
    BadHistory,
    ContentFiltered,
    ContextOverflow,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ModelTransport,
    ToolsUnsupported,
    ToolUseFailed,
)
from bot.models import ATTEMPTS, RetryingModel
from tests.fakes import CountingIds, ManualClock, ScriptedModel, Step, words

REQUEST = ModelRequest((UserMessage("hi"),))


async def ask(*steps: Step, attempts: int = ATTEMPTS, patience: float = 60.0) -> tuple[str, list[float]]:
    """The words of the answer, and the waits before it."""
    clock = ManualClock()
    with ScriptedModel(*steps) as scripted:
        model = RetryingModel(scripted, clock=clock, ids=CountingIds(), attempts=attempts, patience=patience)
        try:
            text = (await model.complete(REQUEST)).message.text
        except ModelError as error:
            text = f"{error.kind}: {error}"
    assert scripted.requests == [REQUEST] * len(steps)
    return text, clock.slept


async def test_an_answer_at_once_is_handed_on() -> None:
    assert await ask(words("hello")) == ("hello", [])


@pytest.mark.parametrize("error", [ModelRateLimited("busy"), ModelOverloaded("busy"), ModelTransport("cut")])
async def test_a_busy_vendor_is_asked_again_after_longer_and_longer_waits(error: ModelError) -> None:
    assert await ask(error, error, error, words("hello")) == ("hello", [1.0, 2.0, 4.0])


async def test_after_the_last_attempt_the_last_error_gets_out() -> None:
    first, last = ModelTransport("cut"), ModelOverloaded("still busy")
    assert await ask(first, first, first, last) == ("overloaded: still busy", [1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    "error",
    [
        ModelAuth("no"),
        ModelBilling("no"),
        ContextOverflow("no"),
        ContentFiltered("no"),
        ToolsUnsupported("no"),
        ToolUseFailed("no"),
        ImagesUnsupported("no"),
        BadHistory("no"),
        ModelNotFound("no"),
        ModelRejected("no"),
    ],
)
async def test_what_waiting_does_not_mend_gets_out_at_once(error: ModelError) -> None:
    assert await ask(error) == (f"{error.kind}: no", [])
    assert await ask(ModelTransport("cut"), error) == (f"{error.kind}: no", [1.0])


@pytest.mark.parametrize("kind", [ModelRateLimited, ModelOverloaded])
async def test_a_wait_the_vendor_names_is_honoured(kind: type[ModelRateLimited | ModelOverloaded]) -> None:
    assert await ask(kind("busy", retry_after=7.5), words("hello")) == ("hello", [7.5])
    assert await ask(kind("busy", retry_after=0.0), words("hello")) == ("hello", [0.0])


async def test_a_vendor_that_asks_for_too_much_patience_is_not_waited_for() -> None:
    assert await ask(ModelRateLimited("busy", retry_after=61)) == ("rate_limit: busy", [])
    assert await ask(ModelRateLimited("busy", retry_after=60), words("hello")) == ("hello", [60.0])


async def test_patience_is_counted_over_all_waits_of_a_request() -> None:
    busy = ModelRateLimited("busy", retry_after=40)
    assert await ask(busy, busy) == ("rate_limit: busy", [40.0])
    assert await ask(ModelTransport("cut"), ModelTransport("cut"), patience=2) == ("transport: cut", [1.0])


@pytest.mark.parametrize("attempts", [0, 1])
async def test_one_attempt_is_one_attempt(attempts: int) -> None:
    assert await ask(ModelTransport("cut"), attempts=attempts) == ("transport: cut", [])


async def test_jitter_spreads_the_waits_by_a_quarter_each_way() -> None:
    class Chance(CountingIds):
        def __init__(self, jitter: float) -> None:
            super().__init__()
            self._jitter = jitter

        def jitter(self) -> float:
            return self._jitter

    waits = []
    for jitter in (0.0, 0.999):
        clock = ManualClock()
        with ScriptedModel(ModelTransport("cut"), ModelTransport("cut"), words("hello")) as scripted:
            await RetryingModel(scripted, clock=clock, ids=Chance(jitter)).complete(REQUEST)
        waits.append([round(wait, 2) for wait in clock.slept])
    assert waits == [[0.75, 1.5], [1.25, 2.5]]


async def test_it_goes_by_the_name_of_its_model() -> None:
    assert RetryingModel(ScriptedModel(), clock=ManualClock(), ids=CountingIds()).name == "scripted"


async def test_a_bug_or_a_cancellation_is_not_asked_again() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise LookupError

    async def cancelled(request: ModelRequest) -> Completion:
        raise asyncio.CancelledError

    for step, error in ((broken, LookupError), (cancelled, asyncio.CancelledError)):
        clock = ManualClock()
        with ScriptedModel(step) as scripted, pytest.raises(error):
            await RetryingModel(scripted, clock=clock, ids=CountingIds()).complete(REQUEST)
        assert clock.slept == []
