"""Frequent messages (event, call, result), by aiormq directly: an aio-pika message object costs as
much as the frames, at both ends. Rare messages use aio-pika.
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
    """Only the properties needed, because each costs Python time at both ends. `expiration` is in
    ms; `message_id` is unique on the channel (else the library makes a long one); without
    `delivery_mode` the message is not persistent (rabbitmq-server, rabbit_basic.erl).
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
    """Publish, and wait for the confirmation if the channel has confirmations. Raises aio-pika's
    errors.

    It does not wait for the socket to drain, which would allow one message at a time: callers keep
    at most some hundred unconfirmed messages.
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
    """Consume a queue; each message is handled in a task, and tasks start in order."""
    below = await channel.get_underlay_channel()
    await below.basic_consume(queue, take, no_ack=no_ack)


def headers_of(message: Delivered) -> Mapping[str, FieldValue]:
    return message.header.properties.headers or {}


def returns_of(message: Delivered) -> int:
    """Number of redeliveries, for whatever reason."""
    times = headers_of(message).get(HEADER_RETURNS) if message.redelivered else 0
    return times if isinstance(times, int) else 0


async def acknowledge(message: Delivered) -> None:
    """Acknowledge the message and all before it on its channel."""
    if (tag := message.delivery_tag) is not None:
        await message.channel.basic_ack(tag, multiple=True)


async def reject(message: Delivered, *, requeue: bool = False) -> None:
    """Requeue the message, or make it a dead letter."""
    if (tag := message.delivery_tag) is not None:
        await message.channel.basic_reject(tag, requeue=requeue)
