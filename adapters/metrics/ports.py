"""Events that are counted on their way."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from adapters.metrics.metrics import Metrics
from bot.domain.events import Event
from bot.domain.ports import EventSink


class CountedSink:
    """An `EventSink` whose events are counted by kind."""

    def __init__(self, sink: EventSink, *, metrics: Metrics) -> None:
        self._sink = sink
        self._metrics = metrics

    def handle(self, event: Event) -> Coroutine[Any, Any, None]:
        """Count it and hand it on."""
        self._metrics.event(event.type)
        return self._sink.handle(event)
