"""A message goes as aio-pika's own would, and comes as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelInvalidStateError, ChannelNotFoundEntity, DeliveryError

from adapters.broker import wire
from adapters.broker.wire import Delivered, headers_of
from tests.adapters.broker.street import PATIENCE, next_in

UNLIKE = {"delivery_tag": 0}
"""Of each message its own, whoever sends it."""


@dataclass
class Mailbox:
    """A queue of its own, and what comes into it."""

    channel: AbstractChannel
    name: str
    come: asyncio.Queue[Delivered] = field(default_factory=asyncio.Queue)

    async def send(self, *bodies: bytes) -> None:
        given = (wire.properties({}, message_id=str(number)) for number in range(len(bodies)))
        sending = (wire.publish(self.channel, body, self.name, one) for body, one in zip(bodies, given, strict=True))
        await asyncio.gather(*sending)

    async def next(self) -> Delivered:
        async with asyncio.timeout(PATIENCE):
            return await self.come.get()


@pytest.fixture
async def mailbox(broker: str) -> AsyncIterator[Mailbox]:
    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel(on_return_raises=True)
        yield Mailbox(channel, (await channel.declare_queue(exclusive=True)).name)


async def test_it_arrives_as_one_of_aio_pika_does(mailbox: Mailbox) -> None:
    channel, name = mailbox.channel, mailbox.name
    queue = await channel.get_queue(name, ensure=False)
    given = wire.properties(
        {"version": 1},
        message_id="m",
        delivery_mode=wire.PERSISTENT,
        correlation_id="n",
        reply_to="r",
        expiration="60000",
    )
    await wire.publish(channel, "你好".encode(), name, given)
    other = Message(
        "你好".encode(),
        headers={"version": 1},
        delivery_mode=wire.PERSISTENT,
        message_id="m",
        correlation_id="n",
        reply_to="r",
        expiration=60,
    )
    await channel.default_exchange.publish(other, name)
    ours, theirs = await next_in(queue), await next_in(queue)
    assert (ours.body, ours.info() | UNLIKE) == (theirs.body, theirs.info() | UNLIKE)


async def test_many_at_once_come_in_their_order_and_each_is_taken_in_it(mailbox: Mailbox) -> None:
    bodies = [str(number).encode() for number in range(300)]
    await wire.consume(mailbox.channel, mailbox.name, mailbox.come.put, no_ack=True)
    await mailbox.send(*bodies)
    assert [(await mailbox.next()).body for _ in bodies] == bodies


async def test_one_without_headers_has_none(mailbox: Mailbox) -> None:
    await wire.consume(mailbox.channel, mailbox.name, mailbox.come.put, no_ack=True)
    await mailbox.channel.default_exchange.publish(Message(b""), mailbox.name)
    assert headers_of(await mailbox.next()) == {}


async def test_one_for_nobody_and_one_over_a_closed_channel_raise(mailbox: Mailbox) -> None:
    with pytest.raises(DeliveryError):
        await wire.publish(mailbox.channel, b"", "nobody", wire.properties({}, message_id="1"))
    await mailbox.channel.close()
    with pytest.raises(ChannelInvalidStateError):
        await mailbox.send(b"")


async def test_over_a_channel_that_the_broker_has_closed_nothing_is_written(mailbox: Mailbox) -> None:
    """The broker would close the whole connection for it."""
    with pytest.raises(ChannelNotFoundEntity):
        await mailbox.channel.declare_queue("nobody", passive=True)
    with pytest.raises(ChannelInvalidStateError):
        await wire.publish(mailbox.channel, b"", mailbox.name, wire.properties({}, message_id="1"))


async def test_what_is_acknowledged_is_so_with_all_before_it_and_what_is_rejected_comes_again(mailbox: Mailbox) -> None:
    await wire.consume(mailbox.channel, mailbox.name, mailbox.come.put)
    await mailbox.send(b"1", b"2", b"3", b"4")
    _, second, third, fourth = [await mailbox.next() for _ in range(4)]
    await wire.acknowledge(second)
    await wire.reject(third, requeue=True)
    again = await mailbox.next()
    assert again.body == b"3"
    await wire.reject(again)
    await mailbox.send(b"5")
    assert (await mailbox.next()).body == b"5"
    await wire.acknowledge(fourth)
    await mailbox.channel.close()  # the fifth alone goes back
    assert await left_in(mailbox) == [b"5"]


async def left_in(mailbox: Mailbox) -> list[bytes]:
    await mailbox.channel.reopen()
    queue = await mailbox.channel.get_queue(mailbox.name, ensure=False)
    left = []
    while (message := await queue.get(fail=False)) is not None:
        left.append(message.body)
    return left
