"""A connection is made again whenever it is lost, and the operator hears of it once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue

from adapters.broker import account_locations
from adapters.broker import link as link_module
from adapters.broker.link import BrokerLink, ConnectionLost, in_tasks, watch
from bot.core.errors import NotConnected
from frostagent.clock import SystemClock
from frostagent.types.errors import ConfigError, Problem
from tests.adapters.broker.street import (
    ACCOUNT,
    PATIENCE,
    Desk,
    Sockets,
    Stepped,
    blocked,
    gateway_of,
    said,
    worker_of,
)
from tests.fakes import until
from tests.owners import read
from tests.ports import free_ports
from tests.rabbit import Rabbit


async def test_a_session_that_lost_its_connection_is_followed_by_another(broker: str) -> None:
    told: list[str] = []
    connections: list[AbstractConnection] = []

    async def session(connection: AbstractConnection) -> None:
        connections.append(connection)
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(BrokerLink(broker, clock=SystemClock(), trouble=read(told)).keep(session))
        for _ in range(2):
            await until(lambda: connections, seconds=PATIENCE)
            await connections.pop().close()
        await until(lambda: connections, seconds=PATIENCE)
        keeping.cancel()
    assert told == 2 * [
        "The broker cannot be reached (the connection was closed). What is to be sent over it waits.",
        "The broker can be reached again.",
    ]


async def cancelled() -> None:
    raise asyncio.CancelledError


async def of_a_group() -> None:
    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
    await failing()


async def failing() -> NoReturn:
    await asyncio.sleep(0)
    raise ConnectionLost("a test")


@pytest.mark.parametrize("end", [cancelled, of_a_group])
async def test_a_session_that_ends_as_if_it_were_cancelled_is_followed_by_another(
    broker: str, end: Callable[[], Awaitable[None]]
) -> None:
    """The library ends so what waits for something that it closes, and Python before 3.13 counts it for a group whose
    task has failed."""
    sessions = list[AbstractConnection]()

    async def session(connection: AbstractConnection) -> None:
        sessions.append(connection)
        await end()

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(BrokerLink(broker, clock=SystemClock(), trouble=lambda _: None).keep(session))
        await until(lambda: len(sessions) == 2 or keeping.done(), seconds=PATIENCE)
        assert not keeping.done()
        keeping.cancel()
    assert all(connection.is_closed for connection in sessions)


async def test_who_is_cancelled_while_it_connects_ends_though_the_library_tells_that_it_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries, told = list[str](), list[str]()

    async def connect(url: str, **_: object) -> NoReturn:
        tries.append(url)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("connecting was given up") from None
        raise AssertionError

    monkeypatch.setattr(aio_pika, "connect", connect)

    async def session(_: AbstractConnection) -> None:
        raise AssertionError("nobody is there")

    async with asyncio.TaskGroup() as group:
        link = BrokerLink("amqp://127.0.0.1:1/", clock=SystemClock(), trouble=read(told))
        keeping = group.create_task(link.keep(session))
        await until(lambda: tries)
        keeping.cancel()
    assert keeping.cancelled()
    assert (tries, told) == (["amqp://127.0.0.1:1/"], [])


async def test_what_is_done_on_a_channel_that_is_closed_already_ends_no_process(broker: str) -> None:
    closed: list[AbstractConnection] = []

    async def session(connection: AbstractConnection) -> None:
        channel = await connection.channel()
        await channel.close()
        closed.append(connection)
        await channel.default_exchange.publish(Message(b"too late"), "nobody")

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(BrokerLink(broker, clock=SystemClock(), trouble=lambda _: None).keep(session))
        await until(lambda: len(closed) == 2)
        keeping.cancel()


async def test_a_broker_that_is_not_there_is_told_once() -> None:
    told: list[str] = []
    tries: list[float] = []

    class Clock(SystemClock):
        async def sleep(self, seconds: float) -> None:
            tries.append(seconds)
            await super().sleep(0)

    async def session(_: AbstractConnection) -> None:
        raise AssertionError("nobody is there")

    link = BrokerLink(f"amqp://127.0.0.1:{free_ports(1)[0]}/", clock=Clock(), trouble=read(told))
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(link.keep(session))
        await until(lambda: len(tries) >= 7)
        keeping.cancel()
    (line,) = told
    assert re.fullmatch(r"The broker cannot be reached \(.+\)\. What is to be sent over it waits\.", line)
    assert tries[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert not link.is_up


@pytest.mark.parametrize("beside", [(), (Exception(),), (ConnectionLost("a test"),)])
@pytest.mark.parametrize("end", [ConfigError(Problem("BROKER_PARTITIONS", "is wrong", "Mend it")), ValueError("a bug")])
async def test_a_problem_of_the_configuration_and_a_bug_end_it_whatever_the_library_says_beside(
    broker: str, end: Exception, beside: tuple[Exception, ...]
) -> None:
    async def session(_: AbstractConnection) -> None:
        raise ExceptionGroup("a session's", [*beside, end])

    with pytest.raises((ConfigError, ExceptionGroup)) as raised:
        await BrokerLink(broker, clock=SystemClock(), trouble=lambda _: None).keep(session)
    assert raised.value is end or raised.group_contains(type(end), match=str(end))


async def test_a_connection_may_be_had_only_to_know_whether_there_can_be_one(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Patient(SystemClock):
        def __init__(self) -> None:
            self.again = asyncio.Event()

        async def sleep(self, seconds: float) -> None:
            await self.again.wait()
            await super().sleep(0.01)

    channels: list[AbstractChannel] = []

    async def noted(channel: AbstractChannel) -> NoReturn:
        channels.append(channel)
        await watch(channel)

    monkeypatch.setattr(link_module, "watch", noted)
    clock = Patient()
    link = BrokerLink(broker, clock=clock, trouble=lambda _: None)
    async with asyncio.TaskGroup() as group:
        holding = group.create_task(link.hold())
        await until(lambda: link.is_up)
        await channels[0].close()
        await until(lambda: not link.is_up)
        clock.again.set()
        await until(lambda: link.is_up)
        holding.cancel()
    assert len(channels) == 2


async def test_messages_are_worked_on_side_by_side_and_not_begun_any_more_once_that_ends(broker: str) -> None:
    begun, held = list[bytes](), asyncio.Event()

    async def work(message: AbstractIncomingMessage) -> None:
        begun.append(message.body)
        await held.wait()

    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        for body in (b"1", b"2", b"3"):
            await channel.default_exchange.publish(Message(body), queue.name)
        taken = [message async for message in first_of(queue, 3)]
        async with asyncio.TaskGroup() as group:
            take = in_tasks(group, work)
            await take(taken[0])
            await take(taken[1])
            await until(lambda: begun == [b"1", b"2"])
            held.set()
        await take(taken[2])
    assert begun == [b"1", b"2"]


async def first_of(queue: AbstractQueue, number: int) -> AsyncIterator[AbstractIncomingMessage]:
    for _ in range(number):
        message = await queue.get(timeout=20)
        assert message is not None
        await message.ack()
        yield message


async def test_while_the_broker_has_an_alarm_all_waits_and_is_told_and_then_goes_on(
    broker: str, own_node: Rabbit
) -> None:
    desk, at_gateway, at_worker = Desk(), list[str](), list[str]()
    async with (
        gateway_of(broker, Sockets(), told=at_gateway) as gateway,
        worker_of(broker, desk, line=at_worker) as worker,
    ):
        await gateway.handle(said(1))
        await until(lambda: desk.numbers == [1] and worker.knows(ACCOUNT), seconds=PATIENCE)
        await asyncio.to_thread(own_node.alarm, on=True)
        try:
            await blocked(worker, at_worker)
            await until(lambda: at_gateway, seconds=PATIENCE)
            for number in range(2, 5):
                await gateway.handle(said(number))
            with pytest.raises(NotConnected):
                await worker.call(ACCOUNT, "send_msg", {})
            await asyncio.sleep(0)
            assert (gateway.waiting, gateway.published, gateway.is_up) == (3, 1, True)
        finally:
            await asyncio.to_thread(own_node.alarm, on=False)
        await until(lambda: desk.numbers == [1, 2, 3, 4], seconds=PATIENCE)
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        assert (await worker.call(ACCOUNT, "send_msg", {})).ok
        assert gateway.lost == 0
    takes_nothing, takes_again = link_module.BLOCKED.en, link_module.UNBLOCKED.en
    assert (at_gateway, at_worker) == ([takes_nothing, takes_again], [takes_nothing, takes_again])


async def test_what_waits_longest_for_its_confirmation_is_late_first_and_what_was_confirmed_never(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "LOOK", 0.1)
    clock, told, sessions, kept = Stepped(), list[str](), list[AbstractConnection](), list[int]()

    async def session(connection: AbstractConnection) -> None:
        sessions.append(connection)
        with link.in_time():
            pass
        clock.ahead += 60.0
        await clock.looked()
        kept.append(len(sessions))
        with link.in_time():
            clock.ahead += 8.0
            with link.in_time():
                clock.ahead += 8.0
                await asyncio.Event().wait()

    link = BrokerLink(broker, clock=clock, trouble=read(told))
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(link.keep(session))
        await until(lambda: len(sessions) == 2, seconds=PATIENCE)
        keeping.cancel()
    assert kept == [1]
    assert told[0].startswith("The broker cannot be reached (no confirmation within 10 s)")


async def test_what_waits_for_its_confirmation_during_an_alarm_has_all_its_time_after_it(
    broker: str, own_node: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "LOOK", 0.1)

    clock, told, sessions = Stepped(), list[str](), list[AbstractConnection]()

    async def session(connection: AbstractConnection) -> None:
        sessions.append(connection)
        channel = await connection.channel()
        with link.in_time():
            await channel.default_exchange.publish(Message(b"1"), "nobody", mandatory=False)
            await asyncio.Event().wait()

    link = BrokerLink(broker, clock=clock, trouble=read(told))
    await asyncio.to_thread(own_node.alarm, on=True)
    try:
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(link.keep(session))
            await until(lambda: told == [link_module.BLOCKED.en], seconds=PATIENCE)
            clock.ahead = 60.0
            await asyncio.to_thread(own_node.alarm, on=False)
            await until(lambda: told[1:] == [link_module.UNBLOCKED.en], seconds=PATIENCE)
            await clock.looked()
            assert (len(sessions), told[2:]) == (1, [])
            clock.ahead = 120.0
            await until(lambda: len(sessions) == 2, seconds=PATIENCE)
            keeping.cancel()
    finally:
        await asyncio.to_thread(own_node.alarm, on=False)
    assert told[2].startswith("The broker cannot be reached (no confirmation within 10 s)")


async def test_after_an_alarm_too_short_to_miss_anybody_the_accounts_come_again(
    broker: str, own_node: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_locations, "GONE_AFTER", 3600.0)  # however long this one takes
    desk, at_worker = Desk(), list[str]()
    async with gateway_of(broker, Sockets()), worker_of(broker, desk, line=at_worker) as worker:
        await until(lambda: desk.came == [ACCOUNT], seconds=PATIENCE)
        await asyncio.to_thread(own_node.alarm, on=True)
        try:
            await blocked(worker, at_worker)
            with pytest.raises(NotConnected, match="the broker takes nothing just now"):
                await worker.call(ACCOUNT, "send_msg", {})
            assert desk.came == [ACCOUNT]
        finally:
            await asyncio.to_thread(own_node.alarm, on=False)
        await until(lambda: desk.came == [ACCOUNT, ACCOUNT], seconds=PATIENCE)
        assert (await worker.call(ACCOUNT, "send_msg", {})).ok


async def test_who_takes_over_during_an_alarm_is_not_refused_for_what_a_gateway_said_at_its_beginning(
    broker: str, own_node: Rabbit
) -> None:
    class Later(SystemClock):
        """Of a gateway; a test lets it run ahead."""

        ahead = 0.0

        def monotonic(self) -> float:
            return super().monotonic() + self.ahead

    desk, told, clock = Desk(), list[str](), Later()
    async with gateway_of(broker, Sockets(), clock=clock, told=told):
        async with worker_of(broker, Desk()) as before:
            await until(lambda: before.knows(ACCOUNT), seconds=PATIENCE)
        await asyncio.to_thread(own_node.alarm, on=True)
        try:
            await until(lambda: told, seconds=PATIENCE)  # its word lies in its socket
            async with worker_of(broker, desk) as worker:
                clock.ahead = 60.0
                await asyncio.to_thread(own_node.alarm, on=False)
                await until(lambda: len(desk.came) == 2, seconds=PATIENCE)
                assert (await worker.call(ACCOUNT, "send_msg", {})).ok
        finally:
            await asyncio.to_thread(own_node.alarm, on=False)
    assert desk.came == [ACCOUNT, ACCOUNT]


async def test_connections_that_come_to_nothing_are_made_ever_more_seldom(broker: str) -> None:
    tries = list[float]()

    class Clock(SystemClock):
        async def sleep(self, seconds: float) -> None:
            if seconds != link_module.LOOK:
                tries.append(seconds)
            await super().sleep(0 if seconds != link_module.LOOK else seconds)

    async def session(_: AbstractConnection) -> None:
        link.is_up = len(tries) == 4
        raise ConnectionLost("what it needs is not there")

    link = BrokerLink(broker, clock=Clock(), trouble=lambda _: None)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(link.keep(session))
        await until(lambda: len(tries) >= 6)
        keeping.cancel()
    assert tries[:6] == [0.2, 0.4, 0.8, 1.6, 0.2, 0.4]
