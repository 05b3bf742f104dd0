"""Text of speech, counted as any request to a model is: reserved before it is made, by the seconds
of it, and charged by what the service says it took.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from bot.domain.chat import (
    AssistantMessage,
    Attempt,
    Completion,
    Dictation,
    FinishReason,
    Usage,
)
from bot.domain.errors import MediaError, ModelTransport
from bot.domain.ports import Clock
from bot.models.meter import Meter
from bot.policy.prices import Price

A_SECOND = 10  # tokens, as OpenAI counts sound

Dictate: TypeAlias = Callable[[bytes], Awaitable[Dictation]]
"""The words in a wav. Raises MediaError."""


class CountedSpeech:
    """Has `dictate` make text of speech. `price` is for a million tokens, None where nobody knows;
    `name` that of the model.
    """

    def __init__(
        self, dictate: Dictate, *, name: str, price: Price | None, meter: Meter, clock: Clock
    ) -> None:
        self._dictate = dictate
        self._name = name
        self._price = price
        self._meter = meter
        self._clock = clock

    async def __call__(self, wav: bytes, seconds: float) -> str:
        """The words in a wav of so many seconds. Raises MediaError."""
        estimate = Usage(prompt=math.ceil(seconds * A_SECOND))
        reserved = await self._meter.reserve(
            self._name, lambda: self._priced(estimate), is_owed=True
        )
        started, outcome = self._clock.monotonic(), "crashed"
        took: Usage | None = None
        completion: Completion | None = None
        try:
            heard = await self._dictate(wav)
            outcome, took = "ok", heard.usage or estimate
            usage = self._priced(took)
            completion = Completion(AssistantMessage(heard.text), FinishReason.STOP, usage)
        except MediaError as error:
            outcome = ModelTransport.kind
            took = None if error.took is None else estimate
            raise
        except asyncio.CancelledError:
            outcome, took = "cancelled", estimate
            raise
        finally:
            if took is None:
                self._meter.release(reserved)
            else:
                self._meter.charge(self._name, replace(self._priced(took), reserved=reserved))
            seconds = self._clock.monotonic() - started
            self._meter.count(Attempt(self._name, outcome, seconds, completion))
        return heard.text

    def _priced(self, usage: Usage) -> Usage:
        return usage if self._price is None else replace(usage, cost=self._price.of(usage))
