"""A cluster of processes on a real RabbitMQ and a real PostgreSQL: who is killed, frozen or replaced answers nothing
twice, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack

import aio_pika
import psycopg
import pytest
from aio_pika import Message
from sqlalchemy import make_url

from adapters.broker.topology import EVENTS, queue_of
from tests.adapters.storage.proxy import Proxy
from tests.fallback_lines import HERE
from tests.postgres import Postgres, running, why_not
from tests.system.cluster.cluster import Cluster, fresh_database
from tests.system.processes.test_signals import ONE, PATIENCE, TWO


async def test_a_question_goes_by_a_gateway_to_a_worker_and_its_answer_back(cluster: Cluster) -> None:
    simulator = cluster.simulator
    cluster.gate.opened.set()
    async with cluster.gateway() as gateway, cluster.worker() as worker:
        first = await simulator.say("@bot plain#q1")
        second = await simulator.say("@bot tool#q2", group_id=TWO)
        await simulator.wait_delivered(3, timeout=PATIENCE)
        assert (await gateway.get("/readyz"))[0] == 200
        await gateway.until_figure("frostagent_gateway_waiting", 0)
        await gateway.until_figure("frostagent_broker_up", 1)
        for part in (worker, gateway):
            part.send(signal.SIGTERM)
            assert await part.end() == 0
    assert cluster.answers() == [("A:q1", str(first)), ("F:q2", str(second)), ("S:q2", "")]
    assert not cluster.model.invalid


async def test_one_process_may_be_gateway_and_worker(cluster: Cluster) -> None:
    cluster.gate.opened.set()
    async with cluster.part("all") as bot:
        await bot.until("ready: over the broker")
        await bot.until_figure('frostagent_accounts{online="true"}', 1)
        asked = await cluster.simulator.say("@bot plain#q1")
        await cluster.simulator.wait_delivered(1, timeout=PATIENCE)
        bot.send(signal.SIGTERM)
        assert await bot.end() == 0
    assert cluster.answers() == [("A:q1", str(asked))]


async def test_a_worker_that_is_killed_is_replaced_and_its_question_answered_once(cluster: Cluster) -> None:
    simulator, gate = cluster.simulator, cluster.gate
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster.gateway())
        working = await stack.enter_async_context(cluster.worker())
        waiting = await stack.enter_async_context(cluster.part("worker"))
        await waiting.until("standing by: other workers have all accounts")
        assert (await waiting.get("/healthz"))[0] == 200
        status, why = await waiting.get("/readyz")
        assert (status, "standing by: other workers have all accounts" in why) == (503, True)
        first = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        working.process.kill()
        second = await simulator.say("@bot plain#q2", group_id=TWO)
        gate.opened.set()
        await waiting.until("ready: over the broker")
        await simulator.wait_delivered(2, timeout=PATIENCE)
        waiting.send(signal.SIGTERM)
        assert await waiting.end() == 0
    assert cluster.answers() == [("A:q1", str(first)), ("A:q2", str(second))]


async def test_a_poke_that_a_killed_worker_had_answered_is_not_answered_by_the_next_one(cluster: Cluster) -> None:
    simulator = cluster.simulator
    cluster.gate.opened.set()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster.gateway())
        working = await stack.enter_async_context(cluster.worker())
        waiting = await stack.enter_async_context(cluster.part("worker"))
        await waiting.until("standing by: ")
        connection = await stack.enter_async_context(await aio_pika.connect(cluster.rabbit.url))
        channel = await connection.channel()
        copies = await channel.declare_queue(exclusive=True)
        await copies.bind(EVENTS, queue_of(0))
        await simulator.incidents.poke(user_id=20001, group_id=ONE)
        await simulator.wait_delivered(1, timeout=PATIENCE)
        poke = await copies.get(timeout=PATIENCE, no_ack=True)
        working.process.kill()
        # As the broker does with what a worker had not acknowledged when it died.
        again = Message(poke.body, headers=poke.headers)
        await (await channel.get_exchange(EVENTS)).publish(again, queue_of(0))
        asked = await simulator.say("@bot plain#q1")
        await waiting.until("ready: over the broker")
        await simulator.wait_delivered(2, timeout=PATIENCE)
        waiting.send(signal.SIGTERM)
        assert await waiting.end() == 0
    assert b'"type":"poked"' in poke.body
    assert cluster.answers() == [("A:q1", str(asked)), (HERE, "")]


async def test_a_worker_that_was_frozen_past_its_lease_says_nothing_any_more(cluster: Cluster) -> None:
    simulator, gate = cluster.simulator, cluster.gate
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster.gateway())
        frozen = await stack.enter_async_context(cluster.worker())
        waiting = await stack.enter_async_context(cluster.part("worker"))
        await waiting.until("standing by: ")
        asked = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        frozen.send(signal.SIGSTOP)
        await waiting.until("ready: over the broker")
        gate.opened.set()
        await simulator.wait_delivered(1, timeout=PATIENCE)
        frozen.send(signal.SIGCONT)
        await frozen.until("this process ends at once: STORE_URL: the journal is in use")
        assert await frozen.end() == 2
        later = await simulator.say("@bot plain#q2")
        await simulator.wait_delivered(2, timeout=PATIENCE)
        waiting.send(signal.SIGTERM)
        assert await waiting.end() == 0
    assert cluster.answers() == [("A:q1", str(asked)), ("A:q2", str(later))]


async def test_events_that_come_while_no_worker_is_there_wait_in_the_broker(cluster: Cluster) -> None:
    simulator = cluster.simulator
    cluster.gate.opened.set()
    async with cluster.gateway() as gateway:
        first = await simulator.say("@bot plain#q1", group_id=TWO)
        second = await simulator.say("@bot plain#q2")
        await gateway.until_figure("frostagent_gateway_waiting", 0)
        gateway.process.kill()
        await gateway.process.wait()
        async with cluster.gateway(), cluster.worker():
            await simulator.wait_delivered(2, timeout=PATIENCE)
            late = await simulator.say("@bot plain#q3")
            await simulator.wait_delivered(3, timeout=PATIENCE)
    assert cluster.answers() == [("A:q1", str(first)), ("A:q2", str(second)), ("A:q3", str(late))]


async def test_a_broker_that_is_killed_loses_nothing(cluster: Cluster) -> None:
    simulator = cluster.simulator
    cluster.gate.opened.set()
    async with cluster.gateway() as gateway, cluster.worker() as worker:
        first = await simulator.say("@bot plain#q1")
        await simulator.wait_delivered(1, timeout=PATIENCE)
        cluster.rabbit.kill()
        await gateway.until("The broker cannot be reached")
        assert (await gateway.get("/readyz"))[0] == 503
        second = await simulator.say("@bot plain#q2")
        await gateway.until_figure("frostagent_gateway_waiting", 1)
        await asyncio.to_thread(cluster.rabbit.start)
        await simulator.wait_delivered(2, timeout=PATIENCE)
        for part in (worker, gateway):
            part.send(signal.SIGTERM)
            assert await part.end() == 0
    assert cluster.answers() == [("A:q1", str(first)), ("A:q2", str(second))]


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    if reason := why_not():
        pytest.skip(reason)
    with running() as server:
        yield server


async def test_a_database_that_is_killed_loses_nothing(cluster: Cluster, postgres: Postgres) -> None:
    simulator, gate = cluster.simulator, cluster.gate
    async with cluster.gateway(), cluster.worker(STORE_URL=postgres.url) as worker:
        first = await simulator.say("@bot plain#q1")
        await gate.began.wait()
        await asyncio.to_thread(postgres.kill)
        second = await simulator.say("@bot plain#q2", group_id=TWO)
        await worker.until("the journal is away: events are left to whoever can reach it")
        gate.opened.set()
        await asyncio.to_thread(postgres.start)
        await simulator.wait_delivered(2, timeout=PATIENCE)
        third = await simulator.say("@bot plain#q3")
        await simulator.wait_delivered(3, timeout=PATIENCE)
        worker.send(signal.SIGTERM)
        assert await worker.end() == 0
    assert cluster.answers() == [("A:q1", str(first)), ("A:q2", str(second)), ("A:q3", str(third))]


async def test_an_answer_that_was_ready_while_the_broker_was_away_is_sent_once_it_is_back(cluster: Cluster) -> None:
    simulator = cluster.simulator
    async with cluster.gateway(), cluster.worker(BOT_LANGUAGE="en") as worker:
        asked = await simulator.say("@bot plain#q1")
        await cluster.gate.began.wait()
        cluster.rabbit.kill()
        await worker.until("The broker cannot be reached")
        cluster.gate.opened.set()
        await worker.until("cannot send to 10001:group:4242 yet")
        await asyncio.to_thread(cluster.rabbit.start)
        await simulator.wait_delivered(1, timeout=PATIENCE)
        worker.send(signal.SIGTERM)
        assert await worker.end() == 0
    assert cluster.answers() == [("A:q1", str(asked))]


async def test_a_worker_that_is_cut_off_from_the_database_says_nothing_of_what_it_only_remembers(
    cluster: Cluster,
) -> None:
    simulator, there = cluster.simulator, make_url(cluster.store_url)
    proxy = Proxy(there.host or "", there.port or 5432)
    await proxy.fix()
    through = there.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster.gateway())
        cut_off = await stack.enter_async_context(cluster.part("worker", STORE_URL=through, BOT_LANGUAGE="en"))
        await cut_off.until("ready: over the broker")
        await cut_off.until_figure('frostagent_accounts{online="true"}', 1)
        waiting = await stack.enter_async_context(cluster.part("worker"))
        await waiting.until("standing by: ")
        first = await simulator.say("@bot plain#q1")
        await cluster.gate.began.wait()
        await proxy.cut()
        second = await simulator.say("@bot plain#q2", group_id=TWO)
        await cut_off.until("Nothing is said until it can be")
        cluster.gate.opened.set()
        await waiting.until("after a restart: ")
        assert simulator.delivered == []
        await proxy.fix()
        await cut_off.until("this process ends at once: STORE_URL: the journal is in use")
        assert await cut_off.end() == 2
        await simulator.wait_delivered(2, timeout=PATIENCE)
        waiting.send(signal.SIGTERM)
        assert await waiting.end() == 0
    await proxy.cut()
    assert cluster.answers() == [("A:q1", str(first)), ("A:q2", str(second))]


async def test_what_a_worker_alone_gave_back_while_the_database_was_away_it_answers_once_when_it_is_there(
    cluster: Cluster,
) -> None:
    simulator, there = cluster.simulator, make_url(cluster.store_url)
    proxy = Proxy(there.host or "", there.port or 5432)
    await proxy.fix()
    through = there.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    cluster.gate.opened.set()
    async with cluster.gateway(), cluster.worker(STORE_URL=through) as worker:
        first = await simulator.say("@bot plain#q1")
        await simulator.wait_delivered(1, timeout=PATIENCE)
        await proxy.cut()
        second = await simulator.say("@bot plain#q2")
        await worker.until("the journal is away: events are left to whoever can reach it")
        await proxy.fix()
        await simulator.wait_delivered(2, timeout=PATIENCE)
        third = await simulator.say("@bot plain#q3")
        await simulator.wait_delivered(3, timeout=PATIENCE)
        worker.send(signal.SIGTERM)
        assert await worker.end() == 0
    await proxy.cut()
    assert cluster.answers() == [("A:q1", str(first)), ("A:q2", str(second)), ("A:q3", str(third))]


async def test_a_worker_without_a_database_stands_by_until_it_is_there(cluster: Cluster) -> None:
    there = make_url(cluster.store_url)
    proxy = Proxy(there.host or "", there.port or 5432)
    await proxy.fix()
    await proxy.cut()
    through = there.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    cluster.gate.opened.set()
    async with cluster.gateway(), cluster.part("worker", STORE_URL=through) as worker:
        await worker.until("standing by: the journal cannot be reached")
        assert (await worker.get("/readyz"))[0] == 503
        asked = await cluster.simulator.say("@bot plain#q1")
        await proxy.fix()
        await worker.until("ready: over the broker")
        await cluster.simulator.wait_delivered(1, timeout=PATIENCE)
        worker.send(signal.SIGTERM)
        assert await worker.end() == 0
    await proxy.cut()
    assert worker.told.count("standing by") == 1
    assert cluster.answers() == [("A:q1", str(asked))]


async def test_an_upgrade_part_by_part_ends_each_properly_and_answers_every_question_once(cluster: Cluster) -> None:
    """Workers first, as docs/cluster.md says, then gateways; somebody asks at each moment."""
    simulator, gate, asked = cluster.simulator, cluster.gate, list[int]()

    async def ask(number: int, group_id: int = ONE) -> None:
        asked.append(await simulator.say(f"@bot plain#q{number}", group_id=group_id))

    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(cluster.gateway())
        older = await stack.enter_async_context(cluster.worker())
        newer = await stack.enter_async_context(cluster.part("worker"))
        await newer.until("standing by: ")
        await ask(1)
        await gate.began.wait()
        older.send(signal.SIGTERM)
        await older.until("stopping")
        await ask(2, TWO)  # nothing is begun any more there
        gate.opened.set()
        assert await older.end() == 0
        await newer.until("ready: over the broker")
        await simulator.wait_delivered(2, timeout=PATIENCE)
        await ask(3)
        await simulator.wait_delivered(3, timeout=PATIENCE)
        gateway.send(signal.SIGTERM)
        assert await gateway.end() == 0
        await ask(4, TWO)  # while no gateway is there
        another = await stack.enter_async_context(cluster.gateway())
        await simulator.wait_delivered(4, timeout=PATIENCE)
        await ask(5)
        await simulator.wait_delivered(5, timeout=PATIENCE)
        for part in (newer, another):
            part.send(signal.SIGTERM)
            assert await part.end() == 0
    assert cluster.answers() == [(f"A:q{number}", str(said)) for number, said in enumerate(asked, 1)]
    assert "events are lost" not in gateway.told + another.told


async def test_another_number_of_partitions_is_refused(cluster: Cluster) -> None:
    async with cluster.gateway(), cluster.part("worker", BROKER_PARTITIONS="4") as bot:
        assert await bot.end() == 2
        assert "BROKER_PARTITIONS: is 4, but the broker's events are in another number" in bot.told


@pytest.mark.usefixtures("store_url")
def test_the_database_of_a_run_that_breaks_is_not_left_behind() -> None:
    def is_there(url: str) -> bool:
        psycopg.connect(url).close()
        return True

    with pytest.raises(ZeroDivisionError), fresh_database() as url:
        assert 1 / (not is_there(url))
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        is_there(url)
