"""Runs the trials beside the bot, one at a time, each opened on request.

`bot/trial/trial.py` is loaded with the first of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from bot.chat_models import prices_asked
from bot.core.erasure import SubjectErased
from bot.core.query_results import UsageSum
from bot.core.task_context import is_trial
from bot.core.trial_group import Trial, TrialLimits, TrialOptions, TrialRuns
from config.settings import Settings
from frostagent.cancellation import BROKEN, background, isolate
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

IDLE: Final = 600.0  # seconds without use after which a trial ends
OPEN_WITHIN: Final = 20.0  # seconds
COST, TOKENS, REQUESTS = 0.25, 100_000, 40
"""The limits of one trial with the bot's own model: US dollars, tokens, requests."""


@dataclass(eq=False)
class _Request:
    """A request for a trial. Its result is empty, or the reason why no trial was opened."""

    wanted: TrialOptions
    result: asyncio.Future[str]
    is_forgotten: bool = False  # the person or group of the question that was brought along

    def answer(self, reason: str) -> None:
        if not self.result.done():  # the requester has given up
            self.result.set_result(reason)

    def forget(self, note: SubjectErased) -> None:
        source = self.wanted.source
        if source is not None and source.is_of(note.user, note.group):
            self.is_forgotten = True


class TrialManager(TrialRuns):
    """The `TrialRuns` port; `run` is its task.

    - `open_trial` opens a trial; `ceiling` reads the limits of one with the bot's own model.
    - `find_lack` returns why one with this ceiling may not be opened now: `often`, `spent` or
      `failed`; empty if it may.
    - `on_end` is called with the usage of each trial with the bot's own model.
    - `home` is a trial that is current while no other is open, and never ends.
    """

    def __init__(
        self,
        open_trial: Callable[[TrialOptions], AbstractAsyncContextManager[Trial]],
        *,
        ceiling: Callable[[], TrialLimits | None],
        find_lack: Callable[[TrialLimits], Awaitable[str]],
        on_end: Callable[[UsageSum], None],
        clock: Clock,
        home: Trial | None = None,
    ) -> None:
        self._open_trial = open_trial
        self._ceiling = ceiling
        self._find_lack = find_lack
        self._on_end = on_end
        self._clock = clock
        self._home = home
        self._trial: Trial | None = None
        self._opening = asyncio.Lock()
        self._requests: asyncio.Queue[_Request] = asyncio.Queue()
        self._waiting: set[_Request] = set()
        self._over = asyncio.Event()
        self._gone = asyncio.Event()
        self._gone.set()
        self._last_used = 0.0
        self.last: UsageSum | None = None

    @property
    def ceiling(self) -> TrialLimits | None:
        """The limits of a trial with the bot's own model; None for the demo model."""
        is_demo = self._home is not None and not self._home.wanted.is_real
        return None if is_demo else self._ceiling()

    @property
    def current(self) -> Trial | None:
        return self._trial or self._home

    @property
    def can_end(self) -> bool:
        """Whether the current trial can be ended here; a terminal's ends with the terminal."""
        return self._trial is not None

    def touch(self) -> None:
        """The trial is in use: restart its idle time."""
        self._last_used = self._clock.monotonic()

    async def open(self, wanted: TrialOptions) -> str:
        """End the open trial, and open another. Returns why that failed, or an empty string. Raises
        TimeoutError.
        """
        request = _Request(wanted, asyncio.get_running_loop().create_future())
        self._waiting.add(request)
        try:
            async with self._opening, asyncio.timeout(OPEN_WITHIN):
                if wanted.is_real:
                    if (ceiling := self.ceiling) is None:
                        return "failed"
                    if lack := await self._find_lack(ceiling):
                        return lack
                await self.end()
                self._requests.put_nowait(request)
                return await request.result
        finally:
            self._waiting.discard(request)

    async def end(self) -> None:
        """End the open trial, and wait until nothing of it is left."""
        self._over.set()
        await self._gone.wait()

    def forget(self, note: SubjectErased) -> None:
        """After an erasure, end or do not open a trial with messages of this person or group."""
        for request in self._waiting:
            request.forget(note)
        if self._trial is not None and self._trial.has_words_of(note.user, note.group):
            self._trial.erase()
            self._over.set()

    async def run(self) -> None:
        """Run the requested trials, one after the other, until cancelled."""
        is_trial.set(True)  # marks the log lines of this task and of trials
        while True:
            request = await self._requests.get()
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
                request.answer("failed")

    async def _hold(self, request: _Request) -> None:
        wanted = request.wanted
        model = "the bot's own model" if wanted.is_real else "the demo model"
        logger.info("Try it on the console: a simulated group with %s is open", model)
        trial: Trial | None = None
        try:
            async with self._open_trial(wanted) as trial, background(self._end_when_idle()):
                trouble = "forgotten" if request.is_forgotten else trial.trouble
                if trouble or request.result.done():
                    request.answer(trouble)
                    return
                self._trial = trial
                request.answer("")
                await self._over.wait()
                self._trial = None
                await trial.taken()  # while its journal can be read
        finally:
            if trial is not None and wanted.is_real:
                self.last = await trial.taken()
                self._on_end(self.last)
        logger.info("Try it on the console: the simulated group is gone")

    async def _end_when_idle(self) -> None:
        while (left := self._last_used + IDLE - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
        self._over.set()


def ceiling_of(settings: Settings) -> TrialLimits | None:
    """The limits of a trial with the bot's own model; None if no model is set."""
    if not settings.llm_base_url:
        return None
    unpriced = dict.fromkeys(name for name, price in prices_asked(settings) if price is None)
    return TrialLimits(settings.llm_model, COST, TOKENS, REQUESTS, tuple(unpriced))
