"""A worker hears which gateway has which account, and takes the events of its partition alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from adapters.broker.account_locations import AccountLocations
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import HEADER_GATEWAY, Presence
from adapters.broker.worker import INTRODUCED_WITHIN, Inbox
from bot.core.events import AccountChanged, Connected
from bot.core.other_bots import AlarmRaised, RowChanged
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.street import ACCOUNT, PATIENCE, Desk, Sockets, gateway_of, said, worker_of
from tests.fakes import ManualClock, until


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
    async with worker_of(broker, desk, share=ClusterPartition(partition_of(other, PARTITIONS), PARTITIONS)):
        await until(lambda: len(desk.events) == 2, seconds=PATIENCE)
        assert desk.events[1].self_id == other


CAME = Connected(self_id=10001, time=1.0)


@dataclass
class Entrance:
    """A inbox whose clock stands still until it is let go."""

    clock: ManualClock = field(default_factory=ManualClock)
    come: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.where = AccountLocations(share=ClusterPartition(), clock=self.clock)
        self.inbox = Inbox(self.where, self.clock)

    async def event(self, number: int, gateway: str | None) -> None:
        given = Basic.Properties(headers=None if gateway is None else {HEADER_GATEWAY: gateway})
        header, nowhere = ContentHeader(properties=given), cast("AbstractChannel", None)
        await self.inbox.add_event(DeliveredMessage(Basic.Deliver(), header, str(number).encode(), nowhere))

    def introduce(self, gateway: str) -> None:
        self.where.update(Presence(gateway))
        self.inbox.put(CAME)
        self.inbox.release_known()

    async def has_come(self) -> list[object]:
        """All that has come by now."""
        self.inbox.put(None)
        while (one := await self.inbox.next()) is not None:
            self.come.append(int(one.body) if isinstance(one, DeliveredMessage) else one)
        return self.come


async def test_an_account_comes_before_what_it_said() -> None:
    entrance = Entrance()
    await entrance.event(1, "a")
    await entrance.event(2, "a")
    assert await entrance.has_come() == []
    entrance.introduce("a")
    assert await entrance.has_come() == [CAME, 1, 2]
    await entrance.event(3, "a")
    assert await entrance.has_come() == [CAME, 1, 2, 3]


async def test_no_event_overtakes_one_of_a_gateway_that_is_not_known_yet() -> None:
    entrance = Entrance()
    entrance.introduce("a")
    for number, gateway in enumerate(("a", "b", "a")):
        await entrance.event(number, gateway)
    assert await entrance.has_come() == [CAME, 0]
    entrance.introduce("b")
    assert await entrance.has_come() == [CAME, 0, CAME, 1, 2]


async def test_a_gateway_that_is_gone_is_not_waited_for_for_ever() -> None:
    entrance = Entrance()
    await entrance.event(1, "gone")
    await entrance.event(2, None)
    begun = entrance.clock.time
    async with asyncio.timeout(20):
        await entrance.inbox.open()
    assert entrance.clock.time - begun == INTRODUCED_WITHIN
    assert await entrance.has_come() == [1, 2]
    await entrance.event(3, "gone")
    assert await entrance.has_come() == [1, 2, 3]


async def test_an_alarm_waits_until_every_gateway_has_said_who_is_there() -> None:
    entrance, full, row = Entrance(), AlarmRaised("disk", "it is full"), RowChanged("limits", "1")
    entrance.inbox.put(full)
    entrance.inbox.put(row)
    assert await entrance.has_come() == [row]
    await entrance.inbox.open()
    assert await entrance.has_come() == [row, full]
    entrance.inbox.put(full, row)
    assert await entrance.has_come() == [row, full, full, row]
