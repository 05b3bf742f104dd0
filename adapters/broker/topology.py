"""The exchanges and queues there are, and which partition an event belongs to.

An order that matters is one within a conversation, and what an account is told in one may be the
answer to what it said in another: all of an account is in one partition, a queue with one active
consumer. Their number is fixed for a broker's life, else an account would be in two.
"""

from __future__ import annotations

import logging
from typing import Final

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange, AbstractQueue
from aio_pika.exceptions import ChannelPreconditionFailed
from msgspec import Struct
from pamqp.common import FieldValue

from bot.domain.errors import ConfigError, Problem

EVENTS: Final = "frost.events"
PRESENCE: Final = "frost.presence"
NOTES: Final = "frost.notes"
QUESTIONS: Final = "frost.questions"
DEAD: Final = "frost.dead"
NUMBER: Final = "frost.partitions"
VARIABLE: Final = "BROKER_PARTITIONS"

MOST: Final = 100_000
"""Events that wait in a partition, beyond which none is taken: as many as come in two minutes at
the most that a worker handles. Who asks later than that is answered no more, see MessageWaited.
"""

logger = logging.getLogger(__name__)


class Topology(Struct, frozen=True):
    """The exchange of the gateways' accounts, that of what workers tell each other, and the queues
    of all partitions; events go to that of EVENTS.
    """

    presence: AbstractExchange
    notes: AbstractExchange
    partitions: tuple[AbstractQueue, ...]


def queue_of(partition: int) -> str:
    """The name of a partition's queue, which is its routing key as well."""
    return f"{EVENTS}.{partition}"


async def declare(
    connection: AbstractConnection, channel: AbstractChannel, partitions: int
) -> Topology:
    """Make what is not there yet, for use over this channel of the connection. Raises ConfigError
    where the broker has another number of partitions, and aio-pika's errors.
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
    """One that another version has made stays as it is: it holds events."""
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
        except ChannelPreconditionFailed:  # the broker has closed it
            logger.info("%s keeps the limits with which it was made", queue_of(number))
            channel = await connection.channel()
    await channel.close()


def _endless_returns(connection: AbstractConnection) -> dict[str, FieldValue]:
    """RabbitMQ 4 drops what came back to a queue twenty times, as by workers that end, where it
    is not told otherwise; an older one would take -1 for no return at all.
    """
    below = connection.transport
    version = str(below.connection.server_properties.get("version")) if below else ""
    major = version.partition(".")[0]
    return {"x-delivery-limit": -1} if major.isdecimal() and int(major) >= 4 else {}


async def agree(channel: AbstractChannel, partitions: int) -> None:
    """A queue that never holds anything has the number as its length: a broker declares no queue
    anew with another one.
    """
    try:
        await channel.declare_queue(NUMBER, durable=True, arguments={"x-max-length": partitions})
    except ChannelPreconditionFailed:
        what = f"is {partitions}, but the broker's events are in another number of partitions"
        mend = (
            "Set what it was; to change it, stop every gateway, let the workers empty the queues,"
            f" stop them, and delete all queues named frost.* ({NUMBER} too)"
        )
        raise ConfigError(Problem(VARIABLE, what, mend)) from None
