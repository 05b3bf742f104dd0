"""A gateway publishes what it hears, in order, keeps it while the broker is away, and obeys one worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import DeliveryError
from msgspec.structs import replace
from pamqp.commands import Basic
from pamqp.common import FieldValue

from adapters.broker import gateway as module
from adapters.broker import gateway as outflow
from adapters.broker import link, topology, wire
from adapters.broker.link import BrokerLink
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import (
    HEADER_VERSION,
    VERSION,
    AccountPresence,
    CallEnd,
    GatewayCall,
    Presence,
    pack,
    unpack,
)
from adapters.broker.topology import EVENTS, Topology, queue_of
from bot.core.conversation import Conversation
from bot.core.errors import NotConnected
from bot.core.events import AccountChanged, Connected, Event, Heartbeat, MessageLost, MessageRecalled, MessageReceived
from bot.core.segments import Mention
from frostagent.clock import SystemClock
from frostagent.types.speech import Text
from tests.adapters.broker.conftest import PARTITIONS
from tests.adapters.broker.line import line_to
from tests.adapters.broker.street import (
    ACCOUNT,
    OURS,
    PATIENCE,
    SHARE,
    Desk,
    Sockets,
    gateway_of,
    next_in,
    said,
    worker_of,
)
from tests.cases import each_case
from tests.fakes import ManualClock, until


async def waiting_in(url: str) -> int:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queues = [await channel.declare_queue(queue_of(number), passive=True) for number in range(PARTITIONS)]
        return sum(queue.declaration_result.message_count or 0 for queue in queues)


async def test_events_wait_in_the_broker_until_a_worker_comes_and_then_come_in_order(broker: str) -> None:
    desk = Desk()
    async with gateway_of(broker, Sockets()) as gateway:
        for number in range(300):
            await gateway.handle(said(number, group=number % 3))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        assert (gateway.waiting, gateway.published, gateway.lost) == (0, 300, 0)
    async with worker_of(broker, desk):
        await until(lambda: len(desk.numbers) == 300, seconds=PATIENCE)
    for group in range(3):
        assert [number for number in desk.numbers if number % 3 == group] == list(range(group, 300, 3))


class Stopped(SystemClock):
    """A clock that stands still at a moment that 32 bits cannot hold."""

    def now(self) -> float:
        return 1_795_610_636.531


async def test_when_an_event_was_taken_reaches_the_broker_to_the_millisecond(broker: str) -> None:
    async with (
        gateway_of(broker, Sockets(), clock=Stopped()) as gateway,
        await aio_pika.connect(broker) as connection,
    ):
        await gateway.handle(said(1))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        queue = await (await connection.channel()).declare_queue(OURS, passive=True)
        taken = list[object]()

        async def take(message: AbstractIncomingMessage) -> None:
            taken.append((message.headers["gateway"], message.headers["taken"]))

        await queue.consume(take, no_ack=True)
        await until(lambda: taken, seconds=PATIENCE)
    assert taken == [("frost.gateway.a", 1_795_610_636_531)]


async def test_what_an_account_does_is_told_of_it_and_no_event(broker: str) -> None:
    desk, sockets = Desk(), Sockets()
    async with gateway_of(broker, sockets) as gateway, worker_of(broker, desk):
        await gateway.handle(Connected(self_id=ACCOUNT, time=1.0))
        await gateway.handle(Heartbeat(self_id=ACCOUNT, time=1.0, online=True, interval=30.0))
        await gateway.handle(said(1))
        await until(lambda: desk.numbers == [1] and desk.came, seconds=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        assert gateway.published == 1
        again = len(desk.came) + 1
        await gateway.handle(Connected(self_id=ACCOUNT, time=2.0))
        await until(lambda: len(desk.came) == again, seconds=PATIENCE)


async def test_without_a_broker_events_wait_and_beyond_all_room_they_are_lost_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outflow, "BACKLOG", 5)
    async with gateway_of("amqp://127.0.0.1:1/", Sockets()) as gateway:
        for number in range(8):
            await gateway.handle(said(number))
        assert (gateway.waiting, gateway.lost, gateway.is_up) == (5, 3, False)
    assert "1 events are lost: the broker takes none" in caplog.text


async def test_a_worker_that_was_replaced_is_obeyed_no_more(broker: str) -> None:
    sockets = Sockets()
    async with (
        gateway_of(broker, sockets) as gateway,
        worker_of(broker, Desk(), epoch=1) as older,
        worker_of(broker, Desk(), epoch=2) as newer,
    ):
        await until(lambda: older.knows(ACCOUNT) and newer.knows(ACCOUNT), seconds=PATIENCE)
        assert (await older.call(ACCOUNT, "first", {})).outcome == "answered"
        assert (await newer.call(ACCOUNT, "second", {})).outcome == "answered"
        refused = await older.call(ACCOUNT, "third", {})
        assert (refused.outcome, refused.wording) == ("not_connected", "another worker has taken over")
        assert (await newer.call(ACCOUNT, "fourth", {})).ok
        assert gateway.refused == 1
    assert [call.action for call in sockets.calls] == ["first", "second", "fourth"]


async def test_a_worker_that_was_replaced_in_one_partition_is_obeyed_in_the_others(broker: str) -> None:
    other = 10002
    sockets = Sockets(Presence("", (AccountPresence(ACCOUNT), AccountPresence(other))))
    theirs = ClusterPartition(partition_of(other, PARTITIONS), PARTITIONS)
    async with (
        gateway_of(broker, sockets),
        worker_of(broker, Desk(), epoch=5) as newer,
        worker_of(broker, Desk(), epoch=2, share=theirs) as older,
    ):
        await until(lambda: newer.knows(ACCOUNT) and older.knows(other), seconds=PATIENCE)
        assert not older.knows(ACCOUNT)
        assert (await newer.call(ACCOUNT, "first", {})).ok
        assert (await older.call(other, "second", {})).ok
        with pytest.raises(NotConnected):
            await older.call(ACCOUNT, "third", {})
    assert [(call.account, call.action) for call in sockets.calls] == [(ACCOUNT, "first"), (other, "second")]


async def test_an_account_that_leaves_is_called_no_more(broker: str) -> None:
    sockets = Sockets()
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        sockets.here = Presence("", (AccountPresence(10003),))
        await until(lambda: worker.knows(10003), seconds=PATIENCE)
        with pytest.raises(NotConnected):
            await worker.call(ACCOUNT, "send_msg", {})
    assert sockets.calls == []


async def test_what_finds_its_partition_full_is_lost_and_counted_and_a_worker_tells_of_it(
    broker: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topology, "MOST", 5)
    monkeypatch.setattr(outflow, "PAUSE", 0.05)
    desk, told = Desk(), list[str]()
    first = next(account for account in range(10001, 10099) if partition_of(account, PARTITIONS) == 0)
    async with gateway_of(broker, Sockets()) as gateway:
        for number in range(20):
            await gateway.handle(said(number))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
            for number in range(20, 40):
                await gateway.handle(said(number))
            await gateway.wait_published()
        assert gateway.lost >= 20
        assert (gateway.waiting, gateway.published + gateway.lost) == (0, 40)
        assert await waiting_in(broker) == gateway.published
        await gateway.handle(AccountChanged(self_id=first, time=1.0, online=True))  # another partition has room
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        assert gateway.published + gateway.lost == 41
        async with worker_of(broker, Desk(), share=ClusterPartition(0, PARTITIONS), told=told):
            await until(lambda: told, seconds=PATIENCE)
            async with worker_of(broker, desk):
                taken = gateway.published - 1
                await until(lambda: len(desk.numbers) == taken, seconds=PATIENCE)
                await gateway.handle(said(99))
                await until(lambda: 99 in desk.numbers, seconds=PATIENCE)
        assert desk.numbers == [*range(taken), 99]
    assert told == [told[0]]
    assert told[0].startswith(f"A gateway has lost events ({gateway.lost} so far)")
    assert "1 events are lost: their partition is full, as no worker takes them in time" in caplog.text


async def test_who_speaks_to_an_account_whose_partition_is_full_is_told_of_to_its_bot(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "MOST", 5)
    monkeypatch.setattr(outflow, "PAUSE", 0.05)
    ours, theirs = Desk(recovers=True), Desk(recovers=True)
    other = ClusterPartition((SHARE.partition + 1) % PARTITIONS, PARTITIONS)
    asked = replace(said(99), segments=(Mention(ACCOUNT), Text("one")))
    async with (
        gateway_of(broker, Sockets()) as gateway,
        worker_of(broker, ours),
        worker_of(broker, theirs, share=other) as elsewhere,
    ):
        await until(lambda: ours.came and elsewhere.where.is_present("frost.gateway.a"), seconds=PATIENCE)
        for number in range(40):
            await gateway.handle(said(number))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()  # a queue may take some more before it refuses
        await gateway.handle(asked)
        await until(lambda: any(isinstance(one, MessageLost) for one in ours.events), seconds=PATIENCE)
        await gateway.handle(Connected(self_id=ACCOUNT, time=1.0))
        await until(lambda: len(ours.came) > 1, seconds=PATIENCE)
        assert gateway.waiting == 0
    lost = [(one.self_id, one.message) for one in ours.events if isinstance(one, MessageLost)]
    assert (lost, theirs.events, ours.numbers) == ([(ACCOUNT, asked)], [], [])


async def test_what_is_refused_though_there_is_room_is_published_again(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a queue that has lost its leader: over the same connection."""
    desk, refusals, made = Desk(), 3, list[Topology]()

    async def refusing(*words: Any, **more: Any) -> None:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise DeliveryError(None, Basic.Nack())
        await wire.publish(*words, **more)

    async def declared(*words: Any) -> Topology:
        made.append(await topology.declare(*words))
        return made[-1]

    monkeypatch.setattr(outflow, "publish", refusing)
    monkeypatch.setattr(module, "declare", declared)
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk):
        for number in range(20):
            await gateway.handle(said(number))
        await until(lambda: set(desk.numbers) == {*range(20)}, seconds=PATIENCE)
        assert (gateway.lost, refusals, len(made)) == (0, 0, 1)


async def test_a_loss_is_told_by_one_worker_once_and_an_old_one_by_nobody(broker: str) -> None:
    first, other = list[str](), list[str]()
    clock = SystemClock()
    here = Presence("", (AccountPresence(ACCOUNT),))
    async with gateway_of(broker, Sockets(here)) as gateway:
        gateway._publisher.lost, gateway._publisher.lost_at = 7, clock.now() - 3600
        async with (
            worker_of(broker, Desk(), share=ClusterPartition(0, PARTITIONS), told=first) as teller,
            worker_of(broker, Desk(), share=ClusterPartition(1, PARTITIONS), told=other) as worker,
        ):
            both = (teller.where, worker.where)
            await until(lambda: all(one.is_present("frost.gateway.a") for one in both), seconds=PATIENCE)
            assert first == []
            gateway._publisher.count_lost("a test")
            await until(lambda: first, seconds=PATIENCE)
            gateway._publisher.count_lost("a test")
            await until(lambda: len(first) == 2, seconds=PATIENCE)
    assert [line.partition(" so far")[0] for line in first] == [
        "A gateway has lost events (8",
        "A gateway has lost events (9",
    ]
    assert other == []


async def test_a_call_under_way_ends_with_the_gateway_and_nobody_waits_for_it(broker: str) -> None:
    ended = list[str]()

    class Slow(Sockets):
        async def put(self, call: GatewayCall) -> CallEnd:
            try:
                return await super().put(call)
            except asyncio.CancelledError:
                ended.append(call.action)
                raise

    sockets = Slow(hold=asyncio.Event())
    async with worker_of(broker, Desk()) as worker, asyncio.TaskGroup() as group:
        async with gateway_of(broker, sockets):
            await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
            calling = group.create_task(worker.call(ACCOUNT, "send_msg", {}))
            await until(lambda: bool(sockets.calls), seconds=PATIENCE)
        assert ended == ["send_msg"]
        assert (await calling).outcome == "unanswered"


async def test_a_stream_that_ends_between_two_frames_ends_no_gateway_and_loses_nothing(broker: str) -> None:
    """The library knows no other word than Exception for it, where more comes with the end than it has room for."""
    told, sockets = list[str](), Sockets(hold=asyncio.Event())
    call = pack(GatewayCall(ACCOUNT, "get_msg", {}, 1))
    async with line_to(broker) as (line, url), gateway_of(url, sockets, told=told) as gateway:
        await until(lambda: gateway.is_up, seconds=PATIENCE)
        line.is_held = True
        await gateway.handle(said(1))
        async with await aio_pika.connect(broker) as connection:
            channel = await connection.channel()
            for _ in range(30):
                given = Message(call, headers={HEADER_VERSION: VERSION})
                await channel.default_exchange.publish(given, "frost.gateway.a")
        await until(lambda: line.kept.count(b"get_msg") == 30, seconds=PATIENCE)
        await line.end()
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        assert (gateway.published, gateway.lost) == (1, 0)
    assert told == [
        "The broker cannot be reached (it has closed the connection). What is to be sent over it waits.",
        "The broker can be reached again.",
    ]


async def test_an_answer_that_cannot_be_written_ends_nobody_elses_calls(broker: str) -> None:
    sockets = Sockets()
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    sockets.answer = CallEnd("answered", True, 0, deep)
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        told = await worker.call(ACCOUNT, "get_msg", {})
        assert (told.outcome, told.wording) == ("unanswered", "RecursionError")
        sockets.answer = CallEnd("answered", True, 0, {"message_id": 7})
        assert (await worker.call(ACCOUNT, "send_msg", {})).ok


async def test_an_answer_that_is_too_large_for_a_broker_is_told_as_none(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST", 2_000_000)
    sockets = Sockets(answer=CallEnd("answered", True, 0, {"file": "x" * 3_000_000}))
    async with gateway_of(broker, sockets), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        answer = await worker.call(ACCOUNT, "get_file", {})
        assert (answer.outcome, answer.wording) == (
            "unanswered",
            "its answer has 2.9 MB, over 8: too large for a cluster",
        )
        sockets.answer = CallEnd("answered", True, 0, {"file": "x" * 1_000_000})
        assert (await worker.call(ACCOUNT, "get_file", {})).ok


async def test_a_gateway_whose_word_of_its_accounts_is_never_confirmed_connects_anew(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "CONFIRMED_WITHIN", 0.5)
    monkeypatch.setattr(link, "LOOK", 0.1)
    made = list[Topology]()

    class Silent:
        async def publish(self, *_: object, **__: object) -> None:
            await asyncio.Event().wait()

    async def declared(*words: Any) -> Topology:
        made.append(await topology.declare(*words))
        return made[-1] if made[1:] else replace(made[-1], presence=cast("AbstractExchange", Silent()))

    monkeypatch.setattr(module, "declare", declared)
    async with gateway_of(broker, Sockets()), worker_of(broker, Desk()) as worker:
        await until(lambda: worker.knows(ACCOUNT), seconds=PATIENCE)
        assert len(made) > 1


async def test_a_broker_that_confirms_nothing_without_an_alarm_is_left(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "CONFIRMED_WITHIN", 0.05)
    monkeypatch.setattr(link, "LOOK", 0.05)
    told, held = list[str](), [True]
    publish = outflow.EventPublisher._publish

    async def slowly(flow: outflow.EventPublisher, *one: Any) -> bool:
        if held:
            held.pop()
            await asyncio.Event().wait()
        return await publish(flow, *one)

    monkeypatch.setattr(outflow.EventPublisher, "_publish", slowly)
    desk = Desk()
    async with gateway_of(broker, Sockets(), told=told) as gateway, worker_of(broker, desk):
        await gateway.handle(said(1))
        await until(lambda: bool(told), seconds=PATIENCE)
        monkeypatch.setattr(link, "CONFIRMED_WITHIN", PATIENCE)
        await until(lambda: desk.numbers == [1] and gateway.published == 1, seconds=PATIENCE)
        assert gateway.lost == 0
    assert told[0] == "The broker cannot be reached (no confirmation within 0.05 s). What is to be sent over it waits."


async def test_a_partition_that_takes_less_than_it_says_holds_up_no_other_and_gets_nothing_twice(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outflow, "PAUSE", 0.05)
    other, told = Conversation(10002, "group", 4242), list[str]()
    async with await aio_pika.connect(broker) as connection:
        channel = await connection.channel()
        few: dict[str, FieldValue] = {"x-queue-type": "quorum", "x-max-length": 5, "x-overflow": "reject-publish"}
        partition = await channel.declare_queue(OURS, durable=True, arguments=few)
        theirs = queue_of(partition_of(other.platform_id, PARTITIONS))
        async with gateway_of(broker, Sockets(), told=told) as gateway:
            for number in range(300):
                await gateway.handle(said(number))
            await gateway.handle(replace(said(1), self_id=other.platform_id, conversation=other))
            async with asyncio.timeout(PATIENCE):
                await gateway.wait_published()
            assert (gateway.waiting, gateway.published + gateway.lost) == (0, 301)
            here = await channel.declare_queue(OURS, passive=True)
            there = await channel.declare_queue(theirs, passive=True)
            counts = [one.declaration_result.message_count for one in (here, there)]
            assert counts == [gateway.published - 1, 1]
            assert told == []
        bodies = [(await next_in(partition)).body for _ in range(gateway.published - 1)]
        assert bodies == list(map(pack, map(said, range(len(bodies)))))
        assert gateway.lost > 0


async def test_a_connection_that_ends_half_way_repeats_only_what_was_not_confirmed(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, confirmed = Desk(), list[Any]()
    publish = outflow.EventPublisher._publish

    async def cut_off(flow: outflow.EventPublisher, *one: Any) -> bool:
        if one[2] == said(3) and len(confirmed) < 5:
            await until(lambda: len(confirmed) == 5, seconds=PATIENCE)
            raise link.ConnectionLost("a test")
        is_taken = await publish(flow, *one)
        confirmed.append(one[2])
        return is_taken

    monkeypatch.setattr(outflow.EventPublisher, "_publish", cut_off)
    async with gateway_of(broker, Sockets()) as gateway, worker_of(broker, desk):
        for number in range(6):
            await gateway.handle(said(number))
        async with asyncio.timeout(PATIENCE):
            await gateway.wait_published()
        await until(lambda: len(desk.numbers) == 6, seconds=PATIENCE)
        # The five are on their way together, and the broker may confirm them in any order.
        assert sorted(confirmed[:5], key=lambda event: event.message_id) == [said(number) for number in (0, 1, 2, 4, 5)]
        assert confirmed[5:] == [said(3)]
        assert (desk.numbers, gateway.lost, gateway.published) == ([0, 1, 2, 4, 5, 3], 0, 6)


@dataclass
class Exchange:
    """One that takes what `takes` lets it, a moment later, and counts what is on its way there."""

    takes: Callable[[MessageReceived], bool] = lambda _: True
    silent: str = ""  # a queue of which it confirms nothing
    taken: list[MessageReceived] = field(default_factory=list)
    under_way: int = 0
    most: int = 0

    is_closed = False

    async def get_underlay_channel(self) -> Exchange:
        return self

    async def basic_publish(self, body: bytes, *, routing_key: str, exchange: str, mandatory: bool, **_: Any) -> None:
        assert (exchange, mandatory) == (EVENTS, True)
        event: MessageReceived = unpack(Event, body, VERSION)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await (asyncio.Event().wait() if routing_key == self.silent else asyncio.sleep(0))
        finally:
            self.under_way -= 1
        if not self.takes(event):
            raise DeliveryError(None, Basic.Nack())
        self.taken.append(event)


@asynccontextmanager
async def running(
    exchange: Exchange, *events: Event, partitions: int, clock: ManualClock | None = None
) -> AsyncIterator[outflow.EventPublisher]:
    """What a gateway does with these events, and what it is given later."""
    broker = BrokerLink("amqp://127.0.0.1:1/", clock=SystemClock(), trouble=lambda _: None)
    flow = outflow.EventPublisher("frost.gateway.a", link=broker, partitions=partitions, clock=clock or ManualClock())
    for event in events:
        flow.enqueue(event)

    async def begun() -> None:
        async with asyncio.TaskGroup() as group:
            flow.start(group, cast("AbstractChannel", exchange))

    async with asyncio.TaskGroup() as group:
        publishing = group.create_task(begun())
        async with asyncio.timeout(PATIENCE):
            yield flow
        publishing.cancel()


def said_by(account: int, number: int) -> MessageReceived:
    return replace(said(number), self_id=account, conversation=Conversation(account, "group", 4242))


async def test_what_waited_for_the_broker_does_not_go_out_all_at_once_and_each_partition_keeps_its_order() -> None:
    accounts = range(10000, 10200)
    exchange = Exchange()
    backlog = [said_by(account, number) for number in range(15) for account in accounts]
    async with running(exchange, *backlog, partitions=64) as flow:
        await flow.wait_empty()
        assert flow.published == len(backlog)
    for account in accounts:
        taken = [event for event in exchange.taken if event.self_id == account]
        assert taken == [said_by(account, number) for number in range(15)]
    assert exchange.most <= outflow.BATCH


async def test_the_room_for_what_waits_is_one_for_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outflow, "BACKLOG", 50)
    exchange, accounts = Exchange(), range(10000, 10200)
    async with running(exchange, *(said_by(account, 1) for account in accounts), partitions=64) as flow:
        assert len({partition_of(account, 64) for account in accounts[:50]}) > 30
        assert (flow.waiting, flow.lost) == (50, 150)
        await flow.wait_empty()
    assert {event.self_id for event in exchange.taken} == {*accounts[:50]}


async def test_partitions_that_come_to_what_is_under_way_already_add_one_event_each_until_there_is_room() -> None:
    exchange, partitions = Exchange(silent=OURS), 3
    others = [account for account in range(10000, 10050) if queue_of(partition_of(account, partitions)) != OURS]
    async with running(exchange, *map(said, range(500)), partitions=partitions) as flow:
        await until(lambda: exchange.under_way == outflow.BATCH, seconds=PATIENCE)
        late = [said_by(account, number) for number in range(9) for account in others]
        for event in late:
            flow.enqueue(event)
        await until(lambda: flow.waiting == 500, seconds=PATIENCE)
        assert (len(exchange.taken), exchange.under_way) == (len(late), outflow.BATCH)
    assert {event.self_id for event in exchange.taken} == {*others}
    assert exchange.most == outflow.BATCH + partitions - 1


async def test_one_partition_alone_has_all_the_room() -> None:
    exchange = Exchange()
    async with running(exchange, *map(said, range(500)), partitions=64) as flow:
        await flow.wait_empty()
    assert exchange.taken == [*map(said, range(500))]
    assert exchange.most == outflow.BATCH


@each_case("number", [1, 2, 3])
async def test_a_few_that_come_together_go_together_and_nothing_waits_for_a_pause(number: int) -> None:
    exchange, clock = Exchange(), ManualClock()
    async with running(exchange, *map(said, range(number)), partitions=64, clock=clock) as flow:
        await flow.wait_empty()
    assert exchange.taken == [*map(said, range(number))]
    assert (exchange.most, clock.slept) == (number, [])


async def test_nothing_overtakes_what_was_refused_and_then_all_goes_at_once_again() -> None:
    tries, clock = Counter[int](), ManualClock()

    def takes(event: MessageReceived) -> bool:
        number = int(event.message_id)
        tries[number] += 1
        if tries[3] == 2 and number == 3:
            assert exchange.most == outflow.BATCH
        if tries[3] > 1 and number < outflow.BATCH:
            alone.append((number, exchange.under_way))
            exchange.most = 0
        return number < 3 or tries[3] > (2 if number == 3 else 1)

    alone, exchange = list[tuple[int, int]](), Exchange(takes)
    async with running(exchange, *map(said, range(300)), partitions=64, clock=clock) as flow:
        await flow.wait_empty()
        assert (flow.published, flow.lost) == (300, 0)
    assert exchange.taken == [*map(said, range(300))]
    assert alone == [(number, 0) for number in (3, *range(3, outflow.BATCH))]
    assert exchange.most == outflow.BATCH
    assert clock.slept == [outflow.PAUSE] * 2


async def test_a_partition_that_takes_nothing_for_some_seconds_loses_what_it_refuses_from_then_on() -> None:
    open_from, clock = [400], ManualClock()
    exchange = Exchange(lambda event: int(event.message_id) < 3 or int(event.message_id) >= open_from[0])
    async with running(exchange, *map(said, range(300)), partitions=64, clock=clock) as flow:
        await flow.wait_empty()
        assert (flow.published, flow.lost) == (3, 297)
        assert clock.slept == [outflow.PAUSE] * (outflow.TRIES - 1)
        for number in range(400, 450):
            flow.enqueue(said(number))
        await flow.wait_empty()
        assert (flow.published, flow.lost) == (53, 297)
    assert exchange.taken == [*map(said, (0, 1, 2, *range(400, 450)))]


async def test_a_partition_that_takes_some_events_now_and_then_loses_none() -> None:
    tries, clock = Counter[str](), ManualClock()

    def takes(event: MessageReceived) -> bool:
        tries[event.message_id] += 1
        return tries[event.message_id] > outflow.TRIES - 1

    exchange = Exchange(takes)
    async with running(exchange, *map(said, range(20)), partitions=64, clock=clock) as flow:
        await flow.wait_empty()
        assert (flow.published, flow.lost) == (20, 0)
    assert exchange.taken == [*map(said, range(20))]


def to_us(number: int, group: int, *, whom: int = ACCOUNT, more: str = "") -> MessageReceived:
    return replace(said(number, group), segments=(Mention(whom, "a name"), Text(f"one{more}")))


async def test_of_what_a_full_partition_loses_the_first_message_to_an_account_in_each_chat_is_told_of_once() -> None:
    private = replace(said(7), conversation=Conversation(ACCOUNT, "private", 20001))
    lost: list[Event] = [
        said(1, 1),
        to_us(2, 1),
        to_us(3, 1),
        to_us(4, 2, whom=20002),
        to_us(5, 3, more="x" * outflow.LONGEST),
        to_us(6, 4),
        private,
        MessageRecalled(
            self_id=ACCOUNT, time=1.0, conversation=said(1).conversation, message_id="1", user_id=1, operator_id=1
        ),
    ]
    async with running(Exchange(lambda _: False), *lost, partitions=64) as flow:
        await flow.wait_empty()
        assert flow.lost == len(lost)
        assert flow.pop_lost_requests() == (lost[1], lost[5], private)
        assert flow.pop_lost_requests() == ()
        for number in range(2 * outflow.TOLD):
            flow.enqueue(to_us(number, number + 1))
        await flow.wait_empty()
        assert len(flow.pop_lost_requests()) == outflow.TOLD


async def test_what_finds_20_000_waiting_is_not_told_of_for_nobody_could_be_told_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outflow, "BACKLOG", 1)
    async with running(Exchange(), to_us(1, 1), to_us(2, 1), partitions=64) as flow:
        await flow.wait_empty()
        assert (flow.lost, flow.published, flow.pop_lost_requests()) == (1, 1, ())
