"""`python -m tests.bench --cluster`: one process with a PostgreSQL journal beside a gateway and a worker over RabbitMQ,
in turns; how long a killed worker's accounts wait for another; and how fast one and three workers work off what waits.

Needs RabbitMQ (Debian's package) and FROST_TEST_POSTGRES. Workers and gateways share one core, as the one process has
it; the broker, the driver and the model have the others.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import psutil
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import ProgrammingError

from adapters.broker.partitions import partition_of
from adapters.broker.status import read_status
from adapters.storage.url import read_url
from frostagent.clock import SystemClock
from tests import rabbit
from tests.adapters.broker.conftest import clear
from tests.bench import report
from tests.bench.driver import Driver, driving
from tests.bench.report import Results
from tests.bench.subject import (
    BOT,
    Subject,
    cpu_clock,
    process_of,
    serving_model,
    settings_of,
    sharing_cores,
    url_of,
)
from tests.bench.trial import Figures, Load, measure
from tests.ports import free_port
from tests.rabbit import Rabbit
from tests.system.cluster.cluster import POSTGRES, fresh_database

PARTITIONS = 6
WORKERS = 3
GROUPS = 50  # of an account, in which a backlog was said
RATE, EACH = 3000, 50  # events said in a second at most, looked at after so many of an account
LOOK = 0.1  # seconds between two looks
PATIENCE = 60.0  # seconds for whatever must happen
WORKED_WITHIN = 600.0  # seconds
ONE, SEVERAL = "one process", "gateway + worker"

LABELS = {name: report.LABELS[name] for name in ("p10", "p50", "p95", "rate", "cpu", "peak")}

CPU, ADDED, TAKEN_OVER = 2.0, 8.0, 5.0
"""Times the one process's, ms, seconds: at most."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What the processes stand on."""

    rabbit: Rabbit
    model: str
    cores: Sequence[int]

    def role(self, role: str, store_url: str, *, partitions: int = 1, **more: str) -> dict[str, str]:
        """The settings of a process of this role."""
        return {
            "BOT_ROLE": role,
            "BROKER_URL": self.rabbit.url,
            "BROKER_PARTITIONS": str(partitions),
            "STORE_URL": store_url,
            **more,
        }

    def broker_cpu(self) -> float:
        """Seconds of processor that RabbitMQ has used so far."""
        first = psutil.Process(self.rabbit.pid)
        return sum(time.clock_gettime(cpu_clock(one.pid)) for one in (first, *first.children(recursive=True)))


@dataclass(frozen=True, slots=True)
class Backlog:
    """How what had waited was worked off: seconds from the first row to the last, and from the start of the workers;
    `faults` are events that are not there, are there twice, or out of order.
    """

    workers: int
    events: int
    seconds: float
    whole: float
    faults: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Events a second, once the first was taken."""
        return self.events / self.seconds if self.seconds else float(self.events)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that was measured: each of the `gaps` is the longest that any account waited after a kill, in seconds."""

    results: Results
    gaps: tuple[float, ...]
    backlogs: tuple[Backlog, ...] = field(default_factory=tuple)


def why_not() -> str:
    """Why it cannot be measured here; empty where it can."""
    return rabbit.why_not() or ("" if POSTGRES else "FROST_TEST_POSTGRES names no server")


async def measure_cluster(*, rounds: int, load: Load, kills: int, backlog: int, bot_cpu: int | None = None) -> Outcome:
    """Everything, one after the other."""
    with (
        sharing_cores(bot_cpu) as cores,
        TemporaryDirectory(prefix="bench-rabbit-") as folder,
        rabbit.running(Path(folder) / "node") as broker,
    ):
        async with serving_model() as model:
            ground = Ground(broker, model, cores)
            results = await side_by_side(ground, rounds=rounds, load=load)
            gaps = await take_overs(ground, kills)
            worked = [await work_off(ground, backlog, workers) for workers in (1, WORKERS)]
            return Outcome(results, tuple(gaps), tuple(worked))


# --- a message ------------------------------------------------------------------------------------


async def side_by_side(ground: Ground, *, rounds: int, load: Load) -> dict[str, list[Figures]]:
    """One process, then a gateway and a worker, in every round; each with an empty journal and broker."""
    results: dict[str, list[Figures]] = {ONE: [], SEVERAL: []}
    for _ in range(rounds):
        for name, found in results.items():
            await clear(ground.rabbit.url)
            with fresh_database() as url:
                roles = ("gateway", "worker")
                parts = ({"STORE_URL": url},) if name == ONE else tuple(ground.role(role, url) for role in roles)
                subject = Subject(name, BOT.words, parts=parts)
                beside = ground.broker_cpu
                found.append(await measure(subject, load, model=ground.model, cores=ground.cores, beside=beside))
    return results


# --- several workers ------------------------------------------------------------------------------


@dataclass
class Town:
    """A gateway, and an account in each partition; workers come and go."""

    ground: Ground
    store_url: str
    common: Mapping[str, str]
    drivers: tuple[Driver, ...]
    stack: AsyncExitStack

    async def worker(self) -> tuple[asyncio.subprocess.Process, int]:
        """One more, and where it shows how it is."""
        port = free_port()
        role = self.ground.role("worker", self.store_url, partitions=PARTITIONS, WEB_PORT=str(port))
        starting = process_of(BOT, {**self.common, **role}, cores=self.ground.cores)
        return await self.stack.enter_async_context(starting), port


@asynccontextmanager
async def town_of(ground: Ground) -> AsyncIterator[Town]:
    """A town with an empty journal and broker, and no worker yet."""
    await clear(ground.rabbit.url)
    with fresh_database() as url:
        async with AsyncExitStack() as stack:
            port = free_port()
            common = settings_of(BOT, model=ground.model, port=port)
            gateway = common | ground.role("gateway", url, partitions=PARTITIONS)
            await stack.enter_async_context(process_of(BOT, gateway, cores=ground.cores))
            drivers = [await stack.enter_async_context(driving(url_of(port), one)) for one in accounts()]
            yield Town(ground, url, common, tuple(drivers), stack)


def accounts() -> tuple[int, ...]:
    """One of each partition."""
    of = {partition_of(number, PARTITIONS): number for number in range(3_000_000_100, 3_000_000_001, -1)}
    return tuple(account for _, account in sorted(of.items()))


async def take_overs(ground: Ground, kills: int) -> list[float]:
    """Kill one of three workers so often; how long the account that waited longest did."""
    gaps = []
    async with town_of(ground) as town:
        workers = [await town.worker() for _ in range(WORKERS)]
        for number in range(kills):
            await shared_evenly([port for _, port in workers])
            process, _ = workers.pop(0)
            process.kill()
            gaps.append(max(await asyncio.gather(*(driver.ask(number) for driver in town.drivers))))
            await process.wait()
            workers.append(await town.worker())
    return gaps


async def shared_evenly(ports: Sequence[int]) -> None:
    """Return once each of the workers has its part of the accounts. Raises TimeoutError."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
        while True:
            had = [await accounts_at(session, port) for port in ports]
            if all(number == PARTITIONS // WORKERS for number in had):
                return
            await asyncio.sleep(LOOK)


async def accounts_at(session: aiohttp.ClientSession, port: int) -> int:
    """How many accounts a worker has; 0 for one that does not listen yet."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            shown = await answer.text()
    except aiohttp.ClientError:
        return 0
    lines = [line for line in shown.splitlines() if line.startswith("frostagent_accounts{")]
    return int(sum(float(line.split()[-1]) for line in lines))


# --- what waits -----------------------------------------------------------------------------------


async def work_off(ground: Ground, events: int, workers: int) -> Backlog:
    """Let so many events wait in the broker, then start so many workers."""
    async with town_of(ground) as town:
        said = dict.fromkeys(range(len(town.drivers)), 0)
        begun = time.perf_counter()
        async with asyncio.timeout(WORKED_WITHIN):
            for number in range(events):
                turn, place = divmod(number, len(town.drivers))
                await town.drivers[place].say(turn % GROUPS)
                said[place] += 1
                if not said[place] % EACH:
                    await asyncio.sleep(begun + number / RATE - time.perf_counter())
        async with asyncio.timeout(PATIENCE):
            while await waiting_at(ground) < events:
                pass
        began = time.perf_counter()
        for _ in range(workers):
            await town.worker()
        engine = create_engine(read_url(town.store_url))
        try:
            first, last = await asyncio.to_thread(watch_rows, engine, events)
            faults = await asyncio.to_thread(faults_in, engine, town.drivers, said)
        finally:
            engine.dispose()
    return Backlog(workers, events, last - first, last - began, tuple(faults))


async def waiting_at(ground: Ground) -> int:
    """How many events the broker has."""
    found = await read_status(ground.rabbit.url, PARTITIONS, clock=SystemClock())
    return sum(one.waiting for one in found.partitions)


def watch_rows(engine: Engine, events: int) -> tuple[float, float]:
    """When the first event was in the journal, and when all were. Raises TimeoutError."""
    first, begun = 0.0, time.perf_counter()
    while time.perf_counter() - begun < WORKED_WITHIN:
        rows = rows_in(engine)
        first = first or (time.perf_counter() if rows else 0.0)
        if rows >= events:
            return first, time.perf_counter()
        time.sleep(LOOK)
    raise TimeoutError(f"{rows_in(engine)} of {events} events were worked off")


def rows_in(engine: Engine) -> int:
    """How many messages the journal has; 0 where there is none yet."""
    with engine.connect() as connection:
        try:
            return connection.scalar(text("SELECT count(*) FROM messages")) or 0
        except ProgrammingError:
            return 0


def faults_in(engine: Engine, drivers: Sequence[Driver], said: Mapping[int, int]) -> list[str]:
    """What is lost, twice or out of order, by account; rows are in the order in which they were worked."""
    query = text("SELECT message_id FROM messages WHERE self_id = :account ORDER BY id")
    found = []
    with engine.connect() as connection:
        for place, driver in enumerate(drivers):
            rows = connection.execute(query, {"account": driver.account}).all()
            numbers = [int(row[0]) for row in rows]
            if len(set(numbers)) < len(numbers):
                found.append(f"{driver.account}: {len(numbers) - len(set(numbers))} events twice")
            if len(set(numbers)) != said[place]:
                found.append(f"{driver.account}: {len(set(numbers))} events of {said[place]}")
            if numbers != sorted(numbers):
                found.append(f"{driver.account}: out of order")
    return found


# --- the report -----------------------------------------------------------------------------------


def told(outcome: Outcome) -> str:
    """The figures, and each beside its bound."""
    results = outcome.results
    cpu = report.ratio(results, "cpu", SEVERAL, ONE).median
    added = median(many.p50 - one.p50 for many, one in zip(results[SEVERAL], results[ONE], strict=True))
    gap = max(outcome.gaps)
    rows = [
        ["bounds", "measured", "agreed", ""],
        ["processor", f"{cpu:.2f}x", f"<= {CPU:g}x", report.word(cpu <= CPU)],
        ["added to the median", f"{added:.2f} ms", f"<= {ADDED:g} ms", report.word(added <= ADDED)],
        ["a killed worker's accounts wait", f"{gap:.2f} s", f"<= {TAKEN_OVER:g} s", report.word(gap <= TAKEN_OVER)],
    ]
    rows += [
        [
            f"{one.events} events, workers: {one.workers}",
            f"{one.rate:.0f} /s",
            "; ".join(one.faults) or "each once, in order",
            report.word(not one.faults),
        ]
        for one in outcome.backlogs
    ]
    broker = median(one.beside for one in results[SEVERAL])
    waited = ", ".join(f"{one:.1f}" for one in outcome.gaps)
    started = ", ".join(f"{one.whole:.1f}" for one in outcome.backlogs)
    return (
        report.table(results, [(SEVERAL, ONE)], LABELS)
        + report.lines(rows)
        + f"RabbitMQ itself takes {broker:.2f} ms of processor a message\n"
        + f"waited after each kill: {waited} s; from the start of the workers to the last event: {started} s\n"
    )


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        **report.as_json(outcome.results, [(SEVERAL, ONE)]),
        "gaps": outcome.gaps,
        "backlogs": [asdict(one) | {"rate": one.rate} for one in outcome.backlogs],
        "cores": len(os.sched_getaffinity(0)),
    }
