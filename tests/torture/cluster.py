"""The kill test over a cluster: gateway, workers and broker die and are begun again, and questions are asked meanwhile.

One moment after the other in one cluster, so that each begins with what the last one left. Nothing may be said twice;
every question gets its answer, or words that quote it.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from adapters.simulator.server import Simulator
from tests.e2e.cluster import Cluster, fresh_database
from tests.e2e.test_signals import ONE, TOKEN, TWO, Bot, Gate, free_port, make_world, quoted
from tests.rabbit import running, why_not
from tests.torture.model import Asked, ScriptedModel

PLACES = ((ONE, 20001), (TWO, 20002), (ONE, 20002))  # nobody asks twice: his questions would be answered together
KINDS = ("plain", "tool", "rounds")
ANSWERED_WITHIN = 45.0  # seconds
FREE = {"BOT_USER_RATE": "0", "BOT_GROUP_RATE": "0", "BOT_LOOP": "0"}


class Blow(Enum):
    """Who is hit."""

    WORKER = "a worker is killed"
    BOTH = "both workers are killed"
    STOP = "a worker is stopped properly"
    FREEZE = "a worker is frozen past its lease"
    GATEWAY = "the gateway is killed"
    BROKER = "the broker is killed"


@dataclass
class Town:
    """The parts of the cluster by name, each followed so that its log is kept."""

    cluster: Cluster
    group: asyncio.TaskGroup
    parts: dict[str, Bot] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    async def begin(self, name: str) -> None:
        """Start this part, and keep it until the group is cancelled."""
        born = asyncio.Event()
        self.group.create_task(self._live(name, born))
        await born.wait()

    async def _live(self, name: str, born: asyncio.Event) -> None:
        role = "gateway" if name == "gateway" else "worker"
        async with self.cluster.part(role, **(FREE if role == "worker" else {})) as bot:
            self.parts[name] = bot
            born.set()
            assert bot.process.stderr is not None
            while line := await bot.process.stderr.readline():
                self.log.append(f"{name}: {line.decode().rstrip()}")
            await bot.process.wait()

    async def end(self, name: str, how: signal.Signals) -> None:
        """End it that way, and begin it again."""
        self.parts[name].send(how)
        await self.parts[name].process.wait()
        await self.begin(name)

    async def strike(self, blow: Blow, dice: Random) -> None:
        """Let it happen; what was hit lives again afterwards."""
        worker = dice.choice(("worker1", "worker2"))
        match blow:
            case Blow.WORKER:
                await self.end(worker, signal.SIGKILL)
            case Blow.BOTH:
                await self.end("worker1", signal.SIGKILL)
                await self.end("worker2", signal.SIGKILL)
            case Blow.STOP:
                await self.end(worker, signal.SIGTERM)
            case Blow.GATEWAY:
                await self.end("gateway", signal.SIGKILL)
            case Blow.BROKER:
                self.cluster.rabbit.kill()
                await asyncio.sleep(2 * dice.random())
                await asyncio.to_thread(self.cluster.rabbit.start)
            case Blow.FREEZE:
                frozen = self.parts[worker]
                frozen.send(signal.SIGSTOP)
                await asyncio.sleep(6)
                frozen.send(signal.SIGCONT)
                await asyncio.sleep(1)
                if frozen.process.returncode is not None:
                    await self.begin(worker)


@dataclass(frozen=True)
class Hour:
    """A moment: what happened, and what is wrong with what came of it."""

    number: int
    blow: Blow
    seconds: float
    complaints: tuple[str, ...]


async def one_hour(town: Town, number: int, dice: Random) -> Hour:
    """Ask, strike, ask again, and see that all are answered once."""
    simulator, asked, begun = town.cluster.simulator, dict[str, str](), time.monotonic()
    before, blow = len(simulator.delivered), dice.choice(tuple(Blow))
    town.log.clear()

    async def ask(place: int) -> None:
        token, (group, person) = f"q{10 * number + place}", PLACES[place]
        words = f"@bot {dice.choice(KINDS)}#{token}"
        asked[token] = str(await simulator.say(words, group_id=group, user_id=person))

    def unanswered() -> list[str]:
        heard = simulator.delivered[before:]
        quotes = {quoted(message) for message in heard}
        return [one for one, said in asked.items() if said not in quotes and not any(one in m.text for m in heard)]

    await ask(0)
    if dice.random() < 0.5:
        await ask(1)
    await asyncio.sleep(0.8 * dice.random())
    await town.strike(blow, dice)
    await ask(2)
    await _until(lambda: not unanswered(), ANSWERED_WITHIN)
    await asyncio.sleep(1.5)  # for what would be said once more
    times = Counter(message.text for message in simulator.delivered[before:] if ":q" in message.text)
    complaints = [f"{token} was never answered" for token in unanswered()]
    complaints += [f"{text!r} was said {said} times" for text, said in times.items() if said > 1]
    return Hour(number, blow, time.monotonic() - begun, tuple(complaints))


async def _until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110  # what is waited for are logs of processes
        await asyncio.sleep(0.1)


async def torture_cluster(*, seed: int, moments: int, say: Callable[[str], None]) -> int:
    """So many moments; the exit code. Needs RabbitMQ, and PostgreSQL in FROST_TEST_POSTGRES."""
    if reason := why_not():
        say(f"cluster: {reason}\n")
        return 0
    dice, hours = Random(seed), list[Hour]()

    async def hold(_: Asked) -> None:
        await asyncio.sleep(0.3 * dice.random())

    with (
        TemporaryDirectory(prefix="cluster-") as folder,
        running(Path(folder) / "node") as rabbit,
        fresh_database() as store_url,
    ):
        place = Path(folder)
        async with ScriptedModel(hold) as model, Simulator(make_world(), reconnect=0.05) as simulator:
            port = free_port()
            simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN)
            async with asyncio.TaskGroup() as group:
                town = Town(Cluster(place, Gate(), model, simulator, rabbit, store_url, port), group)
                living = group.create_task(_live_through(town, moments, dice, hours, say))
                await living
                for bot in town.parts.values():
                    bot.process.kill()
    failed = sum(bool(hour.complaints) for hour in hours)
    say(f"\ncluster: {len(hours)} moments, {failed} failed; {Counter(hour.blow.value for hour in hours)}\n")
    return int(failed > 0)


async def _live_through(town: Town, moments: int, dice: Random, hours: list[Hour], say: Callable[[str], None]) -> None:
    for name in ("gateway", "worker1", "worker2"):
        await town.begin(name)
    await town.cluster.simulator.wait_connected(timeout=ANSWERED_WITHIN)
    await _until(lambda: any("ready: over the broker" in line for line in town.log), ANSWERED_WITHIN)
    for number in range(moments):
        hour = await one_hour(town, number, dice)
        hours.append(hour)
        say("x" if hour.complaints else ".")
        if hour.complaints:
            told = [f"\nmoment {number}: {hour.blow.value}", *hour.complaints, *town.log[-80:]]
            say("\n  ".join(told) + "\n")
