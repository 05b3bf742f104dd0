"""The meter of requests to models: what one will take is reserved before it is made, and what one
took that nobody else writes down is charged.

A reservation is a row beside the others, which goes in the transaction that brings what the request
really took. So a request that a crash cuts off counts as much as was reserved, once. The first
request of a question is reserved only where a day has a limit: most questions take no other, and
that it was cut off is seen by its turn, which was left open (`chat/unfinished`).

Speech to text is counted likewise: reserved by the seconds of the recording, charged by what the
service reports (`CountedSpeech`).
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.journal import RequestMade, UsageAdded, UsageReleased, UsageReserved
from bot.core.ports import Store
from bot.core.task_context import current_errand, current_run, early_payer
from frostagent.models.prices import Price
from frostagent.types.errors import DaySpent, MediaError, ModelTransport
from frostagent.types.messages import (
    Allowance,
    AssistantMessage,
    Attempt,
    Completion,
    Dictation,
    FinishReason,
    Usage,
)
from frostagent.types.ports import Clock, Ids

NUMBERS = 2**30  # of reservations: another process begins elsewhere


class Meter:
    """Counts for the turn that the current task works for. Without a `store` it counts nothing.
    Where it `reserves`, all requests are reserved before they are made, else those that no open
    turn tells of; nobody is asked for one that it `refuses` by then. `count` is told every attempt,
    once it ended.
    """

    def __init__(
        self,
        store: Store | None,
        *,
        clock: Clock,
        ids: Ids,
        reserves: Callable[[], bool] | None = None,
        refuses: Callable[[str, int], bool] | None = None,
        count: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._count = count
        self._reserves = reserves
        self._refuses = refuses
        self._numbers = itertools.count(1 + int(ids.jitter() * NUMBERS))

    def count(self, attempt: Attempt) -> None:
        """An attempt ended: one without an answer, or on an errand, is written down for the turn;
        a run writes down its own answers.
        """
        if self._count is not None:
            self._count(attempt)
        errand, turn_id = current_errand.get(), current_run.get()
        if self._store is None or not turn_id or (attempt.outcome == "ok" and not errand):
            return
        made = RequestMade(
            turn_id=turn_id,
            model=attempt.endpoint,
            outcome=f"{attempt.outcome}:{attempt.status}" if attempt.status else attempt.outcome,
            seconds=attempt.seconds,
            at=self._clock.now(),
            run=errand,
        )
        self._store.put(made)

    async def reserve(
        self,
        model: str,
        estimate: Callable[[], Usage],
        allowance: Allowance | None = None,
        *,
        is_owed: bool = False,
    ) -> int:
        """Note what a request will take, before it is made; the number of the note, 0 where none
        was made. A run's has an `allowance`. Raises DaySpent where it may not be made, unless it
        `is_owed`, as the last words of a run are.
        """
        is_first = allowance is not None and allowance.is_first
        if self._store is None:
            return 0
        if is_first and not (self._reserves and self._reserves()):
            return 0
        number, turn_id = next(self._numbers), current_run.get()
        usage, now = estimate(), self._clock.now()
        note = UsageReserved(
            turn_id=turn_id,
            number=number,
            model=model,
            usage=usage,
            at=now,
            step=allowance.step if allowance else 0,
            payer=early_payer.get(),
        )
        try:
            await self._store.commit(note)
        except asyncio.CancelledError:
            self.release(number)
            raise
        is_owed = is_owed or (allowance is not None and allowance.is_short)
        if self._refuses and self._refuses(turn_id, number) and not is_owed:
            self.release(number)
            raise DaySpent("others have taken what was left of the day")
        return number

    def release(self, number: int) -> None:
        """The request took nothing."""
        if number and self._store is not None:
            self._store.put(UsageReleased(turn_id=current_run.get(), number=number))

    def charge(self, model: str, usage: Usage, allowance: Allowance | None = None) -> None:
        """The request took this, and nobody gets its answer, who would write it down: of a step
        that is known a request was made.
        """
        if self._store is not None:
            turn_id, now = current_run.get(), self._clock.now()
            added = UsageAdded(
                turn_id=turn_id,
                model=model,
                usage=usage,
                at=now,
                step=allowance.step if allowance else 0,
                payer=early_payer.get(),
            )
            self._store.put(added)


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
