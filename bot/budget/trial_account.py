"""The account of a trial with the bot's own model: the bot pays for its requests. Each is reserved
in the bot's journal, for the turn TRIED, before it is made. So a request cut off by a crash counts
once, and the rows of that turn are the sum of all trials of a day.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from bot.budget.spending import Spending
from bot.core.calendar_days import midnight
from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from bot.core.ports import Store
from bot.core.query_results import JournalQueries, UsageSum
from bot.core.trial_group import TRIED, TrialLimits
from frostagent.types.errors import DaySpent, ModelRejected
from frostagent.types.messages import Usage
from frostagent.types.ports import Clock
from frostagent.types.runs import StepFinished

TRIALS_A_DAY: Final = 4
"""All trials of a day together may use this many times the limit of one."""


class TrialAccount:
    """A `JournalObserver` of the trial's journal, which writes all usage into `store`, the bot's
    journal. The trial's `Meter` asks it before each request. It has three limits: the `ceiling` of
    this trial; TRIALS_A_DAY times that for all trials since midnight, by the rows of `books`; and
    the bot's daily limits, by `spending`. None of them is ever exceeded, not even for last words.
    """

    sees: Final = frozenset({StepFinished, UsageAdded, UsageReserved, UsageReleased})

    def __init__(
        self,
        ceiling: TrialLimits,
        *,
        store: Store,
        books: JournalQueries,
        spending: Spending,
        clock: Clock,
    ) -> None:
        self.ceiling = ceiling
        self.requests = 0  # requests made, including failed ones
        self._store = store
        self._books = books
        self._spending = spending
        self._clock = clock
        self._settled = Usage()
        self._under_way: dict[int, Usage] = {}
        self._today = UsageSum()
        self._refused = ""

    def see(self, entry: Entry) -> None:
        """Copy the usage in an entry to the bot's journal."""
        match entry:
            case UsageReserved(number=number, usage=usage):
                self._under_way[number] = usage
                self._store.put(replace(entry, turn_id=TRIED, step=0, payer=None))
            case UsageReleased(number=number):
                self._under_way.pop(number, None)
                self._store.put(replace(entry, turn_id=TRIED))
            case UsageAdded(model=model, usage=usage):
                self._settle(model, usage)
            case StepFinished(completion=completion) if completion.usage is not None:
                self._settle(completion.endpoint or completion.model, completion.usage)
            case _:
                pass

    @property
    def lacks(self) -> str:
        """Why no further request is allowed: `used_up` (this trial's own limits), `often` (those of
        all trials today, as last read), `spent` (the bot's daily limits); empty if one is allowed.
        """
        return self._refused or self._find_lack(further=1)

    async def find_lack(self) -> str:
        """`lacks` after reading the trials of today; `failed` if they cannot be read now."""
        return self.lacks if await self._read_today() else "failed"

    async def admit(self, number: int) -> None:
        """Count the request reserved under this number, which is about to be made. Raises DaySpent
        if a limit allows neither this request nor any other, and ModelRejected, for this request
        alone, if the bot's journal did not accept the reservation.
        """
        if not (await self._store.commit() and await self._read_today()):
            raise ModelRejected("the bot's journal is away just now")
        if self._spending.refuses(TRIED, number):
            self._refused = self._refused or "spent"
        self._refused = self._refused or self._find_lack()
        if self._refused:
            raise DaySpent("what may be tried with the bot's own model is used up")
        self.requests += 1

    def _find_lack(self, *, further: int = 0) -> str:
        """`further` requests are not in today's sum yet."""
        own = sum(self._under_way.values(), self._settled)
        if not self.ceiling.allow(self.requests + 1, own.prompt + own.completion, own.cost or 0.0):
            return "used_up"
        today = self._today
        if not self.ceiling.allow(
            today.requests + further,
            today.prompt + today.completion,
            today.cost,
            times=TRIALS_A_DAY,
        ):
            return "often"
        return "spent" if self._spending.is_spent(TRIED) else ""

    async def _read_today(self) -> bool:
        """Read today's usage of all trials, including reservations. Returns False if it cannot be
        read now.
        """
        begin = midnight(self._clock.now())
        if (today := await self._books.usage(since=begin, turn_id=TRIED)) is None:
            return False
        self._today = today
        return True

    def _settle(self, model: str, usage: Usage) -> None:
        self._under_way.pop(usage.reserved, None)
        self._settled += usage
        self._store.put(UsageAdded(turn_id=TRIED, model=model, usage=usage, at=self._clock.now()))
