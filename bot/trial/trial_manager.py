"""When something is tried out beside the bot: one trial at a time, opened when somebody asks.

What a trial consists of is loaded by then (`bot/trial/trial.py`), and gone when it is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from bot.domain.cancellation import BROKEN, background, isolate
from bot.domain.cluster_messages import SubjectErased
from bot.domain.ports import Clock
from bot.domain.query_results import UsageSum
from bot.domain.task_context import is_trial
from bot.domain.trial_group import Trial, TrialLimits, TrialOptions, TrialRuns
from bot.policy.calendar_days import midnight
from bot.trial.trial_budget import A_DAY, BudgetTally
from bot.wiring.models import prices_asked
from config.settings import Settings

logger = logging.getLogger(__name__)

IDLE: Final = 600.0  # seconds after which nobody seems to be at it any more
OPEN_WITHIN: Final = 20.0  # seconds
COST, TOKENS, REQUESTS = 0.25, 100_000, 40
"""The most that one trial with a real model takes: US dollars, tokens, requests."""

Opening = Callable[[TrialOptions], AbstractAsyncContextManager[Trial]]


@dataclass(eq=False)
class _Request:
    """A request for a trial, and its answer: empty, or the reason why none was opened."""

    wanted: TrialOptions
    told: asyncio.Future[str]
    is_forgotten: bool = False  # whoever asked the question that was brought along

    def tell(self, word: str) -> None:
        if not self.told.done():  # else he has given up
            self.told.set_result(word)

    def hear(self, note: SubjectErased) -> None:
        source = self.wanted.source
        if source is not None and source.is_of(note.user, note.group):
            self.is_forgotten = True


class TrialManager(TrialRuns):
    """Fits `TrialRuns`; `run` is its task. `opening` makes a trial, `is_spent` says that the bot
    has no money left today, `told` hears what one with a real model took when it is over. A `home`
    is there whenever no other is, and never ends. `took` reads what trials took since a moment,
    also before this process; None where that cannot be read now.
    """

    def __init__(
        self,
        opening: Opening,
        *,
        ceiling: Callable[[], TrialLimits | None],
        is_spent: Callable[[], bool],
        told: Callable[[UsageSum], None],
        took: Callable[[float], Awaitable[UsageSum | None]],
        clock: Clock,
        home: Trial | None = None,
    ) -> None:
        self._opening = opening
        self._ceiling = ceiling
        self._is_spent = is_spent
        self._told = told
        self._took = took
        self._clock = clock
        self._home = home
        self._trial: Trial | None = None
        self._turn = asyncio.Lock()
        self._asked: asyncio.Queue[_Request] = asyncio.Queue()
        self._waiting: set[_Request] = set()
        self._over = asyncio.Event()
        self._gone = asyncio.Event()
        self._gone.set()
        self._touched = 0.0
        self._tally, self._day_ends = BudgetTally(), 0.0
        self.last: UsageSum | None = None

    @property
    def ceiling(self) -> TrialLimits | None:
        """The most that a trial with the bot's own model may take; of a demo's there is none."""
        is_demo = self._home is not None and not self._home.wanted.is_real
        return None if is_demo else self._ceiling()

    @property
    def current(self) -> Trial | None:
        """The open trial."""
        return self._trial or self._home

    @property
    def can_end(self) -> bool:
        """Whether it can be ended here; the one of a terminal ends with the terminal."""
        return self._trial is not None

    @property
    def today(self) -> BudgetTally:
        """The sum of the trials that asked the bot's own model, of the day the latest began."""
        return self._tally

    def touch(self) -> None:
        """Note that somebody uses the trial."""
        self._touched = self._clock.monotonic()

    async def open(self, wanted: TrialOptions) -> str:
        """End the one that is open, and open another. Raises TimeoutError."""
        request = _Request(wanted, asyncio.get_running_loop().create_future())
        self._waiting.add(request)
        try:
            async with self._turn, asyncio.timeout(OPEN_WITHIN):
                if wanted.is_real and (refused := await self._refuses()):
                    return refused
                await self.end()
                self._asked.put_nowait(request)
                return await request.told
        finally:
            self._waiting.discard(request)

    async def end(self) -> None:
        """End the one that was opened here, and wait until nothing of it is left."""
        self._over.set()
        await self._gone.wait()

    def forget(self, note: SubjectErased) -> None:
        """Somebody is forgotten, or a group: what has words of theirs ends, or is not opened."""
        for request in self._waiting:
            request.hear(note)
        if self._trial is not None and self._trial.has_words_of(note.user, note.group):
            self._trial.erase()
            self._over.set()

    async def run(self) -> None:
        """Open what is asked for, one after the other."""
        is_trial.set(True)  # what this task and those of a trial log
        while True:
            request = await self._asked.get()
            self._over.clear()
            self._gone.clear()
            self.touch()
            try:
                await self._hold(request)
            except BROKEN as error:
                isolate(error)
                logger.warning("what was tried out has ended with an error", exc_info=error)
            finally:
                self._trial = None
                self._gone.set()
                request.tell("failed")

    async def _refuses(self) -> str:
        """Why the bot's own model is not asked just now, in a word."""
        if (most := self.ceiling) is None:
            return "failed"
        if (now := self._clock.now()) >= self._day_ends:
            if (taken := await self._took(midnight(now))) is None:
                return "failed"
            self._tally, self._day_ends = BudgetTally(taken), midnight(now, later=1)
        if self.today.is_beyond(most, times=A_DAY):
            return "often"
        return "spent" if self._is_spent() else ""

    async def _hold(self, request: _Request) -> None:
        """One trial, until it is over."""
        wanted = request.wanted
        model = "the bot's own model" if wanted.is_real else "the demo model"
        logger.info("Try it on the console: a simulated group with %s is open", model)
        trial: Trial | None = None
        try:
            async with self._opening(wanted) as trial, background(self._watch()):
                trouble = "forgotten" if request.is_forgotten else trial.trouble
                if trouble or request.told.done():
                    request.tell(trouble)
                    return
                self._trial = trial
                request.tell("")
                await self._over.wait()
                self._trial = None
                await trial.taken()  # as long as its journal can be read
        finally:
            if trial is not None and wanted.is_real:
                self.last = await trial.taken()
                self._told(self.last)
        logger.info("Try it on the console: the simulated group is gone")

    async def _watch(self) -> None:
        """End it once nobody is at it any more."""
        while (left := self._touched + IDLE - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
        self._over.set()


def ceiling_of(settings: Settings) -> TrialLimits | None:
    """The most that a trial of the bot's own model may take; None where there is no such model."""
    if not settings.llm_base_url:
        return None
    unpriced = dict.fromkeys(name for name, price in prices_asked(settings) if price is None)
    return TrialLimits(settings.llm_model, COST, TOKENS, REQUESTS, tuple(unpriced))
