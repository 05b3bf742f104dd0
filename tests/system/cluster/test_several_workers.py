"""Several workers share the accounts: each has its part, and takes over what another leaves; nothing is said twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import create_engine, text

from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from adapters.storage.url import read_url
from tests.fakes import until
from tests.system.cluster.cluster import Cluster
from tests.system.processes.test_signals import ONE, PATIENCE, ROOT, TOKEN, Bot, forget, quoted

ACCOUNTS = (10004, 10002, 10005, 10001)
"""Of four partitions each is in one, in their order: tests/bot/core/test_partitions.py."""

NO_MORE = "All I may spend today is spent: please ask again tomorrow."
FOUR = {"BROKER_PARTITIONS": "4"}


@dataclass
class Town:
    """An account in each partition, and what they said."""

    cluster: Cluster
    servers: dict[int, Simulator]

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[Bot]:
        """All of them at one."""
        async with self.cluster.part("gateway", **FOUR) as gateway:
            await gateway.until("gateway: listening")
            for server in self.servers.values():
                await server.wait_connected(timeout=PATIENCE)
            yield gateway

    @asynccontextmanager
    async def worker(self, **more: str) -> AsyncIterator[Bot]:
        async with self.cluster.part("worker", **FOUR, **more) as bot:
            await bot.until("ready: over the broker")
            yield bot

    async def ask(self, token: str, *accounts: int) -> None:
        for account in accounts or ACCOUNTS:
            await self.servers[account].say(f"@bot plain#{token}{account}")

    async def answered(self, each: int) -> None:
        async with asyncio.timeout(PATIENCE):
            for server in self.servers.values():
                await server.wait_delivered(each, timeout=PATIENCE)

    def answers(self) -> dict[int, list[str]]:
        return {account: [one.text for one in server.delivered] for account, server in self.servers.items()}


@asynccontextmanager
async def unreached(cluster: Cluster) -> AsyncIterator[Town]:
    """One whose accounts connect as soon as a gateway is there."""
    async with AsyncExitStack() as stack:
        servers = {}
        for account in ACCOUNTS:
            world = World(self_id=account)
            world.add_group(ONE, "group", (Person(20001, "user1", role="owner"), Person(20002, "user2")))
            servers[account] = await stack.enter_async_context(Simulator(world, reconnect=0.05))
            servers[account].dial(f"ws://127.0.0.1:{cluster.onebot_port}/", token=TOKEN)
        yield Town(cluster, servers)


@pytest.fixture
async def town(unconnected: Cluster) -> AsyncIterator[Town]:
    async with unreached(unconnected) as town, town.gateway():
        yield town


async def has(worker: Bot, *numbers: int) -> None:
    """Until it has so many accounts at work."""
    async with asyncio.timeout(PATIENCE):
        while True:
            figures = (await worker.get("/metrics"))[1]
            if any(f'frostagent_accounts{{online="true"}} {number:.1f}\n' in figures for number in numbers):
                return


async def test_a_second_worker_takes_half_of_them_and_a_stopped_ones_come_back(town: Town) -> None:
    cluster = town.cluster
    cluster.gate.opened.set()
    async with town.worker() as first, town.worker() as second:
        await has(first, 2)
        await has(second, 2)
        await town.ask("a")
        await town.answered(1)
        second.send(signal.SIGTERM)
        assert await second.end() == 0
        await has(first, 4)
        await town.ask("b")
        await town.answered(2)
        first.send(signal.SIGTERM)
        assert await first.end() == 0
    assert town.answers() == {account: [f"A:a{account}", f"A:b{account}"] for account in ACCOUNTS}


async def beside_gateway(town: Town, command: str, *words: str) -> tuple[int, str]:
    """A command typed where the gateway runs: its exit code, and what it says."""
    (place,) = {path.parents[1] for path in town.cluster.folder.glob("*/data/frostagent.db-control")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", command, *words),
        cwd=place,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        stdout=PIPE,
        stderr=STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_beside_any_part_the_whole_cluster_is_told_and_reaches_a_reload(town: Town) -> None:
    async with town.worker() as first, town.worker() as second:
        await has(first, 2)
        await has(second, 2)
        code, said = await beside_gateway(town, "status", "--json")
        told = json.loads(said)
        cluster = told["cluster"]
        assert (code, {one["account"] for one in told["accounts"]}) == (0, {*ACCOUNTS})
        assert sorted(number for one in cluster["workers"] for number in one["partitions"]) == [0, 1, 2, 3]
        assert {one["pid"] for one in cluster["workers"]} == {first.process.pid, second.process.pid}
        assert [len(one["accounts"]) for one in cluster["gateways"]] == [4]
        assert (cluster["set_aside"], cluster["silent"], len(cluster["partitions"])) == (0, {}, 4)
        code, said = await beside_gateway(town, "reload")
        assert (code, "the journal is read again" in said) == (0, True)
        second.send(signal.SIGSTOP)
        code, said = await beside_gateway(town, "status")
        second.send(signal.SIGCONT)
        assert (code, said.count("\nworker "), said.count("\ngateway ")) == (0, 1, 1)


async def test_of_three_workers_a_killed_ones_accounts_are_taken_over_with_their_questions(town: Town) -> None:
    cluster = town.cluster
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(town.worker()) for _ in range(3)]
        await asyncio.gather(*(has(worker, 1, 2) for worker in workers))
        await town.ask("a")
        await until(lambda: len(cluster.model.asked) == 4, seconds=PATIENCE)
        workers[0].process.kill()
        cluster.gate.opened.set()
        await town.answered(1)
        for worker in workers[1:]:
            worker.send(signal.SIGTERM)
            assert await worker.end() == 0
    assert town.answers() == {account: [f"A:a{account}"] for account in ACCOUNTS}


async def test_one_that_was_frozen_past_its_leases_says_nothing_for_any_of_its_accounts(town: Town) -> None:
    cluster = town.cluster
    async with town.worker() as frozen, town.worker() as other:
        await has(frozen, 2)
        await has(other, 2)
        await town.ask("a")
        await until(lambda: len(cluster.model.asked) == 4, seconds=PATIENCE)
        frozen.send(signal.SIGSTOP)
        await has(other, 4)
        cluster.gate.opened.set()
        await town.answered(1)
        frozen.send(signal.SIGCONT)
        await frozen.until("this process ends at once: STORE_URL: the journal is in use")
        assert await frozen.end() == 2
        await town.ask("b")
        await town.answered(2)
        other.send(signal.SIGTERM)
        assert await other.end() == 0
    assert town.answers() == {account: [f"A:a{account}", f"A:b{account}"] for account in ACCOUNTS}
    assert all(quoted(one) for server in town.servers.values() for one in server.delivered)


async def test_what_one_worker_takes_counts_for_the_limits_of_the_others(town: Town) -> None:
    cluster, limit = town.cluster, {"BOT_DAY_TOKENS_USER": "50", "BOT_LOOP": "0"}
    cluster.gate.opened.set()
    first, *others = ACCOUNTS
    async with town.worker(**limit) as one, town.worker(**limit) as another:
        await has(one, 2)
        await has(another, 2)
        await town.ask("a", first)
        await town.servers[first].wait_delivered(1, timeout=PATIENCE)
        await town.ask("b", *others)
        await town.answered(1)
        for worker in (one, another):
            worker.send(signal.SIGTERM)
            assert await worker.end() == 0
    assert town.answers() == {first: [f"A:a{first}"], **{one: [NO_MORE] for one in others}}
    assert len(cluster.model.asked) == 1


async def test_of_what_one_asks_at_two_workers_at_once_no_more_is_begun_than_his_limit_has_room_for(town: Town) -> None:
    """Whatever the others knew of it: they have last words, without tools, or their turn away."""
    cluster, servers = town.cluster, town.servers.values()
    limit = {"BOT_DAY_TOKENS_USER": "50", "BOT_LOOP": "0"}
    async with town.worker(**limit) as one, town.worker(**limit) as another:
        await has(one, 2)
        await has(another, 2)
        await town.ask("a")
        await until(
            lambda: len(cluster.model.asked) + sum(len(one.delivered) for one in servers) == 4, seconds=PATIENCE
        )
        cluster.gate.opened.set()
        await town.answered(1)
        for worker in (one, another):
            worker.send(signal.SIGTERM)
            assert await worker.end() == 0
    asked = [json.loads(body) for body in cluster.model.bodies]
    assert [bool(body.get("tools")) for body in asked].count(True) == 1
    answers = Counter("A" if text.startswith("A:") else text for (text,) in town.answers().values())
    assert answers == Counter({"A": len(asked), NO_MORE: 4 - len(asked)})
    assert (await taken(cluster.store_url))[0] == (await taken(cluster.store_url))[1] > 50


async def taken(url: str) -> tuple[int, int]:
    """The tokens of the rows, and the total of whoever asked."""
    engine = create_engine(read_url(url))
    with engine.connect() as connection:
        rows = connection.scalar(text("SELECT sum(prompt + completion) FROM usage"))
        total = connection.scalar(text("SELECT tokens FROM day_totals WHERE who = 20001"))
    engine.dispose()
    return int(rows or 0), int(total or 0)


@pytest.mark.parametrize("by_command", [False, True])
async def test_who_is_forgotten_at_one_worker_is_forgotten_by_the_others(town: Town, by_command: bool) -> None:
    cluster = town.cluster
    cluster.gate.opened.set()
    first, *others = ACCOUNTS
    async with town.worker() as one, town.worker() as another:
        await has(one, 2)
        await has(another, 2)
        await town.ask("before")
        await town.answered(1)
        if by_command:
            (folder, *_) = cluster.folder.glob("*/data/run/frostagent-control")
            told = await forget(folder.parents[2], 20001, STORE_URL=cluster.store_url, BROKER_URL=cluster.rabbit.url)
            assert "rows, by the bot that is running here\n" in told
            await town.servers[first].say("@bot plain#between")
        else:
            await town.servers[first].say("@bot /forget me")
        await town.servers[first].wait_delivered(2, timeout=PATIENCE)
        await town.ask("after", *others)
        await town.answered(2)
        for worker in (one, another):
            worker.send(signal.SIGTERM)
            assert await worker.end() == 0
    after = [body.decode() for body in cluster.model.bodies if b"#after" in body]
    assert len(after) == len(others)
    assert not any("#before" in body for body in after)
