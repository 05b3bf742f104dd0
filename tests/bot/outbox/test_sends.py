from __future__ import annotations

import asyncio
import math
from collections import defaultdict

import pytest

from bot.core.actions import SendMessage
from bot.core.journal import MessageErased, SendChanged, SendQueued, SendState, StoredSend
from bot.outbox.pacing import BURST
from bot.outbox.sends import MAX_REASON, Send, SendJournal
from frostagent.types.speech import Confirmed, Queued, Text
from tests.bot.outbox.post import Slow, hello, office
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE, CountingIds, ManualClock, RecordingStore, RecordingTransport, until

ACTION = SendMessage(GROUP, (Text("hello"),))
NOW = ManualClock().now()


@pytest.fixture
def store() -> RecordingStore:
    return RecordingStore()


@pytest.fixture
def journal(store: RecordingStore) -> SendJournal:
    return SendJournal(store=store, clock=ManualClock(), ids=CountingIds())


async def test_a_send_that_leaves_at_once_is_one_durable_row_that_says_sending(
    journal: SendJournal, store: RecordingStore
) -> None:
    await journal.mark_sending(Send("s1", "t1", ACTION, True, NOW))
    row = SendQueued(send_id="s1", turn_id="t1", action=ACTION, final=True, at=NOW, state=SendState.SENDING)
    assert store.entries == [row]
    assert store.durable == 1


async def test_a_send_that_waited_is_one_row_and_its_changes(journal: SendJournal, store: RecordingStore) -> None:
    send = Send("s1", "t1", ACTION, True, NOW)
    journal.record(send)
    journal.record(send)
    await journal.mark_sending(send)
    journal.change(send, SendState.CONFIRMED, message_id="5")
    assert store.entries == [
        SendQueued(send_id="s1", turn_id="t1", action=ACTION, final=True, at=NOW),
        SendChanged(send_id="s1", state=SendState.SENDING, at=NOW),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW, message_id="5"),
    ]
    assert (send.state, store.durable) == (SendState.CONFIRMED, 2)


async def test_we_spoke_when_a_send_left_and_when_it_arrived_and_not_when_it_was_lost() -> None:
    clock = ManualClock()
    journal = SendJournal(store=RecordingStore(), clock=clock, ids=CountingIds())
    send = Send("s1", "t1", ACTION, True, NOW)
    assert journal.last_sent(GROUP) == -math.inf
    await journal.mark_sending(send)
    assert (journal.last_sent(GROUP), journal.last_sent(PRIVATE)) == (NOW, -math.inf)
    clock.time += 5
    journal.change(send, SendState.CONFIRMED, message_id="5")
    clock.time += 5
    journal.change(Send("s2", "t1", ACTION, True, NOW), SendState.DROPPED)
    assert journal.last_sent(GROUP) == NOW + 5


async def test_a_change_makes_the_row_it_needs_and_keeps_its_reason_short(
    journal: SendJournal, store: RecordingStore
) -> None:
    journal.change(Send("s1", "", ACTION, False, NOW), SendState.DROPPED, reason="x" * 9999)
    assert [entry.type for entry in store.entries] == ["send_queued", "send_changed"]
    assert store.entries[1] == SendChanged(send_id="s1", state=SendState.DROPPED, at=NOW, reason="x" * MAX_REASON)


async def test_what_an_earlier_process_wrote_down_is_not_written_down_again(
    journal: SendJournal, store: RecordingStore
) -> None:
    stored = StoredSend(send_id="s0", turn_id="t0", action=ACTION, final=True, at=NOW, state=SendState.QUEUED)
    send = Send.of(stored, SendState.QUEUED)
    journal.record(send)
    assert store.entries == []
    assert (send.send_id, send.turn_id, send.action, send.final, send.at) == ("s0", "t0", ACTION, True, NOW)


# --- what a caller hears -------------------------------------------------------------------------------


async def test_an_impatient_caller_hears_the_end_of_a_send_that_is_on_the_wire() -> None:
    transport = Slow()
    async with office(transport) as post, asyncio.TaskGroup() as group:
        sending = group.create_task(post.outbox.send(hello(), patience=0))
        await transport.entered.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not sending.done()
        transport.gate.set()
        assert await sending == Confirmed("9001")


async def test_a_caller_hears_that_it_waits_where_it_came_back_from_the_wire_after_its_patience() -> None:
    send = Send("s1", "t1", ACTION, True, NOW, SendState.SENDING)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        hearing = group.create_task(send.hear(0))
        await passing(0)
        assert not hearing.done()
        send.state = SendState.QUEUED
        assert isinstance(await hearing, Queued)


async def test_a_caller_hears_the_end_also_where_its_patience_had_ended_on_the_wire() -> None:
    send = Send("s1", "t1", ACTION, True, NOW, SendState.SENDING)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        hearing = group.create_task(send.hear(0))
        await passing(0)
        send.settle(Confirmed("7"))
        assert await hearing == Confirmed("7")


async def test_what_has_ended_is_heard_at_once() -> None:
    send = Send("s1", "t1", ACTION, True, NOW)
    send.settle(Confirmed("7"))
    assert await send.hear(0) == Confirmed("7")


async def test_a_caller_hears_that_it_waits_behind_another_send() -> None:
    transport = Slow()
    async with office(transport) as post:
        post.outbox.post(hello("one"))
        assert isinstance(await post.outbox.send(hello("two"), patience=0), Queued)
        transport.gate.set()
        await until(lambda: transport.texts == ["one", "two"])


async def test_who_waits_when_the_outbox_finishes_hears_that_it_waits() -> None:
    transport = Slow()
    async with office(transport) as post, asyncio.TaskGroup() as group:
        post.outbox.post(hello("one"))
        await transport.entered.wait()
        waiting = group.create_task(post.outbox.send_all([hello("two"), hello("three")], patience=0.001))
        await asyncio.sleep(0)
        finishing = group.create_task(post.outbox.finish(within=5))
        await asyncio.sleep(0)
        transport.gate.set()
        assert all(isinstance(receipt, Queued) for receipt in await waiting)
        await finishing
    assert transport.texts == ["one"]


def words_of(action: SendMessage) -> str:
    return "".join(segment.text for segment in action.segments if isinstance(segment, Text))


class Gated(RecordingTransport):
    """Holds each message on the wire until its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.on_wire: list[str] = []

    async def send(self, action: SendMessage) -> str:
        text = words_of(action)
        self.on_wire.append(text)
        await self.gates[text].wait()
        return await super().send(action)


async def passing(seconds: float) -> None:
    """Return once the loop's timers of so many seconds have rung."""
    rung = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, rung.set)
    await rung.wait()


async def test_a_piece_waits_for_those_before_it_without_losing_patience() -> None:
    transport = Gated()
    async with asyncio.timeout(30), office(transport) as post, asyncio.TaskGroup() as group:
        sending = group.create_task(post.outbox.send_all([hello("film"), hello("words")], patience=0.001))
        await until(lambda: transport.on_wire == ["film"])
        await passing(0.02)
        transport.gates["film"].set()
        transport.gates["words"].set()
        assert [type(receipt) for receipt in await sending] == [Confirmed, Confirmed]


async def test_who_waits_for_the_pace_hears_that_it_waits() -> None:
    class Frozen(ManualClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    async with asyncio.timeout(30), office(rate=0.001, clock=Frozen()) as post:
        for number in range(BURST):
            assert isinstance(await post.outbox.send(hello(str(number))), Confirmed)
        assert isinstance(await post.outbox.send(hello("too fast"), patience=0), Queued)


@each_case("ends", ["finish", "close"])
async def test_nobody_waits_for_an_outbox_that_ends_before_it_has_begun(ends: str) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        async with office() as post:
            sending = group.create_task(post.outbox.send(hello(), patience=0))
            await asyncio.sleep(0)
            if ends == "finish":
                await post.outbox.finish(within=0)
                await post.outbox.wait_idle()
        assert isinstance(await sending, Queued)


async def test_a_send_whose_caller_is_gone_ends_without_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    transport = Gated()
    async with asyncio.timeout(30), office(transport) as post:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(post.outbox.send(hello()))
            await until(lambda: transport.on_wire)
            sending.cancel()
        transport.gates["hello"].set()
        await until(lambda: "confirmed" in post.states)
        await post.outbox.wait_idle()
    assert "failure" not in caplog.text


async def test_what_is_posted_with_entries_is_written_down_with_them_before_it_leaves() -> None:
    class Watching(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            assert post.store.durable == len(post.store.entries) >= 3
            return await super().send(action)

    forgotten = MessageErased(GROUP, "1")
    async with office(Watching()) as post:
        post.outbox.post_with(forgotten, action=hello(), turn_id="t1")
        first, queued = post.store.entries
        assert first == forgotten
        assert isinstance(queued, SendQueued)
        assert (queued.turn_id, queued.final, queued.state) == ("t1", True, SendState.QUEUED)
        await post.outbox.wait_idle()
        assert post.states == ["queued", "sending", "confirmed"]
        assert post.transport.texts == ["hello"]


async def test_what_is_posted_with_entries_is_left_to_the_next_start_where_nothing_is_sent_any_more() -> None:
    async with office() as post:
        await post.outbox.finish(within=1)
        post.outbox.post_with(action=hello())
        assert post.states == ["queued"]
    assert post.transport.sent == []
