"""An event is acknowledged once the journal has it, given back where it never will be, and set aside at last, as one
that ends its worker is: who dies gives back all that it had.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import aio_pika
import pytest
from aio_pika import Message
from msgspec.structs import astuple, replace

from adapters.broker import partition_consumer as module
from adapters.broker.partition_consumer import DEADLY, DOUBTED, PartitionConsumer
from adapters.broker.payloads import VERSION, pack
from adapters.broker.queries import ClusterHandlers
from adapters.broker.topology import DEAD, EVENTS
from adapters.broker.wire import Delivered, consume
from bot.core.conversation import Conversation
from bot.core.events import AccountChanged, Event, MessageReceived, MessageWaited
from frostagent.clock import SystemClock
from tests.adapters.broker.street import (
    ACCOUNT,
    OURS,
    PATIENCE,
    Book,
    Desk,
    Sockets,
    gateway_of,
    next_in,
    said,
    worker_of,
)
from tests.fakes import until


async def test_events_that_no_journal_has_come_again_to_the_next_worker(broker: str) -> None:
    forgetful, careful = Desk(is_durable=False), Desk()
    async with gateway_of(broker, Sockets()) as gateway:
        async with worker_of(broker, forgetful):
            for number in range(20):
                await gateway.handle(said(number))
            await until(lambda: len(forgetful.numbers) == 20 and forgetful.promises, seconds=PATIENCE)
        async with worker_of(broker, careful):
            await until(lambda: len(careful.numbers) == 20 and careful.promises, seconds=PATIENCE)
            await gateway.handle(said(20))
            await until(lambda: careful.numbers[-1] == 20, seconds=PATIENCE)
    assert careful.numbers == [*range(20), 20]


async def test_the_place_of_what_comes_is_the_same_object_each_time(broker: str) -> None:
    desk = Desk()
    by_the_group = replace(said(4), conversation=Conversation(ACCOUNT, "private", 20001, 4242))
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk):
        for event in (said(1), said(2), said(3, group=4343), by_the_group):
            await gateway.handle(event)
        await until(lambda: desk.numbers == [1, 2, 3, 4], seconds=PATIENCE)
    first, second, elsewhere, private = (
        event.conversation for event in desk.events if isinstance(event, MessageReceived)
    )
    assert first is second == Conversation(ACCOUNT, "group", 4242)
    assert elsewhere == Conversation(ACCOUNT, "group", 4343)
    assert astuple(private) == (ACCOUNT, "private", 20001, 4242)


async def test_events_that_a_journal_has_do_not_come_again(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Desk(is_durable=False), Desk()
    monkeypatch.setattr(module, "AGAIN", 0.0)
    async with gateway_of(broker, Sockets()) as gateway:
        async with worker_of(broker, first) as worker:
            await gateway.handle(said(1))
            await until(lambda: first.numbers == [1], seconds=PATIENCE)
            first.is_durable = True
            await gateway.handle(said(2))
            await until(lambda: first.numbers == [1, 2], seconds=PATIENCE)
            await until(lambda: worker.consumer.acknowledged == 2, seconds=PATIENCE)
        async with worker_of(broker, second):
            await gateway.handle(said(3))
            await until(lambda: 3 in second.numbers, seconds=PATIENCE)
    assert second.numbers == [3]


async def test_events_that_come_together_are_acknowledged_together_by_one_promise_of_the_journal(
    broker: str,
) -> None:
    gathered, come = list[float](), asyncio.Event()

    class Patient(SystemClock):
        async def sleep(self, seconds: float) -> None:
            if seconds == module.GATHERED:
                gathered.append(seconds)
                await come.wait()
            else:
                await super().sleep(seconds)

    desk = Desk()
    async with worker_of(broker, desk, clock=Patient()) as worker, await aio_pika.connect(broker) as connection:
        events = await (await connection.channel()).get_exchange(EVENTS)
        for number in range(20):
            await events.publish(Message(pack(said(number)), headers={"version": VERSION}), OURS)
        await until(lambda: len(desk.numbers) == 20 and gathered, seconds=PATIENCE)
        assert (desk.promises, worker.consumer.acknowledged, gathered) == (0, 0, [module.GATHERED])
        come.set()
        await until(lambda: worker.consumer.acknowledged == 20, seconds=PATIENCE)
        assert desk.promises == 1
    next_one = Desk()
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, next_one):
        await gateway.handle(said(20))
        await until(lambda: 20 in next_one.numbers, seconds=PATIENCE)
    assert next_one.numbers == [20]


async def test_what_cannot_be_read_is_set_aside_and_told_and_holds_nobody_up(broker: str) -> None:
    desk, told, aside = Desk(), list[str](), list[int]()
    async with (
        gateway_of(broker, Sockets()) as gateway,
        worker_of(broker, desk, told=told, aside=aside),
        await aio_pika.connect(broker) as connection,
    ):
        channel = await connection.channel()
        events = await channel.get_exchange(EVENTS)
        for headers in ({"version": 1}, {"version": 99}):
            await events.publish(Message(b'{"type": "colour"}', headers={**headers}), OURS)
        await gateway.handle(said(1))
        await until(lambda: desk.numbers == [1] and len(told) == 2, seconds=PATIENCE)
        dead = await channel.declare_queue(DEAD, passive=True)
        kept = [await next_in(dead) for _ in range(2)]
        assert {message.body for message in kept} == {b'{"type": "colour"}'}
    assert all("frost.dead" in line for line in told)
    assert len(aside) == 2


async def test_what_breaks_its_handling_is_tried_thrice_then_set_aside_and_told(broker: str) -> None:
    desk, told, aside = Desk(breaks_at="2"), list[str](), list[int]()
    async with (
        gateway_of(broker, Sockets()) as gateway,
        worker_of(broker, desk, told=told, aside=aside) as worker,
        await aio_pika.connect(broker) as connection,
    ):
        for number in (1, 2, 3):
            await gateway.handle(said(number))
        await until(lambda: told and worker.consumer.acknowledged == 2, seconds=PATIENCE)
        dead = await (await connection.channel()).declare_queue(DEAD, passive=True)
        assert b'"message_id":"2"' in (await next_in(dead)).body
    assert sorted(desk.numbers) == [1, 2, 2, 2, 3]
    assert len(aside) == 1
    assert told == ["An event could not be handled (3 times). It is kept in the queue frost.dead; the log says more."]


async def test_a_return_by_a_worker_that_ended_is_no_try_of_the_next_one(broker: str) -> None:
    desk, forgetful, told = Desk(breaks_at="1"), Desk(is_durable=False), list[str]()
    async with gateway_of(broker, Sockets()) as gateway:
        await gateway.handle(said(1))
        async with worker_of(broker, forgetful):
            await until(lambda: forgetful.numbers == [1], seconds=PATIENCE)
        async with worker_of(broker, forgetful):
            await until(lambda: forgetful.numbers == [1, 1], seconds=PATIENCE)
        async with worker_of(broker, desk, told=told):
            await until(lambda: bool(told), seconds=PATIENCE)
    assert desk.numbers == [1, 1, 1]
    assert "(3 times)" in told[0]


async def test_how_often_an_event_failed_is_kept_of_the_latest_only(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clumsy(Desk):
        async def handle(self, event: Event) -> None:
            is_first = event not in self.events
            self.events.append(event)
            if is_first and isinstance(event, MessageReceived):
                raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(module, "MOST_FAILING", 2)
    desk, told = Clumsy(), list[str]()
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk, told=told) as worker:
        for number in range(4):
            await gateway.handle(said(number))
        await until(lambda: worker.consumer.acknowledged == 4, seconds=PATIENCE)
        assert list(worker.consumer._failures.values()) == [1, 1]
    assert (sorted(desk.numbers), told) == ([0, 0, 1, 1, 2, 2, 3, 3], [])


class Behind(SystemClock):
    """A clock that is an hour behind the worker's."""

    by = 3600.0

    def now(self) -> float:
        return super().now() - self.by


async def test_a_message_that_waited_says_how_long_by_the_clock_of_its_gateway(broker: str) -> None:
    desk, clock = Desk(), Behind()
    async with gateway_of(broker, Sockets(), clock=clock) as gateway, worker_of(broker, desk) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        await gateway.handle(said(1))
        clock.by += 1000
        await gateway.handle(said(2))
        clock.by -= 1000
        await gateway.handle(AccountChanged(self_id=ACCOUNT, time=1.0, online=True))
        await until(lambda: len(desk.events) == 4, seconds=PATIENCE)
    new, waited = [event for event in desk.events if isinstance(event, MessageReceived | MessageWaited)]
    assert new == said(1)
    assert isinstance(waited, MessageWaited)
    assert waited.message == said(2)
    assert 1000 - PATIENCE < waited.seconds < 1000 + 2 * PATIENCE


async def test_while_the_journal_is_away_for_long_events_are_left_to_whoever_can_reach_it(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.01)
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    cut_off, reaching = Desk(is_durable=False), Desk()
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, cut_off) as first:
        await gateway.handle(said(1))
        await until(lambda: cut_off.numbers == [1], seconds=PATIENCE)
        async with worker_of(broker, reaching) as second:
            await gateway.handle(said(2))
            await until(lambda: reaching.numbers == [1, 2], seconds=PATIENCE)
            await until(lambda: second.consumer.acknowledged == 2, seconds=PATIENCE)
            assert (await first.call(ACCOUNT, "send_msg", {})).ok  # all else goes on
            cut_off.is_durable = True
        await gateway.handle(said(3))
        await until(lambda: 3 in cut_off.numbers, seconds=PATIENCE)
        await until(lambda: first.consumer.acknowledged == 1, seconds=PATIENCE)
    assert reaching.numbers == [1, 2]
    assert cut_off.numbers in ([1, 3], [1, 2, 3])  # the second may have come before it gave up


async def test_a_journal_that_is_away_for_a_moment_keeps_its_events(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.01)
    desk, waiting = Desk(is_durable=False), Desk()
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk) as first:
        await gateway.handle(said(1))
        async with worker_of(broker, waiting):
            await until(lambda: desk.promises > 3, seconds=PATIENCE)
            desk.is_durable = True
            await until(lambda: first.consumer.acknowledged == 1, seconds=PATIENCE)
            await gateway.handle(said(2))
            await until(lambda: first.consumer.acknowledged == 2, seconds=PATIENCE)
    assert (desk.numbers, waiting.numbers) == ([1, 2], [])


async def test_what_came_over_a_channel_that_is_closed_by_now_is_left_alone_for_it_comes_again(broker: str) -> None:
    desk, late = Desk(), Desk()
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk) as worker:
        await gateway.handle(said(1))
        await until(lambda: worker.consumer.acknowledged == 1, seconds=PATIENCE)
        async with await aio_pika.connect(broker) as connection:
            channel = await connection.channel()
            own = await channel.declare_queue(exclusive=True)
            await channel.default_exchange.publish(Message(pack(said(2)), headers={"version": VERSION}), own.name)
            came: asyncio.Queue[Delivered] = asyncio.Queue()
            await consume(channel, own.name, came.put)
            message = await came.get()
            await channel.close()
            book = Book()
            ears = ClusterHandlers(late.hear, late.answer, late.at_work, book.begin, book.end)
            await worker.consumer.process(message, late, ears)
    assert (desk.numbers, late.numbers) == ([1], [])


@dataclass
class Mortal(Desk):
    """A worker that gets no further than this event: the test ends it there."""

    dies_at: int = -1
    is_dead: bool = False

    async def handle(self, event: Event) -> None:
        await super().handle(event)
        if self.numbers[-1:] == [self.dies_at]:
            self.is_dead = True
            await asyncio.Event().wait()


async def filled_by(url: str, number: int) -> None:
    """So many events wait."""
    async with gateway_of(url, Sockets()) as gateway:
        for one in range(number):
            await gateway.handle(said(one))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()


def is_over(desk: Mortal, number: int) -> bool:
    return desk.is_dead or desk.numbers[-1:] == [number]


async def test_an_event_that_ends_each_worker_is_set_aside_and_told_and_its_neighbours_are_handled(broker: str) -> None:
    book, told, aside, lives = Book(), list[str](), list[int](), list[Mortal]()
    await filled_by(broker, 6)
    while not told and len(lives) <= DOUBTED + DEADLY:
        lives.append(desk := Mortal(dies_at=2))
        book.is_shut = False
        async with worker_of(broker, desk, book=book, told=told, aside=aside) as worker:
            await until(partial(is_over, desk, 5), seconds=PATIENCE)
            book.is_shut = desk.is_dead
            if told:
                await until(partial(is_done, worker.consumer, desk), seconds=PATIENCE)
    assert [desk.is_dead for desk in lives] == [True] * (DOUBTED + DEADLY) + [False]
    assert [number for desk in lives for number in desk.numbers if number > 2] == [3, 4, 5]
    assert {*lives[0].numbers} == {0, 1, 2}
    assert (len(told), len(aside), book.begun) == (1, 1, {})
    assert told[0].startswith("Workers ended while they handled an event (3 times). It is kept in the queue frost.dead")
    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        dead = await channel.declare_queue(DEAD, passive=True)
        assert b'"message_id":"2"' in (await next_in(dead)).body
        left = [(await channel.declare_queue(name, passive=True)).declaration_result for name in (DEAD, OURS)]
        assert [one.message_count for one in left] == [0, 0]


def is_done(consumer: PartitionConsumer, desk: Desk) -> bool:
    return consumer.acknowledged == len(desk.numbers)


@pytest.mark.parametrize("dies_at", [-1, 1])
async def test_what_comes_back_however_often_from_workers_that_go_on_is_handled_in_order(
    broker: str, dies_at: int
) -> None:
    """Whoever has no journal gives back what is handled, who stops what is not."""
    book, told, ends = Book(), list[str](), list[int]()
    await filled_by(broker, 3)
    for _ in range(DOUBTED + DEADLY + 2):
        desk = Mortal(dies_at=dies_at, is_durable=False)
        ends.append(len(book.ended))
        async with worker_of(broker, desk, book=book, told=told):
            await until(partial(is_over, desk, 2), seconds=PATIENCE)
        assert desk.numbers == [0, 1, 2][: dies_at + 1 or 3]
    careful = Mortal()
    async with worker_of(broker, careful, book=book, told=told) as worker:
        await until(lambda: worker.consumer.acknowledged == 3, seconds=PATIENCE)
    assert (careful.numbers, told, book.begun) == ([0, 1, 2], [], {})
    assert ends[: DOUBTED + 1] == [0] * (DOUBTED + 1)  # nothing is written down of what nobody suspects
    assert ends[DOUBTED + 1] > 0


async def test_a_worker_that_ends_before_it_is_at_work_has_had_no_event(broker: str) -> None:
    desk = Desk(recovers=True)
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk):
        await gateway.handle(said(1))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        await until(lambda: desk.came, seconds=PATIENCE)
    async with await aio_pika.connect(broker) as connection:
        came = asyncio.Queue[Delivered]()
        await consume(await connection.channel(), OURS, came.put)
        assert ((await came.get()).redelivered, desk.numbers) == (False, [])
