"""The budget of a trial with the bot's own model. Each request is reserved in the bot's journal
before it is made, so that a request cut off by a crash is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from adapters.storage.store import SqlStore
from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from bot.core.ports import Store
from bot.core.query_results import UsageSum
from bot.core.trial_group import TRIED, TrialLimits
from bot.memory.journal_observers import ObservedStore
from frostagent.models.openai.client import OpenAIModel
from frostagent.types.errors import ModelRejected
from frostagent.types.messages import Completion, ModelRequest, Usage
from frostagent.types.ports import ChatModel, Clock
from frostagent.types.runs import StepFinished

T = TypeVar("T")

NOTHING: Final = UsageSum()
TRIALS_A_DAY: Final = 4
"""All trials of a day together may take this many times what one may."""


class BudgetTally:
    """Counts requests and their usage, beginning with `taken`. Requests in progress count as
    estimated.
    """

    def __init__(self, taken: UsageSum = NOTHING) -> None:
        self.requests = taken.requests
        self._settled = taken
        self._reserved: dict[int, Usage] = {}

    def reserve(self, number: int, usage: Usage) -> None:
        """Add the estimate of a request that is about to be made."""
        self._reserved[number] = usage

    def release(self, number: int) -> None:
        """Remove a reserved request that used nothing."""
        self._reserved.pop(number, None)

    def settle(self, usage: Usage) -> None:
        """Replace a reservation by the request's actual usage."""
        self.release(usage.reserved)
        self._settled = add_usage(self._settled, usage)

    @property
    def taken(self) -> UsageSum:
        """The usage so far, reservations included."""
        total = self._settled
        for usage in self._reserved.values():
            total = add_usage(total, usage)
        return replace(total, requests=self.requests)

    def is_beyond(self, limits: TrialLimits, *, times: int = 1) -> bool:
        """Whether a further request would exceed `times` times these limits."""
        taken = self.taken
        return (
            self.requests >= times * limits.requests
            or taken.prompt + taken.completion > times * limits.tokens
            or taken.cost > times * limits.cost > 0
        )


class TrialBudget:
    """Limits one trial: by its `ceiling`, by what all trials of a `day` may take, and by the bot's
    own day, of which `is_spent` tells whether nothing is left. Reservations and usage go into
    `store`, the bot's journal.
    """

    def __init__(
        self,
        ceiling: TrialLimits,
        *,
        day: BudgetTally,
        is_spent: Callable[[], bool],
        store: Store,
        clock: Clock,
    ) -> None:
        self.ceiling = ceiling
        self._own = BudgetTally()
        self._day = day
        self._is_spent = is_spent
        self._store = store
        self._clock = clock
        self._refused = ""
        self._is_recorded = True

    @property
    def taken(self) -> UsageSum:
        """The usage of this trial, requests in progress included."""
        return self._own.taken

    @property
    def lacks(self) -> str:
        """Why no further request is made: `used_up`, `often` or `spent`; empty if one may be."""
        return self._refused or self._find_shortage()

    def count_request(self) -> None:
        """Count a reserved request that is about to be made. Raises ModelRejected if no further
        request may be made, or, for this request alone, if the bot's journal did not take its
        reservation.
        """
        if not self._is_recorded:
            raise ModelRejected("the bot's journal cannot be written just now")
        self._refused = self.lacks
        if self._refused:
            raise ModelRejected("what may be tried with the bot's own model is used up")
        self._own.requests += 1
        self._day.requests += 1

    def wrap(self, port: T, /) -> T:
        """The port; if it is a model or a journal, one whose requests this budget pays for."""
        paid: Any = port
        if isinstance(port, OpenAIModel):
            paid = PaidModel(port, self)
        elif isinstance(port, SqlStore):
            paid = PaidStore(port, self)
        return cast("T", paid)

    def record(self, entries: Iterable[Entry]) -> bool:
        """Count the usage in these entries of the trial's journal, and put it into the bot's.
        Returns whether there is any.
        """
        usage = tuple(self._count(entries))
        self._store.put(*usage)
        return bool(usage)

    async def wait_recorded(self) -> None:
        """Wait until the bot's journal has all usage, or cannot be written."""
        self._is_recorded = await self._store.commit()

    def _find_shortage(self) -> str:
        if self._own.is_beyond(self.ceiling):
            return "used_up"
        if self._day.is_beyond(self.ceiling, times=TRIALS_A_DAY):
            return "often"
        return "spent" if self._is_spent() else ""

    def _count(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Count the usage in these entries; what of it goes into the bot's journal."""
        for entry in entries:
            match entry:
                case UsageReserved(number=number, usage=usage):
                    for tally in (self._own, self._day):
                        tally.reserve(number, usage)
                    yield replace(entry, turn_id=TRIED)
                case UsageReleased(number=number):
                    for tally in (self._own, self._day):
                        tally.release(number)
                    yield replace(entry, turn_id=TRIED)
                case StepFinished(completion=completion) if completion.usage is not None:
                    yield self._settle(completion.endpoint or completion.model, completion.usage)
                case UsageAdded(model=model, usage=usage):
                    yield self._settle(model, usage)
                case _:
                    pass

    def _settle(self, model: str, usage: Usage) -> UsageAdded:
        for tally in (self._own, self._day):
            tally.settle(usage)
        return UsageAdded(turn_id=TRIED, model=model, usage=usage, at=self._clock.now())


class PaidModel:
    """Fits `ChatModel`: asks the model while the budget has something left."""

    def __init__(self, model: ChatModel, budget: TrialBudget) -> None:
        self._model = model
        self._budget = budget

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The model's answer. Raises ModelError."""
        self._budget.count_request()
        return await self._model.complete(request)


class PaidStore(ObservedStore):
    """The journal of a trial, whose usage is in the bot's journal before anything is spent."""

    def __init__(self, store: Store, budget: TrialBudget) -> None:
        super().__init__(store, ())
        self._budget = budget

    def put(self, *entries: Entry) -> None:
        """Take entries. Never waits, never raises."""
        self._budget.record(entries)
        super().put(*entries)

    async def commit(self, *entries: Entry) -> bool:
        """Take entries, and wait until they are durable and their usage is in the bot's journal."""
        has_usage = self._budget.record(entries)
        is_durable = await super().commit(*entries)
        if has_usage:
            await self._budget.wait_recorded()
        return is_durable


def add_usage(total: UsageSum, usage: Usage) -> UsageSum:
    """The total with one more request."""
    return UsageSum(
        total.requests + 1,
        total.prompt + usage.prompt,
        total.cached + usage.cached,
        total.completion + usage.completion,
        total.cost + (usage.cost or 0.0),
        total.unpriced + (usage.cost is None),
    )
