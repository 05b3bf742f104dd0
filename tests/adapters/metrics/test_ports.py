from __future__ import annotations

from adapters.metrics.exposition import registry_of
from adapters.metrics.metrics import CountedSink, Metrics
from bot.core.events import Heartbeat
from tests.fakes import BOT, ManualClock, RecordingSink, said


class Desk:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics(tools=(), clock=self.clock)

    def value(self, name: str, **labels: str) -> float | None:
        return registry_of(self.metrics).get_sample_value(f"frostagent_{name}", labels)


async def test_events_count_by_kind_and_reach_the_sink() -> None:
    desk, behind = Desk(), RecordingSink()
    sink = CountedSink(behind, metrics=desk.metrics)
    for event in (said("hi"), said("ho"), Heartbeat(self_id=BOT, time=0, online=True, interval=30)):
        await sink.handle(event)
    assert len(behind.events) == 3
    assert desk.value("events_total", kind="message_received") == 2
    assert desk.value("events_total", kind="heartbeat") == 1
    assert desk.value("events_total", kind="poked") == 0
