"""The exchanges and queues of a cluster.

Order matters within a conversation, and a message in one conversation may answer another one of the
same account. So an account belongs to one partition, a queue with a single active consumer. The
number of partitions is fixed for a broker's life; otherwise an account could be in two.
"""

from __future__ import annotations

import logging
from typing import Final

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange, AbstractQueue
from aio_pika.exceptions import ChannelPreconditionFailed
from msgspec import Struct
from pamqp.common import FieldValue

from bot.core.language import CATALOGUE, Phrase
from frostagent.types.errors import ConfigError, Problem

EVENTS: Final = "frost.events"
PRESENCE: Final = "frost.presence"
NOTES: Final = "frost.notes"
QUESTIONS: Final = "frost.questions"
DEAD: Final = "frost.dead"
NUMBER: Final = "frost.partitions"
VARIABLE: Final = "BROKER_PARTITIONS"

MOST: Final = 100_000
"""The length limit of a partition: two minutes of events at the highest rate a worker handles.
Questions that waited longer are not answered (MessageWaited).
"""

logger = logging.getLogger(__name__)


OTHER_NUMBER: Final = Phrase(
    "是 {count}，但消息队列里的事件分成了另一个数目的分区",
    "is {count}, but the broker's events are in another number of partitions",
)
SET_AS_BEFORE: Final = Phrase(
    "改回原来的数；要换的话，先停下所有 gateway，等 worker 处理完队列，再停下 worker，"
    "然后删掉所有 frost.* 队列（{queue} 也要删）",
    "Set the previous number; to change it, stop every gateway, let the workers empty the queues,"
    " stop them, and delete all queues named frost.* ({queue} too)",
)
CATALOGUE.register(__name__, globals())


class Topology(Struct, frozen=True):
    """The exchanges for gateways' announcements and workers' announcements, and the queues of all
    partitions; the exchange for events is EVENTS.
    """

    presence: AbstractExchange
    notes: AbstractExchange
    partitions: tuple[AbstractQueue, ...]


def queue_of(partition: int) -> str:
    """The name of a partition's queue, which is also its routing key."""
    return f"{EVENTS}.{partition}"


async def declare(
    connection: AbstractConnection, channel: AbstractChannel, partitions: int
) -> Topology:
    """Declare everything that does not exist yet. Raises ConfigError if the broker has another
    number of partitions, and aio-pika's errors.
    """
    await agree(channel, partitions)
    events = await channel.declare_exchange(EVENTS, ExchangeType.DIRECT, durable=True)
    presence = await channel.declare_exchange(PRESENCE, ExchangeType.FANOUT, durable=True)
    notes = await channel.declare_exchange(NOTES, ExchangeType.FANOUT, durable=True)
    await channel.declare_exchange(QUESTIONS, ExchangeType.DIRECT, durable=True)
    await channel.declare_queue(DEAD, durable=True, arguments={"x-queue-type": "quorum"})
    await _declare_partitions(connection, partitions)
    queues = []
    for number in range(partitions):
        queue = await channel.get_queue(queue_of(number), ensure=False)
        await queue.bind(events, queue.name)
        queues.append(queue)
    return Topology(presence, notes, tuple(queues))


async def _declare_partitions(connection: AbstractConnection, partitions: int) -> None:
    """A partition declared by another version keeps its arguments, because it holds events."""
    arguments: dict[str, FieldValue] = {
        "x-queue-type": "quorum",
        "x-single-active-consumer": True,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": DEAD,
        "x-max-length": MOST,
        "x-overflow": "reject-publish",
        **_endless_returns(connection),
    }
    channel = await connection.channel()
    for number in range(partitions):
        try:
            await channel.declare_queue(queue_of(number), durable=True, arguments=arguments)
        except ChannelPreconditionFailed:  # the broker has closed the channel
            logger.info("%s keeps the limits with which it was made", queue_of(number))
            channel = await connection.channel()
    await channel.close()


def _endless_returns(connection: AbstractConnection) -> dict[str, FieldValue]:
    """By default, RabbitMQ 4 drops a message after 20 redeliveries, as crashing workers cause;
    older versions take -1 for no redelivery at all.
    """
    below = connection.transport
    version = str(below.connection.server_properties.get("version")) if below else ""
    major = version.partition(".")[0]
    return {"x-delivery-limit": -1} if major.isdecimal() and int(major) >= 4 else {}


async def agree(channel: AbstractChannel, partitions: int) -> None:
    """Check the number of partitions against the length limit of an always empty queue, since a
    broker refuses to declare a queue again with another limit. Raises ConfigError.
    """
    try:
        await channel.declare_queue(NUMBER, durable=True, arguments={"x-max-length": partitions})
    except ChannelPreconditionFailed:
        what, fix = OTHER_NUMBER.fill(count=partitions), SET_AS_BEFORE.fill(queue=NUMBER)
        raise ConfigError(Problem(VARIABLE, what, fix)) from None
