"""The meter of requests to models. It reserves the expected usage before a request is made, and
charges usage that no other code writes.

A reservation is a row of usage, deleted in the transaction that writes the real usage. So a request
cut off by a crash counts once, with the reserved amount. The first request of a question is
reserved only if there are daily limits: most questions make no other request, and an open turn
reveals one that was cut off (`bot/chat/startup.py`).

Speech to text is metered likewise: reserved by the seconds of the recording, charged by what the
service reports (`CountedSpeech`). So are calls at a fixed price, such as searches (`CountedCalls`).
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import replace

from bot.budget.spending import Spending
from bot.budget.trial_account import TrialAccount
from bot.core.journal import ERRAND, RequestMade, UsageAdded, UsageReleased, UsageReserved
from bot.core.ports import Store
from bot.core.task_context import current_errand, current_run, early_payer
from frostagent.models.prices import Price
from frostagent.types.errors import (
    DaySpent,
    MediaError,
    ModelError,
    ModelTransport,
    ToolDenied,
    ToolFailed,
)
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

NUMBERS: Final = 2**30  # reservations count up from a random number, so that processes differ


class Meter:
    """Meters requests for the turn of the current task. It reserves every request if `spending` has
    limits, else only those that no open turn implies. `count` receives every attempt once it has
    ended. In a trial the bot's `account` pays, and admits or refuses each request.
    """

    def __init__(
        self,
        store: Store,
        *,
        spending: Spending,
        clock: Clock,
        ids: Ids,
        count: Callable[[Attempt], None] | None = None,
        account: TrialAccount | None = None,
    ) -> None:
        self._store = store
        self._spending = spending
        self._account = account
        self._clock = clock
        self._count = count
        self._numbers = itertools.count(1 + int(ids.jitter() * NUMBERS))

    def count(self, attempt: Attempt) -> None:
        """Write an attempt that failed or served an errand. A run writes its own answers."""
        if self._count is not None:
            self._count(attempt)
        errand, turn_id = current_errand.get(), current_run.get()
        if not turn_id or (attempt.outcome == "ok" and not errand) or turn_id.startswith(ERRAND):
            return  # there is no turn that it could be shown with
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
        """Write a reservation before a request. Returns its number, 0 if none is needed. Requests
        of a run have an `allowance`. Raises DaySpent if the day's limit is used up, unless the
        request `is_owed`, as the last words of a run are. A trial's account may raise DaySpent for
        any request, and ModelRejected.
        """
        is_first = allowance is not None and allowance.is_first
        if is_first and not self._spending.has_limits and self._account is None:
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
            if self._account is not None:
                await self._account.admit(number)
        except (asyncio.CancelledError, ModelError):
            self.release(number)
            raise
        is_owed = is_owed or (allowance is not None and allowance.is_short)
        if self._spending.refuses(turn_id, number) and not is_owed:
            self.release(number)
            raise DaySpent("others have taken what was left of the day")
        return number

    def release(self, number: int) -> None:
        """Withdraw a reservation: the request used nothing."""
        if number:
            self._store.put(UsageReleased(turn_id=current_run.get(), number=number))

    def charge(self, model: str, usage: Usage, allowance: Allowance | None = None) -> None:
        """Write the usage of a request whose answer is dropped, as no other code writes it."""
        added = UsageAdded(
            turn_id=current_run.get(),
            model=model,
            usage=usage,
            at=self._clock.now(),
            step=allowance.step if allowance else 0,
            payer=early_payer.get(),
        )
        self._store.put(added)


A_SECOND: Final = 10  # tokens, as OpenAI counts sound

Dictate: TypeAlias = Callable[[bytes], Awaitable[Dictation]]
"""Transcribes a WAV file. Raises MediaError."""


class CountedSpeech:
    """Transcribes speech by `dictate`, and meters it. `price` is per million tokens, None if
    unknown; `name` is the model's.
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
        """Transcribe a WAV file of that length. Raises MediaError."""
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


T = TypeVar("T")


class CountedCalls:
    """Calls a service that costs `price` dollars a call, and meters it under its `name`."""

    def __init__(self, name: str, *, price: float, meter: Meter, clock: Clock) -> None:
        self._name = name
        self._usage = Usage(cost=price)
        self._meter = meter
        self._clock = clock

    async def __call__(self, call: Callable[[], Awaitable[T]], is_billed: Callable[[T], bool]) -> T:
        """The answer of the call. Nothing is charged if its answer is not billed; a call that broke
        off counts. Raises ToolDenied if the day's limit is used up, and what the call raises.
        """
        try:
            reserved = await self._meter.reserve(self._name, lambda: self._usage)
        except DaySpent as error:
            raise ToolDenied(f"{self._name} costs money, and the day's limit is used up") from error
        started, outcome, is_paid = self._clock.monotonic(), "crashed", True
        completion: Completion | None = None
        try:
            answer = await call()
            is_paid = is_billed(answer)
            outcome = "ok" if is_paid else ModelTransport.kind
            if is_paid:
                completion = Completion(AssistantMessage(""), FinishReason.STOP, self._usage)
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except ToolFailed:
            outcome = ModelTransport.kind
            raise
        finally:
            if is_paid:
                self._meter.charge(self._name, replace(self._usage, reserved=reserved))
            else:
                self._meter.release(reserved)
            seconds = self._clock.monotonic() - started
            self._meter.count(Attempt(self._name, outcome, seconds, completion))
        return answer
