"""The budget of a trial with the bot's own model. Each request is reserved in the bot's journal
before it is made, so that one cut off by a crash is counted, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from adapters.openai.client import OpenAIModel
from adapters.storage.store import SqlStore
from bot.domain.errors import ModelRejected
from bot.domain.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from bot.domain.model_messages import Completion, ModelRequest, Usage
from bot.domain.ports import ChatModel, Clock, Store
from bot.domain.query_results import UsageSum
from bot.domain.run import StepFinished
from bot.domain.trial_group import TRIED, TrialLimits
from bot.memory.journal_observers import ObservedStore

T = TypeVar("T")

NOTHING: Final = UsageSum()
A_DAY: Final = 4
"""All trials of a day together may take this many times what one may."""


class BudgetTally:
    """Counts requests and their usage; requests in progress count as estimated. `taken` is earlier
    usage.
    """

    def __init__(self, taken: UsageSum = NOTHING) -> None:
        self.requests = taken.requests
        self._took = taken
        self._under_way: dict[int, Usage] = {}

    def reserve(self, number: int, usage: Usage) -> None:
        """Add a request that is about to be made, by its estimate."""
        self._under_way[number] = usage

    def release(self, number: int) -> None:
        """Remove a reserved request that used nothing."""
        self._under_way.pop(number, None)

    def settle(self, usage: Usage) -> None:
        """Replace a reservation by the request's actual usage."""
        self.release(usage.reserved)
        self._took = plus(self._took, usage)

    @property
    def taken(self) -> UsageSum:
        """The usage so far, reservations included."""
        sums = self._took
        for usage in self._under_way.values():
            sums = plus(sums, usage)
        return replace(sums, requests=self.requests)

    def is_beyond(self, most: TrialLimits, *, times: int = 1) -> bool:
        """Whether that is more than so many times this, a further request among it."""
        took = self.taken
        return (
            self.requests >= times * most.requests
            or took.prompt + took.completion > times * most.tokens
            or took.cost > times * most.cost > 0
        )


class TrialBudget:
    """Limits one trial: by its own ceiling, by what all trials of a `day` may take, and by the
    bot's own day, which may be `is_spent`. Reservations and usage go into `store`, the bot's.
    """

    def __init__(
        self,
        most: TrialLimits,
        *,
        day: BudgetTally,
        is_spent: Callable[[], bool],
        store: Store,
        clock: Clock,
    ) -> None:
        self.most = most
        self._own = BudgetTally()
        self._day = day
        self._is_spent = is_spent
        self._store = store
        self._clock = clock
        self._refused = ""
        self._is_written = True

    @property
    def taken(self) -> UsageSum:
        """The usage of this trial, requests in progress included."""
        return self._own.taken

    @property
    def lacks(self) -> str:
        """Why no further request is made: `used_up`, `often` or `spent`; empty if one may be."""
        return self._refused or self._why_not()

    def count_request(self) -> None:
        """Count a reserved request that is about to be made. Raises ModelRejected if none may be
        made any more, or if the bot's journal did not take the reservation: then only for this one.
        """
        if not self._is_written:
            raise ModelRejected("the bot's journal cannot be written just now")
        self._refused = self.lacks
        if self._refused:
            raise ModelRejected("what may be tried with the bot's own model is used up")
        self._own.requests += 1
        self._day.requests += 1

    def around(self, port: T, /) -> T:
        """The port; a model as one that is paid from here, a journal as one that tells us."""
        paid: Any = port
        if isinstance(port, OpenAIModel):
            paid = PaidModel(port, self)
        elif isinstance(port, SqlStore):
            paid = PaidStore(port, self)
        return cast("T", paid)

    def note(self, entries: Iterable[Entry]) -> bool:
        """Count what these entries of the trial's say of money, and tell the bot's journal; whether
        there is any.
        """
        money = tuple(self._read(entries))
        self._store.put(*money)
        return bool(money)

    async def settle(self) -> None:
        """Wait until the bot's journal has it all, or cannot be written."""
        self._is_written = await self._store.commit()

    def _why_not(self) -> str:
        if self._own.is_beyond(self.most):
            return "used_up"
        if self._day.is_beyond(self.most, times=A_DAY):
            return "often"
        return "spent" if self._is_spent() else ""

    def _read(self, entries: Iterable[Entry]) -> Iterator[Entry]:
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
                    yield self._settled(completion.endpoint or completion.model, completion.usage)
                case UsageAdded(model=model, usage=usage):
                    yield self._settled(model, usage)
                case _:
                    pass

    def _settled(self, model: str, usage: Usage) -> UsageAdded:
        for tally in (self._own, self._day):
            tally.settle(usage)
        return UsageAdded(turn_id=TRIED, model=model, usage=usage, at=self._clock.now())


class PaidModel:
    """Fits `ChatModel`: asks the model as long as the budget has something left."""

    def __init__(self, model: ChatModel, budget: TrialBudget) -> None:
        self._model = model
        self._budget = budget

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, whole and finished. Raises ModelError."""
        self._budget.count_request()
        return await self._model.complete(request)


class PaidStore(ObservedStore):
    """The journal of a trial, whose money stands in the bot's before anything is spent."""

    def __init__(self, store: Store, budget: TrialBudget) -> None:
        super().__init__(store, ())
        self._budget = budget

    def put(self, *entries: Entry) -> None:
        """Take entries. Never waits, never raises."""
        self._budget.note(entries)
        super().put(*entries)

    async def commit(self, *entries: Entry) -> bool:
        """Take entries, and wait until they are durable, and their money in the bot's journal."""
        is_about_money = self._budget.note(entries)
        is_durable = await super().commit(*entries)
        if is_about_money:
            await self._budget.settle()
        return is_durable


def plus(sums: UsageSum, usage: Usage) -> UsageSum:
    """The sums with one more request's."""
    return UsageSum(
        sums.requests + 1,
        sums.prompt + usage.prompt,
        sums.cached + usage.cached,
        sums.completion + usage.completion,
        sums.cost + (usage.cost or 0.0),
        sums.unpriced + (usage.cost is None),
    )
