"""Ports that are counted on their way: each passes on what it is given, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from adapters.metrics.metrics import Metrics
from bot.domain.chat import Completion, ModelRequest
from bot.domain.errors import ModelError
from bot.domain.events import Event
from bot.domain.ports import ChatModel, Clock, EventSink


class CountedModel:
    """A `ChatModel`; put it inside whatever asks again, so that each attempt counts."""

    def __init__(self, model: ChatModel, *, metrics: Metrics, clock: Clock) -> None:
        self._model = model
        self._metrics = metrics
        self._clock = clock

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer. Raises ModelError."""
        started = self._clock.monotonic()
        outcome = "crashed"
        try:
            completion = await self._model.complete(request)
            outcome = "ok"
        except ModelError as error:
            outcome = error.kind
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._metrics.asked(self.name, outcome)
        first_token = completion.first_token
        self._metrics.answered(
            completion.usage,
            self._clock.monotonic() - started if first_token is None else first_token,
        )
        return completion


class CountedSink:
    """An `EventSink` whose events are counted by kind."""

    def __init__(self, sink: EventSink, *, metrics: Metrics) -> None:
        self._sink = sink
        self._metrics = metrics

    def handle(self, event: Event) -> Coroutine[Any, Any, None]:
        """Count it and hand it on."""
        self._metrics.event(event.type)
        return self._sink.handle(event)
