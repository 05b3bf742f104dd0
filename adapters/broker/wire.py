"""The messages that every question needs (event, call, answer), by the library below aio-pika: the
latter's own object for a message costs as much as its frames do, at both ends. Whatever is rarer
goes by aio-pika.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from aio_pika.abc import AbstractChannel
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.common import FieldValue

if TYPE_CHECKING:
    from aiormq import Channel

PERSISTENT: Final = 2
HEADER_RETURNS: Final = "x-delivery-count"  # of a quorum queue

Delivered: TypeAlias = DeliveredMessage


def properties(
    headers: dict[str, FieldValue],
    *,
    message_id: str,
    delivery_mode: int | None = None,
    correlation_id: str | None = None,
    reply_to: str | None = None,
    expiration: str | None = None,
) -> Basic.Properties:
    """What goes with a body, and no more: each of them is written and read one by one, in Python.
    `expiration` is in ms, `message_id` no other's on the channel (else the library makes up a long
    one); without a `delivery_mode` it need not last (rabbitmq-server, rabbit_basic.erl).
    """
    return Basic.Properties(
        headers=headers,
        delivery_mode=delivery_mode,
        message_id=message_id,
        correlation_id=correlation_id,
        reply_to=reply_to,
        expiration=expiration,
    )


async def publish(
    channel: AbstractChannel,
    body: bytes,
    queue: str,
    given: Basic.Properties,
    *,
    exchange: str = "",
    mandatory: bool = True,
) -> None:
    """Publish it, as aio-pika's exchanges do: until it is confirmed where the channel has
    confirmations, else until it is on its way. Raises aio-pika's errors.

    It does not wait for the socket, which a channel does with one message at a time: who publishes
    has no more than some hundred unconfirmed.
    """
    below = cast("Channel", await channel.get_underlay_channel())  # the abstract one has no `wait`
    await below.basic_publish(
        body,
        exchange=exchange,
        routing_key=queue,
        properties=given,
        mandatory=mandatory,
        wait=False,
    )


async def consume(
    channel: AbstractChannel,
    queue: str,
    take: Callable[[Delivered], Coroutine[Any, Any, None]],
    *,
    no_ack: bool = False,
) -> None:
    """Have what comes into the queue taken, in order, each in a task that begins in that order."""
    below = await channel.get_underlay_channel()
    await below.basic_consume(queue, take, no_ack=no_ack)


def headers_of(message: Delivered) -> Mapping[str, FieldValue]:
    """Its headers; none where it has none."""
    return message.header.properties.headers or {}


def returns_of(message: Delivered) -> int:
    """How often it came back to its queue, for whatever reason."""
    times = headers_of(message).get(HEADER_RETURNS) if message.redelivered else 0
    return times if isinstance(times, int) else 0


async def acknowledge(message: Delivered) -> None:
    """It, and all that came before it over its channel, is done."""
    if (tag := message.delivery_tag) is not None:
        await message.channel.basic_ack(tag, multiple=True)


async def reject(message: Delivered, *, requeue: bool = False) -> None:
    """It comes again, or is a dead letter."""
    if (tag := message.delivery_tag) is not None:
        await message.channel.basic_reject(tag, requeue=requeue)
