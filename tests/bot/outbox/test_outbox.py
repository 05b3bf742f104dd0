from __future__ import annotations

import asyncio

from bot.core.actions import SendMessage
from bot.core.errors import ActionUnanswered
from bot.core.journal import SendChanged, SendState
from bot.outbox.sender import MAX_WAITING
from frostagent.types.speech import Confirmed, Unknown
from tests.bot.outbox.post import Slow, hello, office, own, stored
from tests.fakes import RecordingTransport, until


async def test_the_accounts_own_report_confirms_a_send_before_the_history_is_asked() -> None:
    class Reporting(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            post.outbox.seen(own("hello", "77"))
            raise ActionUnanswered("?")

    async with office(Reporting()) as post:
        assert await post.outbox.send(hello()) == Confirmed("77")
        assert post.transport.histories_asked == []


async def test_an_unknown_send_is_confirmed_when_it_is_seen_later() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?")]
        await post.outbox.send(hello())
        post.outbox.seen(own("hello", "78"))
        assert post.states[-1] == "confirmed"


async def test_a_send_cancelled_before_the_wire_is_withdrawn() -> None:
    transport = Slow()
    async with office(transport) as post:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(post.outbox.send(hello("first")))
            await transport.entered.wait()
            second = group.create_task(post.outbox.send(hello("second")))
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.wait({second})
            transport.gate.set()
            await first
        assert transport.texts == ["first"]
        assert "withdrawn" in post.states


async def test_a_send_cancelled_on_the_wire_is_seen_to_its_end() -> None:
    transport = Slow()
    async with office(transport) as post:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(post.outbox.send(hello()))
            await transport.entered.wait()
            task.cancel()
            await asyncio.wait({task})
        transport.gate.set()
        await until(lambda: transport.sent)
        await asyncio.sleep(0)
        assert post.states == ["sending", "confirmed"]


async def test_what_was_queued_before_a_restart_is_sent_under_its_old_row() -> None:
    async with office() as post:
        post.outbox.resume(stored(SendState.QUEUED))
        await until(lambda: "confirmed" in post.states)
        assert post.transport.texts == ["hello"]
        assert {e.send_id for e in post.store.entries if isinstance(e, SendChanged)} == {"old-1"}
        assert post.store.of("send_queued") == []


async def test_what_was_on_the_wire_before_a_restart_is_never_sent_but_confirmed_when_seen() -> None:
    async with office() as post:
        post.outbox.remember_unknown(stored(SendState.SENDING))
        assert post.states == ["unknown"]
        post.outbox.compare([own("hello", "99")])
        assert post.states == ["unknown", "confirmed"]
        assert post.transport.sent == []


async def test_what_is_seen_confirms_the_send_on_the_wire_rather_than_an_equal_one_that_was_lost() -> None:
    class Echoing(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            if self.failures:
                raise self.failures.pop()
            post.outbox.seen(own("好的", "m2"))
            return "m2"

    async with office(Echoing()) as post:
        post.transport.failures = [ActionUnanswered("?")]
        assert isinstance(await post.outbox.send(hello("好的")), Unknown)
        assert await post.outbox.send(hello("好的")) == Confirmed("m2")
        assert post.states == ["sending", "unknown", "sending", "confirmed"]


async def test_what_was_taken_before_a_restart_is_sent_however_much_it_is() -> None:
    async with office() as post:
        for number in range(MAX_WAITING + 5):
            post.outbox.resume(stored(SendState.QUEUED, str(number)))
        await post.outbox.wait_idle()
        assert post.transport.texts == [str(number) for number in range(MAX_WAITING + 5)]
