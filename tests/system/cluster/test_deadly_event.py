"""An event that ends each worker that handles it is known by the sixth and set aside; what is beside it is answered."""

from __future__ import annotations

import signal

import aio_pika
import pytest

from adapters.broker.partition_consumer import DEADLY, DOUBTED
from adapters.broker.topology import DEAD
from tests.system.cluster.cluster import Cluster
from tests.system.processes.test_signals import PATIENCE, TWO

OWNER, OTHER = 20001, 20002
KILLED = 9
POISONED = f"""
import os
from bot.cli.cli import main
from bot.chat.dispatcher import Dispatcher

handle = Dispatcher.handle

async def die(self, event):
    if "poison" in str(event):
        os._exit({KILLED})
    await handle(self, event)

Dispatcher.handle = die
main()
"""


@pytest.mark.timeout(180)  # five times a lease runs out
async def test_an_event_that_ends_its_workers_ends_six_and_what_is_beside_it_is_answered_once(cluster: Cluster) -> None:
    simulator, ends, given = cluster.simulator, list[int](), {"BOT_OWNERS": str(OWNER), "BOT_LANGUAGE": "en"}
    cluster.gate.opened.set()
    async with cluster.gateway() as gateway:
        first = await simulator.say("@bot plain#q1")
        await simulator.say("@bot poison", group_id=TWO)
        second = await simulator.say("@bot plain#q2", user_id=OTHER)  # two of one person may be answered together
        await gateway.until_figure("frostagent_gateway_waiting", 0)
        while len(ends) < DOUBTED + DEADLY:
            async with cluster.part("worker", program=POISONED, **given) as worker:
                ends.append(await worker.end())
        async with cluster.worker(program=POISONED, **given) as worker:
            await simulator.wait_delivered(3, timeout=PATIENCE)
            third = await simulator.say("@bot plain#q3", group_id=TWO)
            await simulator.wait_delivered(4, timeout=PATIENCE)
            worker.send(signal.SIGTERM)
            assert await worker.end() == 0
    assert ends == [KILLED] * (DOUBTED + DEADLY)
    (told,) = [one for one in simulator.delivered if one.user_id == OWNER]
    assert told.text.startswith(f"Workers ended while they handled an event ({DEADLY} times).")
    answers = [(text, quoted) for text, quoted in cluster.answers() if text != told.text]
    assert answers == [("A:q1", str(first)), ("A:q2", str(second)), ("A:q3", str(third))]
    async with await aio_pika.connect(cluster.rabbit.url) as connection:
        dead = await (await connection.channel()).declare_queue(DEAD, passive=True)
        assert b"poison" in (await dead.get(timeout=PATIENCE, no_ack=True)).body
