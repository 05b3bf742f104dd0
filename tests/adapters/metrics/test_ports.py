from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from adapters.metrics.metrics import Metrics
from adapters.metrics.ports import CountedModel, CountedSink
from bot.domain.chat import Completion, ModelRequest, Usage, UserMessage
from bot.domain.errors import ModelRateLimited
from bot.domain.events import Heartbeat
from tests.fakes import BOT, ManualClock, RecordingSink, ScriptedModel, said, words

QUESTION = ModelRequest((UserMessage("hi"),))


class Desk:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics(tools=(), clock=self.clock)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"frostagent_{name}", labels)

    def model(self, scripted: ScriptedModel) -> CountedModel:
        return CountedModel(scripted, metrics=self.metrics, clock=self.clock)


async def test_an_answer_counts_with_its_tokens_its_cost_and_its_time() -> None:
    desk = Desk()

    async def slow(request: ModelRequest) -> Completion:
        await desk.clock.sleep(4)
        return replace(words("hello"), usage=Usage(100, 20, cached=60, cost=0.5))

    with ScriptedModel(slow) as scripted:
        completion = await desk.model(scripted).complete(QUESTION)
    assert completion.message.text == "hello"
    assert desk.value("model_requests_total", endpoint="scripted", outcome="ok") == 1
    assert [desk.value("tokens_total", kind=kind) for kind in ("prompt", "completion", "cached")] == [100, 20, 60]
    assert desk.value("cost_total", currency="usd") == 0.5
    assert desk.value("first_token_seconds_sum") == 4


async def test_the_first_token_counts_where_its_time_is_known() -> None:
    desk = Desk()
    with ScriptedModel(replace(words("hello"), first_token=1.5, usage=None)) as scripted:
        await desk.model(scripted).complete(QUESTION)
    assert desk.value("first_token_seconds_sum") == 1.5
    assert desk.value("tokens_total", kind="prompt") == 0


async def test_a_request_that_fails_counts_under_its_class() -> None:
    desk = Desk()
    with ScriptedModel(ModelRateLimited("slow down")) as scripted, pytest.raises(ModelRateLimited):
        await desk.model(scripted).complete(QUESTION)
    assert desk.value("model_requests_total", endpoint="scripted", outcome="rate_limit") == 1
    assert desk.value("first_token_seconds_count") == 0


async def test_a_request_that_is_cancelled_or_crashes_counts_as_such() -> None:
    desk = Desk()

    async def for_ever(request: ModelRequest) -> Completion:
        await asyncio.Event().wait()
        raise AssertionError

    async def crash(request: ModelRequest) -> Completion:
        raise LookupError

    with ScriptedModel(for_ever, crash) as scripted:
        model = desk.model(scripted)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await model.complete(QUESTION)
        with pytest.raises(LookupError):
            await model.complete(QUESTION)
    assert desk.value("model_requests_total", endpoint="scripted", outcome="cancelled") == 1
    assert desk.value("model_requests_total", endpoint="scripted", outcome="crashed") == 1


async def test_events_count_by_kind_and_reach_the_sink() -> None:
    desk, behind = Desk(), RecordingSink()
    sink = CountedSink(behind, metrics=desk.metrics)
    for event in (said("hi"), said("ho"), Heartbeat(self_id=BOT, time=0, online=True, interval=30)):
        await sink.handle(event)
    assert len(behind.events) == 3
    assert desk.value("events_total", kind="message_received") == 2
    assert desk.value("events_total", kind="heartbeat") == 1
    assert desk.value("events_total", kind="poked") == 0
