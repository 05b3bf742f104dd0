"""The owners' line of the day comes once, however many workers there are, and not again after a take-over."""

from __future__ import annotations

import asyncio
import signal
import time

import psycopg

from adapters.storage.leases import HOLDER, name_of
from tests.system.cluster.cluster import Cluster
from tests.system.cluster.test_several_workers import ACCOUNTS, has, unreached
from tests.system.processes.test_signals import ONE, PATIENCE, Bot

OWNER = 20001
DONE = "the day is done with"
LOOKING = f"""
import sys
from bot.cli.cli import main
from bot.commands import digest

digest.DAILY_LOOK = 0.02  # all bots of both workers look at the clock in the same moment
tell = digest.DailyDigest._tell

async def told(self, now, today):
    is_done = await tell(self, now, today)
    if is_done:
        print("{DONE}", file=sys.stderr)
    return is_done

digest.DailyDigest._tell = told
main()
"""


def at_midnight() -> str:
    """The time zone in which a day begins with the next second."""
    minutes, seconds = divmod((int(time.time()) + 1) % 86400, 60)
    return f"UTC+{minutes // 60}:{minutes % 60:02}:{seconds:02}"


async def in_order(cluster: Cluster, *workers: Bot) -> list[Bot]:
    """Whoever has the first partition, and the others."""
    async with await psycopg.AsyncConnection.connect(cluster.store_url) as journal:
        row = await (await journal.execute(HOLDER.replace(":name", "%s"), (name_of(0),))).fetchone()
    assert row is not None
    return sorted(workers, key=lambda one: not row[0].startswith(f"{one.process.pid}."))


async def test_two_workers_tell_it_once_and_who_takes_over_tells_it_no_more(unconnected: Cluster) -> None:
    owned = {"BOT_OWNERS": str(OWNER), "BOT_LANGUAGE": "en"}
    unconnected.gate.opened.set()
    async with unreached(unconnected) as town:
        async with town.gateway() as gateway, town.worker(BOT_DIGEST="0", **owned) as worker:
            await has(worker, 4)
            await town.ask("before")
            await town.answered(1)
            for part in (worker, gateway):
                part.send(signal.SIGTERM)
                assert await part.end() == 0
        given = {"TZ": at_midnight(), "BOT_DIGEST": "00:00", "program": LOOKING, **owned}
        async with town.worker(**given) as one, town.worker(**given) as another:
            for worker in (one, another):
                await worker.until_figure("frostagent_worker_partitions", 2)
            async with town.gateway():
                await town.servers[ACCOUNTS[0]].wait_delivered(2, timeout=PATIENCE)
                teller, other = await in_order(unconnected, one, another)
                teller.process.kill()
                await other.until(DONE)
                await has(other, 4)
                await town.ask("after")
                await asyncio.gather(
                    *(
                        server.wait_delivered(2 + (account == ACCOUNTS[0]), timeout=PATIENCE)
                        for account, server in town.servers.items()
                    )
                )
                other.send(signal.SIGTERM)
                assert await other.end() == 0
    lines = [(a, one.user_id, one.text) for a, s in town.servers.items() for one in s.delivered if not one.group_id]
    assert [(account, who) for account, who, _ in lines] == [(ACCOUNTS[0], OWNER)], lines
    assert lines[0][2].startswith("Yesterday: 4 questions, 4 answered (the day before 0)")
    answers = {a: [one.text for one in s.delivered if one.group_id == ONE] for a, s in town.servers.items()}
    assert answers == {account: [f"A:before{account}", f"A:after{account}"] for account in ACCOUNTS}
