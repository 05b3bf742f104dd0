"""The kill test over a cluster: gateways, workers, broker and database are struck, or a worker is cut off from them,
and questions are asked meanwhile.

One moment after the other in one cluster, so that each begins with what the last one left. In each every question gets
its answer, or words that quote it; the rest is judged over all of them (`whole_run`).
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import assert_never

from sqlalchemy import create_engine, make_url, text

from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from adapters.storage.url import read_url
from tests import postgres
from tests.adapters.storage.proxy import Proxy
from tests.apart import Host, Pipes, host_or_pipes
from tests.ports import free_port
from tests.postgres import Postgres
from tests.rabbit import PROGRAM, Rabbit, running
from tests.system.cluster.cluster import Cluster
from tests.system.processes.test_signals import ONE, TOKEN, TWO, Bot, Gate, quoted
from tests.torture.blows import Blow, deal
from tests.torture.journal import Journal, read_rows
from tests.torture.model import Asked, ScriptedModel
from tests.torture.oracle import unsound_rows
from tests.torture.whole_run import Query, judge_run

ACCOUNTS = (10004, 10002, 10005, 10001)
"""Of four partitions each is in one, in their order; the first two are at one gateway, the others at the other."""

GATEWAYS, WORKERS, APART = ("gateway1", "gateway2"), ("worker1", "worker2", "worker3"), "worker3"
LINKS = (("database",), ("broker",), ("database", "broker"))
LONGEST = 30.0  # seconds without them: who cannot reach the broker alone keeps what it has for some 25
PLACES = ((ONE, 20001), (TWO, 20002), (ONE, 20002), (TWO, 20001))  # nobody asks twice, to be answered together
KINDS = ("plain", "tool", "rounds")
MOMENTS = 100
UNTRIED = 2  # the exit code
ANSWERED_WITHIN = 45.0  # seconds
FREE = {"BOT_USER_RATE": "0", "BOT_GROUP_RATE": "0", "BOT_LOOP": "0"}
FOUR = {"BROKER_PARTITIONS": "4"}


@dataclass
class Town:
    """The parts of the cluster by name, each followed so that its log is kept."""

    cluster: Cluster
    servers: Mapping[int, Simulator]
    environments: Mapping[str, Mapping[str, str]]
    postgres: Postgres
    database: Proxy
    host: Host | Pipes
    group: asyncio.TaskGroup
    parts: dict[str, Bot] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    asked: list[Query] = field(default_factory=list)

    async def begin(self, name: str) -> None:
        """Start this part, and keep it until the group is cancelled."""
        born = asyncio.Event()
        self.group.create_task(self._live(name, born))
        await born.wait()

    async def _live(self, name: str, born: asyncio.Event) -> None:
        words = self.host.words if name == APART else ()
        async with self.cluster.part_on(words, name[:-1], **self.environments[name]) as bot:
            self.parts[name] = bot
            born.set()
            assert bot.process.stderr is not None
            while line := await bot.process.stderr.readline():
                self.log.append(f"{name}: {line.decode().rstrip()}")
            await bot.process.wait()

    async def end(self, name: str, how: signal.Signals) -> None:
        """End it that way, and begin it again; one that was ousted has ended by itself."""
        if self.parts[name].process.returncode is None:
            self.parts[name].send(how)
        await self.parts[name].process.wait()
        await self.begin(name)

    async def strike(self, blow: Blow, dice: Random, meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Let it happen, and this where it lasts for long; what was hit lives again afterwards."""
        worker = dice.choice(WORKERS)
        match blow:
            case Blow.WORKER:
                await self.end(worker, signal.SIGKILL)
            case Blow.ALL:
                for name in WORKERS:
                    await self.end(name, signal.SIGKILL)
            case Blow.STOP:
                await self.end(worker, signal.SIGTERM)
            case Blow.GATEWAY:
                await self.end(dice.choice(GATEWAYS), signal.SIGKILL)
            case Blow.BROKER:
                self.cluster.rabbit.kill()
                await asyncio.sleep(2 * dice.random())
                await asyncio.to_thread(self.cluster.rabbit.start)
            case Blow.DATABASE:
                await self.database.cut()
                await asyncio.sleep(6 * dice.random())
                await self.database.fix()
            case Blow.CRASH:
                await asyncio.to_thread(self.postgres.kill)
                await asyncio.sleep(6 * dice.random())
                await asyncio.to_thread(self.postgres.start)
            case Blow.FREEZE:
                if (frozen := self.parts[worker]).process.returncode is None:
                    frozen.send(signal.SIGSTOP)
                    await asyncio.sleep(6)
                    frozen.send(signal.SIGCONT)
                    await asyncio.sleep(1)
            case Blow.CUT_OFF:
                links, seconds = dice.choice(LINKS), LONGEST * dice.random()
                self.host.cut(*links)
                await asyncio.sleep(seconds / 2)
                await meanwhile()
                await asyncio.sleep(seconds / 2)
                self.host.heal(*links)
                await asyncio.sleep(1)
            case _:
                assert_never(blow)
        for name, part in tuple(self.parts.items()):  # a worker whose leases were lost ends by itself
            if part.process.returncode is not None:
                await self.begin(name)


@dataclass(frozen=True)
class Hour:
    """A moment: what happened, and what is wrong with what came of it."""

    number: int
    blow: Blow
    seconds: float
    complaints: tuple[str, ...]


async def one_hour(town: Town, number: int, blow: Blow, dice: Random) -> Hour:
    """Ask, strike, ask again, and see that all are answered once."""
    servers, asked, begun = town.servers, dict[str, Query](), time.monotonic()
    before = {account: len(server.delivered) for account, server in servers.items()}
    town.log.clear()

    async def ask(place: int) -> None:
        account, token, (group, person) = dice.choice(ACCOUNTS), f"q{10 * number + place}", PLACES[place]
        words = f"@bot {dice.choice(KINDS)}#{token}"
        said = await servers[account].say(words, group_id=group, user_id=person)
        asked[token] = Query(token, account, group, str(said), said in servers[account].missed)
        town.asked.append(asked[token])

    def is_answered(token: str) -> bool:
        one = asked[token]
        heard = servers[one.account].delivered[before[one.account] :]
        return any(quoted(said) == one.message_id or token in said.text for said in heard)

    def unanswered() -> list[str]:
        return [token for token in asked if not is_answered(token)]

    await ask(0)
    if dice.random() < 0.5:
        await ask(1)
    await asyncio.sleep(0.8 * dice.random())
    await town.strike(blow, dice, partial(ask, 3))
    await ask(2)
    await _until(lambda: not unanswered(), ANSWERED_WITHIN)
    await asyncio.sleep(1.5)  # for what would be said once more
    complaints = [f"{asked[token]} was never answered" for token in unanswered()]
    return Hour(number, blow, time.monotonic() - begun, tuple(complaints))


async def _until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110  # what is waited for are logs of processes
        await asyncio.sleep(0.1)


async def torture_cluster(*, seed: int, moments: int, say: Callable[[str], None]) -> int:
    """So many moments; the exit code. Needs RabbitMQ and PostgreSQL, and starts its own."""
    if reason := why_not():
        say(f"cluster: no moment was tried: {reason}\n")
        return UNTRIED
    hours = list[Hour]()
    with (
        TemporaryDirectory(prefix="cluster-") as folder,
        running(Path(folder) / "node") as rabbit,
        postgres.running() as server,
    ):
        async with _town(Path(folder), rabbit, server, Random(f"{seed} model")) as town:
            await _live_through(town, moments, seed, hours, say)
            wrong = await _judge(town)
    failed = sum(bool(hour.complaints) for hour in hours)
    say("".join(f"\nover all: {complaint}" for complaint in wrong))
    say(f"\ncluster: {len(hours)} moments, {failed} failed; {Counter(hour.blow.value for hour in hours)}\n")
    return int(failed > 0 or bool(wrong))


async def _judge(town: Town) -> list[str]:
    """What is wrong with the run, once what is unfinished had its time to be settled."""
    engine = create_engine(read_url(town.postgres.url))

    def read() -> Journal:
        with engine.connect() as connection:
            journal = read_rows(lambda sql: [dict(row) for row in connection.execute(text(sql)).mappings()])
        journal.integrity = "ok"  # PostgreSQL sees to that
        return journal

    await _until(lambda: not any(unsound_rows(read())), ANSWERED_WITHIN)
    journal = read()
    engine.dispose()
    delivered = {account: server.delivered for account, server in town.servers.items()}
    return judge_run(town.asked, delivered, town.cluster.model.invalid, journal)


def why_not() -> str:
    """Why there can be no cluster to torture; empty where there can. What is not its own it cannot kill."""
    if not Path(PROGRAM).exists():
        return "RabbitMQ is not installed (Debian: rabbitmq-server)"
    return postgres.why_not()


@asynccontextmanager
async def _town(folder: Path, rabbit: Rabbit, server: Postgres, chance: Random) -> AsyncIterator[Town]:
    """Everything but the parts themselves; at the end those are killed."""
    database, ports = Proxy("127.0.0.1", server.port), (free_port(), free_port())
    await database.fix()
    through = make_url(server.url).set(port=database.port).render_as_string(hide_password=False)

    async def hold(_: Asked) -> None:
        await asyncio.sleep(0.3 * chance.random())

    async with AsyncExitStack() as stack:
        model, servers = await stack.enter_async_context(ScriptedModel(hold)), dict[int, Simulator]()
        for place, account in enumerate(ACCOUNTS):
            servers[account] = await stack.enter_async_context(Simulator(_world(account), reconnect=0.05))
            servers[account].dial(f"ws://127.0.0.1:{ports[place // 2]}/", token=TOKEN)
        cluster = Cluster(folder, Gate(), model, servers[ACCOUNTS[0]], rabbit, through, ports[0])
        host = await stack.enter_async_context(host_or_pipes(cluster.reached))
        environments = dict.fromkeys(WORKERS, FOUR | FREE) | {APART: FOUR | FREE | cluster.settings_on(host)}
        environments |= {name: FOUR | {"ONEBOT_PORT": str(port)} for name, port in zip(GATEWAYS, ports, strict=True)}
        async with asyncio.TaskGroup() as group:
            town = Town(cluster, servers, environments, server, database, host, group)
            yield town
            for bot in town.parts.values():
                if bot.process.returncode is None:
                    bot.process.kill()
    await database.cut()


def _world(account: int) -> World:
    world = World(self_id=account)
    for group in (ONE, TWO):
        world.add_group(group, f"group {group}", (Person(20001, "user1", role="owner"), Person(20002, "user2")))
    return world


async def _live_through(town: Town, moments: int, seed: int, hours: list[Hour], say: Callable[[str], None]) -> None:
    for name in (*GATEWAYS, *WORKERS):
        await town.begin(name)
    for server in town.servers.values():
        await server.wait_connected(timeout=ANSWERED_WITHIN)
    await _until(lambda: all(any(name in line and "ready:" in line for line in town.log) for name in WORKERS), 45)
    for server in town.servers.values():  # what is missed in a place that nobody knew of is not looked for
        for group in (ONE, TWO):
            await server.say("@bot plain#known", group_id=group, user_id=20001)
    await _until(lambda: all(len(server.delivered) == 2 for server in town.servers.values()), ANSWERED_WITHIN)
    for number, (blow, dice) in enumerate(islice(deal(seed), moments)):
        hour = await one_hour(town, number, blow, dice)
        hours.append(hour)
        say("x" if hour.complaints else ".")
        if hour.complaints:
            again = f"again: python -m tests.torture --cluster --seed {seed} --moments {number + 1}"
            told = [f"\nmoment {number}: {blow.value}", *hour.complaints, again, *town.log[-120:]]
            say("\n  ".join(told) + "\n")
