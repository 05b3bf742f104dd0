"""A connection to the broker that is re-established whenever it is lost."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

import aio_pika
import aiormq.abc
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import AMQPError, ChannelInvalidStateError, DeliveryError

from bot.core.language import CATALOGUE, NotifyOwners, Phrase
from frostagent.types.errors import BotError, ConfigError
from frostagent.types.ports import Clock

CONNECT_WITHIN: Final = 5.0  # seconds
HEARTBEAT: Final = 2  # seconds; a broker disconnects a client that misses two
CONFIRMED_WITHIN: Final = 10.0  # seconds until an unconfirmed publication means a lost link
LOOK: Final = 1.0  # seconds between checks for alarms and overdue confirmations, and of each check
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds

logger = logging.getLogger(__name__)

AGAIN: Final = Phrase("消息队列又连上了。", "The broker can be reached again.")
CANNOT: Final = Phrase(
    "连不上消息队列 ({why})。要经它发的都先等着。",
    "The broker cannot be reached ({why}). What is to be sent over it waits.",
)

BLOCKED: Final = Phrase(
    "RabbitMQ 眼下什么也不收 (内存或磁盘报警)。要经它发的都先等着；请给它加内存或磁盘。",
    "RabbitMQ takes nothing just now (an alarm of its memory or disk). What is to be sent over"
    " it waits; give it more of them.",
)
UNBLOCKED: Final = Phrase("RabbitMQ 又收消息了。", "RabbitMQ takes messages again.")
CATALOGUE.register(__name__, globals())

T = TypeVar("T")
Session = Callable[[AbstractConnection], Awaitable[None]]


class ConnectionLost(BotError):
    """The connection, or a channel on it, is closed."""


GONE: Final = (
    AMQPError,
    ConnectionLost,
    OSError,
    TimeoutError,
    asyncio.InvalidStateError,
    ChannelInvalidStateError,
)
"""Errors of the library if the connection ends during an operation."""


def is_gone(error: BaseException) -> bool:
    """Whether an error means that the connection is lost. If a stream ends between two frames, as
    behind a proxy that cuts it off, the library raises a bare Exception (aiormq,
    FutureStore.reject_all).
    """
    return isinstance(error, GONE) or type(error) is Exception


@contextmanager
def raise_as_lost() -> Iterator[None]:
    """Raise ConnectionLost, with the reason, if the connection ends in the block. Errors that say
    that nothing was done pass unchanged.
    """
    try:
        yield
    except (DeliveryError, ChannelInvalidStateError):
        raise
    except Exception as error:
        if not is_gone(error):
            raise
        raise ConnectionLost(_words_of(error)) from error


def _words_of(error: BaseException) -> str:
    nameless = "it has closed the connection"
    return str(error) or (nameless if type(error) is Exception else type(error).__name__)


class BrokerLink:
    """Keeps a connection to the broker and runs a session on each. `url` is never shown."""

    def __init__(self, url: str, *, clock: Clock, trouble: NotifyOwners) -> None:
        """`trouble` reports that the broker is unreachable or accepts nothing, and the end."""
        self._url = url
        self._clock = clock
        self._trouble = trouble
        self._is_told = False  # that there is no connection has been reported
        self._numbers = itertools.count()
        self._begun: dict[int, float] = {}  # by publication: when its wait began, in order
        self.is_up = False
        self.is_blocked = False  # by a resource alarm: it delivers, but accepts nothing
        self.alarm_over = asyncio.Event()  # set at the end of each alarm; its waiter clears it

    async def keep(self, session: Session) -> NoReturn:
        """Connect and run the session until the connection ends, for ever. Raises ConfigError."""
        pause = FIRST_PAUSE
        while True:
            try:
                # In its own task: when the library closes something it cancels the tasks that wait
                # for it, and it may report a cancelled connect as a failed one.
                async with asyncio.TaskGroup() as group:
                    attempt = group.create_task(self._attempt(session))
            finally:
                if self.is_up:  # it worked, so the next attempt may too
                    pause = FIRST_PAUSE
                self.is_up = self.is_blocked = False
            end = (
                ConnectionLost("something on it was closed")
                if attempt.cancelled()
                else attempt.result()
            )
            if isinstance(end, ConfigError):
                raise end
            why = _words_of(end)
            logger.debug("no connection with the broker: %s", why)
            if not self._is_told:
                self._is_told = True
                self._trouble(CANNOT.fill(why=why))
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _attempt(self, session: Session) -> BaseException:
        """Connect and run the session. Returns the expected error that ended it."""
        end: BaseException = ConnectionLost("the session has ended")
        try:
            async with await aio_pika.connect(
                self._url, timeout=CONNECT_WITHIN, heartbeat=HEARTBEAT
            ) as connection:
                logger.info("connected with the broker")
                if self._is_told:
                    self._trouble(AGAIN.fill())
                self._is_told = False
                await self._run(session, connection)
        except* ConfigError as group:
            end = _first(group)
        except* Exception as group:
            if group.split(is_gone)[1] is not None:  # a bug of ours
                raise
            if not isinstance(end, ConfigError):
                end = _first(group)
        return end

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Limit the wait for a publication's confirmation within the block, not counting resource
        alarms; after that the connection counts as lost.
        """
        one = next(self._numbers)
        self._begun[one] = self._clock.monotonic()
        try:
            yield
        finally:
            del self._begun[one]

    async def hold(self) -> NoReturn:
        """Keep a connection for ever, only to know whether the broker can be reached."""

        async def session(connection: AbstractConnection) -> None:
            channel = await connection.channel()  # closed when heartbeats stop
            self.is_up = True
            await watch(channel)

        await self.keep(session)

    async def _run(self, session: Session, connection: AbstractConnection) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_until_closed(connection, "the connection"))
            group.create_task(self._watch(connection))
            await session(connection)

    async def _watch(self, connection: AbstractConnection) -> NoReturn:
        """Watch for resource alarms (the library reports only their end) and late confirmations."""
        while (transport := connection.transport) is not None:
            await self._clock.sleep(LOOK)
            try:
                async with asyncio.timeout(LOOK):
                    await transport.connection.ready()
            except TimeoutError:
                await self._alarm(transport.connection)
            oldest = next(iter(self._begun.values()), math.inf)
            if self._clock.monotonic() - oldest > CONFIRMED_WITHIN:
                raise ConnectionLost(f"no confirmation within {CONFIRMED_WITHIN:g} s")
        raise ConnectionLost("the connection was closed")

    async def _alarm(self, connection: aiormq.abc.AbstractConnection) -> None:
        """Wait for the end of an alarm; waiting publications then get their full time again."""
        self.is_blocked = True
        self._trouble(BLOCKED.fill())
        await connection.ready()
        self._begun = dict.fromkeys(self._begun, self._clock.monotonic())
        self.is_blocked = False
        self.alarm_over.set()
        self._trouble(UNBLOCKED.fill())


async def _until_closed(what: AbstractConnection | AbstractChannel, name: str) -> NoReturn:
    await what.closed()
    raise ConnectionLost(f"{name} was closed")


async def watch(channel: AbstractChannel) -> NoReturn:
    """Raise ConnectionLost once the broker closes the channel."""
    await _until_closed(channel, "a channel")


def in_tasks(
    group: asyncio.TaskGroup, work: Callable[[T], Coroutine[Any, Any, None]]
) -> Callable[[T], Coroutine[Any, Any, None]]:
    """A queue callback that handles each message in a task of the group. Messages that arrive while
    the group ends are ignored: their channel closes next.
    """

    async def take(message: T) -> None:
        working = work(message)
        try:
            group.create_task(working)
        except RuntimeError as error:
            working.close()
            logger.debug("a message came too late: %s", error)

    return take


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
