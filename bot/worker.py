"""The composition root of a worker (BOT_ROLE=worker): a bot as in bot/app.py for each of its
partitions.

adapters/storage/leases --who is there, what is free--> Steward --opens, closes--> bot/app.py
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, NoReturn, TypeVar

from msgspec import Struct

from adapters.broker.link import BrokerLink
from adapters.broker.notes import NoteExchange
from adapters.broker.requests import RequestExchange
from adapters.metrics.work import Work
from adapters.storage.claim import Away, JournalTaken
from adapters.storage.leases import SECONDS, Board, Lease, Roster, holder_of_process, name_of
from bot.app import Service, open_service
from bot.cluster.line import Seat, offers_of
from bot.domain.cancellation import background
from bot.domain.cluster_messages import ClusterPartition
from bot.domain.console_views import Doctor
from bot.domain.masking import Mask
from bot.domain.ports import Clock
from bot.runtime.clock import RandomIds, SystemClock
from bot.runtime.watchdog import Watchdog
from bot.speaking.owner_alerts import of_stalls
from bot.web import STANDING_BY, metrics_of, open_web
from bot.wiring.tools import find_tools
from config.settings import Settings


class Moves(Struct, frozen=True):
    """The partitions to `take` now, and how many to give away."""

    take: tuple[int, ...] = ()
    give: int = 0


def moves(
    *,
    partitions: int,
    workers: int,
    me: tuple[int, str],
    others: Mapping[str, int],
    free: Sequence[int],
) -> Moves:
    """The moves of one of so many workers where these partitions have nobody.

    `me` is how many it has, and its name; `others` how many those have of whom that is known. Where
    not all can have as many, those keep one more who have the most, by name where that is equal: so
    nothing moves twice, and nothing in vain.
    """
    ahead = sum((count, name) > me for name, count in others.items())
    fewer, more = divmod(partitions, max(1, workers))
    part, here = fewer + (ahead < more), me[0]
    return Moves(give=here - part) if here > part else Moves(tuple(free[: part - here]))


PAUSE: Final = 0.25  # seconds between two looks at the roster
PATIENCE: Final = 60.0  # seconds in which only partitions with nothing to do are given away
UNREACHED: Final = 4.0  # seconds without the broker, after which a worker is there for nobody
# And so much later it gives away what it has, if others are there all the time. Where the broker is
# away for all of them, the last one notices it, and is there for nobody, some seven seconds after
# the first; and one finds it again five seconds before another. Nothing is to be moved for that.
STEPS_BACK: Final = 10.0

T = TypeVar("T")

Opening = Callable[[ClusterPartition], AbstractAsyncContextManager[Service]]

logger = logging.getLogger(__name__)


class Steward:
    """Keeps as many partitions at work here as are this worker's part; `opening` makes the bot of
    one. All that blocks is in the `thread`. `reaches` says whether the broker can be reached: who
    cannot, leaves all to others that can.
    """

    def __init__(
        self,
        opening: Opening,
        roster: Roster,
        *,
        reaches: Callable[[], bool],
        work: Work,
        thread: ThreadPoolExecutor,
        clock: Clock,
    ) -> None:
        self._opening = opening
        self._roster = roster
        self._reaches = reaches
        self._work = work
        self._thread = thread
        self._clock = clock
        self._leaving: dict[int, asyncio.Event] = {}
        self._services: dict[int, Service] = {}
        self._told = ""
        self._surplus_since = 0.0
        self._moving_from = -math.inf
        self._reached = self._not_cut_off = clock.monotonic()  # last
        self._cut_off = 0.0  # seconds

    @property
    def services(self) -> tuple[Service, ...]:
        """The bots at work here, by their partition."""
        return tuple(service for _, service in sorted(self._services.items()))

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions they have."""
        return tuple(sorted(self._services))

    async def run(self) -> NoReturn:
        """Work for ever. Raises ConfigError, inside a group, for what no other worker could do
        either.
        """
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    board = await self._look()
                    if board is not None and self._clock.monotonic() >= self._moving_from:
                        self._move(group, board)
                    await self._clock.sleep(PAUSE)
        finally:
            await self._leave()

    async def _look(self) -> Board | None:
        now = self._clock.monotonic()
        if self._reaches():
            self._reached = now
        signs = now - self._reached < UNREACHED
        try:
            board = await self._blocking(partial(self._roster.look, signs=signs))
        except Away as error:
            # Nobody could renew a lease: who has one is given the time to.
            self._moving_from = self._clock.monotonic() + SECONDS
            self._tell(error.problems[0].what)
            return None
        self._work.workers = board.workers
        if signs or not board.workers:
            self._not_cut_off = now
        self._cut_off = now - self._not_cut_off
        return board

    def _move(self, group: asyncio.TaskGroup, board: Board) -> None:
        if self._cut_off:
            self._step_back()
            return
        free = [number for number in self._elsewhere() if name_of(number) not in board.had]
        holder = self._roster.holder
        others = Counter(who for who in board.had.values() if who != holder)
        wanted = moves(
            partitions=self._work.partitions,
            workers=board.workers,
            me=(self._staying, holder),
            others=others,
            free=free,
        )
        if not wanted.give:
            self._surplus_since = self._clock.monotonic()
        for number in self._to_leave()[: wanted.give]:
            self._leaving[number].set()
        for number in wanted.take:
            self._leaving[number] = asyncio.Event()
            group.create_task(self._keep(ClusterPartition(number, self._work.partitions)))
        self._tell("other workers have all accounts")

    def _step_back(self) -> None:
        """Others can reach the broker, and this worker cannot: it takes nothing, and after a while
        has nothing.
        """
        if self._cut_off >= STEPS_BACK:
            for leaving in self._leaving.values():
                leaving.set()
        self._tell("the broker cannot be reached from here")

    def _elsewhere(self) -> list[int]:
        """The partitions that are not here, in an order of its own: workers that begin together do
        not want the same.
        """
        others = [number for number in range(self._work.partitions) if number not in self._leaving]
        random.shuffle(others)
        return others

    @property
    def _staying(self) -> int:
        return sum(not leaving.is_set() for leaving in self._leaving.values())

    def _to_leave(self) -> list[int]:
        """The partitions that may be given away now: runs that go on are let end, for a while."""
        is_over = self._clock.monotonic() - self._surplus_since > PATIENCE
        return [
            number
            for number, service in self._services.items()
            if not self._leaving[number].is_set()
            and (is_over or not (service.lanes.active or service.lanes.waiting))
        ]

    async def _keep(self, share: ClusterPartition) -> None:
        number = share.partition
        try:
            async with self._opening(share) as service:
                self._services[number], self._told = service, ""
                self._work.begin(number)
                logger.info("ready: over the broker, partition %d of %d", number, share.partitions)
                await self._leaving[number].wait()
                logger.info("partition %d is left to another worker", number)
        except* (JournalTaken, Away) as group:
            logger.debug("partition %d is not to be had: %s", number, group.exceptions)
        finally:
            self._services.pop(number, None)
            self._work.end(number)
            del self._leaving[number]

    def _tell(self, why: str) -> None:
        if not self._leaving and self._told != (why := f"standing by: {why}"):
            self._told = why
            logger.info("%s", why)

    async def _leave(self) -> None:
        try:
            await self._blocking(self._roster.leave)
        except Away as error:
            logger.debug("the roster cannot be left: %s", error)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


@asynccontextmanager
async def open_worker(
    settings: Settings,
    *,
    grace: float = 0.0,
    mask: Mask | None = None,
    doctor: Doctor | None = None,
) -> AsyncIterator[Steward]:
    """Work as many partitions as are this process's part while the block runs; runs that go on at
    the end have `grace` seconds. Raises ConfigError, inside a group.
    """
    clock, ids, holder = SystemClock(), RandomIds(), holder_of_process()
    metrics, work = metrics_of(find_tools(settings).names, clock), Work(settings.broker_partitions)
    offers = offers_of(settings)

    def opening(share: ClusterPartition) -> AbstractAsyncContextManager[Service]:
        lease = Lease(name_of(share.partition), holder=holder)
        name = ids.trace()
        seat = Seat(
            share, lease, metrics, NoteExchange(name), RequestExchange(name, share), work, offers
        )
        return open_service(settings, grace=grace, mask=mask, seat=seat, doctor=doctor)

    def stalled(seconds: float) -> None:
        told = [of_stalls(one.rooms.owner, metrics.stalled) for one in steward.services[:1]]
        for tell in told or [metrics.stalled]:
            tell(seconds)

    sight = BrokerLink(settings.broker_url.get_secret_value(), clock=clock, trouble=lambda _: None)
    with ThreadPoolExecutor(1, "roster") as thread:
        roster = Roster(settings.store_url.get_secret_value(), holder)
        steward = Steward(
            opening, roster, reaches=lambda: sight.is_up, work=work, thread=thread, clock=clock
        )
        watchdog = Watchdog(clock=clock, stalled=stalled)
        shown = open_web(
            settings,
            metrics,
            lambda: [service.shown for service in steward.services],
            cut_off=lambda: "" if steward.services else STANDING_BY,
            work=work,
            offers=offers,
        )
        async with background(watchdog.run(), sight.hold()), shown, background(steward.run()):
            yield steward
