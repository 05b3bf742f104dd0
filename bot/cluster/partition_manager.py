"""Runs a worker's share of the partitions, takes over lost workers', and gives away a surplus."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, NoReturn, TypeVar

from msgspec import Struct

from adapters.broker.partitions import ClusterPartition
from adapters.metrics.work import Work
from adapters.storage.claim import Away, JournalTaken
from adapters.storage.leases import SECONDS, Board, Roster, name_of
from frostagent.types.ports import Clock

PAUSE: Final = 0.25  # seconds between two reads of the roster
PATIENCE: Final = 60.0  # seconds in which only idle partitions are given away
UNREACHED: Final = 4.0  # seconds without the broker, after which a worker leaves the roster
# Seconds after which it gives away its partitions, if the roster had other workers all the time.
# When the broker fails for all workers, the last one notices some seven seconds after the first,
# and one reconnects five seconds before another. Neither may move a partition.
STEPS_BACK: Final = 10.0

T = TypeVar("T")
Service = TypeVar("Service")

logger = logging.getLogger(__name__)


class Moves(Struct, frozen=True):
    """The partitions to `take` now, and the number of partitions to `give` away."""

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
    """Return the moves of one of `workers`, if the `free` partitions have no worker.

    `me` is its number of partitions and its name; `others` has the numbers of other workers with
    partitions. If the partitions cannot be shared evenly, the workers with most keep one more, by
    name among equals, so that no partition moves twice or in vain.
    """
    ahead = sum((count, name) > me for name, count in others.items())
    fewer, more = divmod(partitions, max(1, workers))
    part, here = fewer + (ahead < more), me[0]
    return Moves(give=here - part) if here > part else Moves(tuple(free[: part - here]))


class PartitionManager(Generic[Service]):
    """Keeps this worker's share of the partitions running; `run` is its task.

    `open_service` opens the bot of one partition; `is_idle` means that it can be closed without
    cutting a run off. Blocking calls run in `thread`. `is_connected` is false while the broker
    cannot be reached: then this worker gives its partitions to workers that can reach it.
    """

    def __init__(
        self,
        open_service: Callable[[ClusterPartition], AbstractAsyncContextManager[Service]],
        roster: Roster,
        *,
        is_idle: Callable[[Service], bool],
        is_connected: Callable[[], bool],
        work: Work,
        thread: ThreadPoolExecutor,
        clock: Clock,
    ) -> None:
        self._open_service = open_service
        self._roster = roster
        self._is_idle = is_idle
        self._is_connected = is_connected
        self._work = work
        self._thread = thread
        self._clock = clock
        self._leaving: dict[int, asyncio.Event] = {}
        self._services: dict[int, Service] = {}
        self._logged = ""
        self._surplus_since = 0.0
        self._moving_from = -math.inf
        self._last_connected = self._last_not_cut_off = clock.monotonic()
        self._cut_off_for = 0.0  # seconds

    @property
    def services(self) -> tuple[Service, ...]:
        """The running bots, by partition."""
        return tuple(service for _, service in sorted(self._services.items()))

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(sorted(self._services))

    async def run(self) -> NoReturn:
        """Work until cancelled. Raises ConfigError, inside a group, for a problem that every other
        worker would have too.
        """
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    board = await self._read_board()
                    if board is not None and self._clock.monotonic() >= self._moving_from:
                        self._apply_moves(group, board)
                    await self._clock.sleep(PAUSE)
        finally:
            await self._leave_roster()

    async def _read_board(self) -> Board | None:
        """Read the board, signing in if connected; None if the journal is away."""
        now = self._clock.monotonic()
        if self._is_connected():
            self._last_connected = now
        signs = now - self._last_connected < UNREACHED
        try:
            board = await self._run_in_thread(lambda: self._roster.look(signs=signs))
        except Away as error:
            # No worker could renew its leases meanwhile, so each gets time to.
            self._moving_from = self._clock.monotonic() + SECONDS
            self._log_standby(error.problems[0].what)
            return None
        self._work.workers = board.workers
        if signs or not board.workers:
            self._last_not_cut_off = now
        self._cut_off_for = now - self._last_not_cut_off
        return board

    def _apply_moves(self, group: asyncio.TaskGroup, board: Board) -> None:
        if self._cut_off_for:
            self._step_back()
            return
        free = [number for number in self._not_here() if name_of(number) not in board.had]
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
        for number in self._closable()[: wanted.give]:
            self._leaving[number].set()
        for number in wanted.take:
            self._leaving[number] = asyncio.Event()
            group.create_task(self._hold(ClusterPartition(number, self._work.partitions)))
        self._log_standby("other workers have all accounts")

    def _step_back(self) -> None:
        """Only others reach the broker: take no partition; give all away after STEPS_BACK."""
        if self._cut_off_for >= STEPS_BACK:
            for leaving in self._leaving.values():
                leaving.set()
        self._log_standby("the broker cannot be reached from here")

    def _not_here(self) -> list[int]:
        """The partitions elsewhere, shuffled so that new workers want different ones."""
        others = [number for number in range(self._work.partitions) if number not in self._leaving]
        random.shuffle(others)
        return others

    @property
    def _staying(self) -> int:
        return sum(not leaving.is_set() for leaving in self._leaving.values())

    def _closable(self) -> list[int]:
        """The partitions that may be given away now: only idle ones for PATIENCE seconds."""
        is_over = self._clock.monotonic() - self._surplus_since > PATIENCE
        return [
            number
            for number, service in self._services.items()
            if not self._leaving[number].is_set() and (is_over or self._is_idle(service))
        ]

    async def _hold(self, share: ClusterPartition) -> None:
        """Run the bot of one partition until it is given away."""
        number = share.partition
        try:
            async with self._open_service(share) as service:
                self._services[number], self._logged = service, ""
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

    def _log_standby(self, why: str) -> None:
        if not self._leaving and self._logged != (why := f"standing by: {why}"):
            self._logged = why
            logger.info("%s", why)

    async def _leave_roster(self) -> None:
        try:
            await self._run_in_thread(self._roster.leave)
        except Away as error:
            logger.debug("the roster cannot be left: %s", error)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
