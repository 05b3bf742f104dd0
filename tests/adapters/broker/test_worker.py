"""A worker hears which gateway has which account, and takes the events of its partition alone."""

from __future__ import annotations

import asyncio

from bot.domain.events import AccountChanged
from bot.domain.notes import Share, partition_of
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import ACCOUNT, PATIENCE, Desk, Sockets, gateway_of, said, worker_of
from tests.fakes import until


async def test_accounts_come_anew_when_the_broker_is_back(broker: str) -> None:
    desk = Desk()
    async with gateway_of(broker, Sockets()), worker_of(broker, desk) as worker:
        await until(lambda: desk.came == [ACCOUNT], seconds=PATIENCE)
        channel = worker.calls._channel
        assert channel is not None
        await channel.close()
        await until(lambda: desk.came == [ACCOUNT, ACCOUNT], seconds=PATIENCE)
        assert (await worker.call(ACCOUNT, "send_msg", {})).ok


async def test_the_events_of_other_partitions_are_left_to_whoever_has_them(broker: str) -> None:
    desk, other = Desk(), 10002
    async with gateway_of(broker, Sockets()) as gateway:
        await gateway.handle(AccountChanged(self_id=other, time=1.0, online=False))
        await gateway.handle(said(1))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
    async with worker_of(broker, desk):
        await until(lambda: desk.numbers == [1], seconds=PATIENCE)
        assert [event.self_id for event in desk.events] == [ACCOUNT]
    async with worker_of(broker, desk, share=Share(partition_of(other, PARTITIONS), PARTITIONS)):
        await until(lambda: len(desk.events) == 2, seconds=PATIENCE)
        assert desk.events[1].self_id == other
