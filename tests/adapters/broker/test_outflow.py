"""Events get to their partitions in order, once where that can be, and one that refuses them holds up no other."""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika
import pytest
from msgspec.structs import replace
from pamqp.common import FieldValue

from adapters.broker import link, outflow
from adapters.broker.payloads import pack
from adapters.broker.topology import queue_of
from bot.domain.events import Conversation
from bot.domain.shares import partition_of
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import OURS, PATIENCE, Desk, Sockets, gateway_of, next_in, said, worker_of
from tests.fakes import until


async def test_a_broker_that_confirms_nothing_without_an_alarm_is_left(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "CONFIRMED_WITHIN", 0.05)
    told, held = list[str](), [True]
    publish = outflow.Outflow._publish

    async def slowly(flow: outflow.Outflow, *one: Any) -> bool:
        if held:
            held.pop()
            await asyncio.Event().wait()
        return await publish(flow, *one)

    monkeypatch.setattr(outflow.Outflow, "_publish", slowly)
    desk = Desk()
    async with gateway_of(broker, Sockets(), told=told) as gateway, worker_of(broker, desk):
        await gateway.handle(said(1))
        await until(lambda: bool(told), seconds=PATIENCE)
        monkeypatch.setattr(link, "CONFIRMED_WITHIN", PATIENCE)
        await until(lambda: desk.numbers == [1] and gateway.published == 1, seconds=PATIENCE)
        assert gateway.lost == 0
    assert told[0] == "The broker cannot be reached (no confirmation within 0.05 s). What is to be sent over it waits."


async def test_a_partition_that_takes_less_than_it_says_holds_up_no_other_and_gets_nothing_twice(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outflow, "PAUSE", 0.05)
    other, told = Conversation(10002, "group", 4242), list[str]()
    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        few: dict[str, FieldValue] = {"x-queue-type": "quorum", "x-max-length": 5, "x-overflow": "reject-publish"}
        partition = await channel.declare_queue(OURS, durable=True, arguments=few)
        theirs = queue_of(partition_of(other.platform_id, PARTITIONS))
        async with gateway_of(broker, Sockets(), told=told) as gateway:
            for number in range(300):
                await gateway.handle(said(number))
            await gateway.handle(replace(said(1), self_id=other.platform_id, conversation=other))
            async with asyncio.timeout(PATIENCE):
                await gateway.wait_published()
            assert (gateway.waiting, gateway.published + gateway.lost) == (0, 301)
            here = await channel.declare_queue(OURS, passive=True)
            there = await channel.declare_queue(theirs, passive=True)
            counts = [one.declaration_result.message_count for one in (here, there)]
            assert counts == [gateway.published - 1, 1]
            assert told == []
        bodies = [(await next_in(partition)).body for _ in range(gateway.published - 1)]
        assert bodies == list(map(pack, map(said, range(len(bodies)))))
        assert gateway.lost > 0


async def test_a_connection_that_ends_half_way_repeats_only_what_was_not_confirmed(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, confirmed = Desk(), list[Any]()
    publish = outflow.Outflow._publish

    async def cut_off(flow: outflow.Outflow, *one: Any) -> bool:
        if one[2] == said(3) and len(confirmed) < 5:
            await until(lambda: len(confirmed) == 5, seconds=PATIENCE)
            raise link.Lost("a test")
        is_taken = await publish(flow, *one)
        confirmed.append(one[2])
        return is_taken

    monkeypatch.setattr(outflow.Outflow, "_publish", cut_off)
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk):
        for number in range(6):
            await gateway.handle(said(number))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        await until(lambda: len(desk.numbers) == 6, seconds=PATIENCE)
        assert confirmed == [said(number) for number in (0, 1, 2, 4, 5, 3)]
        assert (desk.numbers, gateway.lost, gateway.published) == ([0, 1, 2, 4, 5, 3], 0, 6)
