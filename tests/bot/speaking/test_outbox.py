from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from bot.domain.actions import Attachment, Confirmed, Refused, SendMessage, Unknown, Waiting
from bot.domain.errors import ActionRefused, ActionUnanswered, BotError, NotConnected
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import SendChanged, SendQueued, SendState, StoredSend
from bot.domain.segments import Image, Quote, Text
from bot.speaking.outbox import MAX_AGE, MAX_WAITING, Outbox
from tests.fakes import BOT, GROUP, PRIVATE, CountingIds, ManualClock, RecordingStore, RecordingTransport, said, until


class Post:
    """An outbox between fakes."""

    def __init__(
        self, transport: RecordingTransport | None = None, rate: float = 0.0, clock: ManualClock | None = None
    ) -> None:
        self.transport = transport or RecordingTransport()
        self.store, self.clock = RecordingStore(), clock or ManualClock()
        self.outbox = Outbox(transport=self.transport, store=self.store, clock=self.clock, ids=CountingIds(), rate=rate)
        self.told: list[tuple[str, SendState]] = []
        self.outbox.report_to(self._report)

    def _report(self, action: SendMessage, state: SendState, reason: str) -> None:
        assert reason
        self.told.append(("".join(part.text for part in action.segments if isinstance(part, Text)), state))

    @property
    def states(self) -> list[str]:
        """The states of all sends, in the order they were written down."""
        return [str(e.state) for e in self.store.entries if isinstance(e, SendQueued | SendChanged)]

    @property
    def rows(self) -> dict[str, str]:
        """The latest state of each send, by its words."""
        ids, rows = dict[str, str](), dict[str, str]()
        for entry in self.store.entries:
            match entry:
                case SendQueued(send_id=send_id, action=SendMessage(segments=(Text(text=text),)), state=state):
                    ids[send_id], rows[text] = text, str(state)
                case SendChanged(send_id=send_id, state=state):
                    rows[ids[send_id]] = str(state)
                case _:
                    pass
        return rows


@asynccontextmanager
async def office(
    transport: RecordingTransport | None = None, rate: float = 0.0, clock: ManualClock | None = None
) -> AsyncIterator[Post]:
    post = Post(transport, rate, clock)
    async with asyncio.timeout(5), post.outbox.open():
        yield post


def hello(text: str = "hello", where: Conversation = GROUP) -> SendMessage:
    return SendMessage(where, (Text(text),))


def own(text: str, message_id: str, *, ago: float = 0.0, where: Conversation = GROUP) -> MessageReceived:
    message = said((Quote("1"), Text(text)), user=BOT, message_id=message_id, at=False, where=where)
    return structs.replace(message, time=message.time - ago)


async def test_the_row_says_sending_durably_before_the_frame_leaves() -> None:
    class Watching(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            assert post.states == ["sending"]
            assert post.store.durable == len(post.store.entries)
            return await super().send(action)

    async with office(Watching()) as post:
        assert await post.outbox.send(hello(), turn_id="t1", final=True) == Confirmed("9001")
        assert post.states == ["sending", "confirmed"]


@pytest.mark.parametrize(
    ("failure", "receipt", "last"),
    [
        (ActionRefused("send", retcode=1200, wording='"result":120'), "muted: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="不是好友"), "not a friend: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="发送频繁"), "risk control: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="消息过长"), "too long: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="识别URL失败, uri= /x"), "bad media: ", "refused"),
        (ActionRefused("send", retcode=9000, wording=""), "refused with code 9000", "refused"),
    ],
)
async def test_each_refusal_has_its_own_outcome_and_is_not_tried_again(
    failure: BotError, receipt: str, last: str
) -> None:
    async with office() as post:
        post.transport.failures = [failure]
        got = await post.outbox.send(hello())
        assert isinstance(got, Refused)
        assert got.reason.startswith(receipt)
        assert post.states[-1] == last
        assert post.transport.sent == []


async def test_an_unanswered_send_that_nobody_saw_stays_unknown_and_is_never_repeated() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?")]
        assert await post.outbox.send(hello()) == Unknown("?")
        assert post.states == ["sending", "unknown"]
        await post.outbox.send(hello("next"))
        assert post.transport.texts == ["next"]


async def test_an_unanswered_send_that_stands_in_the_history_is_confirmed() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?")]
        post.transport.histories[GROUP] = (own("hello", "41", ago=3600), own("other", "42"), own(" hello", "43"))
        assert await post.outbox.send(hello()) == Confirmed("43")
        assert post.states[-1] == "confirmed"


async def test_one_message_of_the_history_confirms_one_send_only() -> None:
    async with office() as post:
        post.transport.histories[GROUP] = (own("hello", "43"),)
        post.transport.failures = [ActionUnanswered("?"), ActionUnanswered("?")]
        assert await post.outbox.send(hello()) == Confirmed("43")
        assert await post.outbox.send(hello()) == Unknown("?")


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


async def test_media_are_compared_by_their_number() -> None:
    picture = SendMessage(GROUP, (Text("look"), Attachment("image", "base64://aa")))
    seen = said((Text("look"), Image(file="x")), user=BOT, message_id="5", at=False)
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?"), ActionUnanswered("?")]
        post.transport.histories[GROUP] = (own("look", "4"),)
        assert isinstance(await post.outbox.send(picture), Unknown)
        post.transport.histories[GROUP] = (seen,)
        assert await post.outbox.send(picture) == Confirmed("5")


class Slow(RecordingTransport):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.open: dict[Conversation, int] = {}
        self.most = 0

    async def send(self, action: SendMessage) -> str:
        where = action.conversation
        self.open[where] = self.open.get(where, 0) + 1
        self.most = max(self.most, *self.open.values())
        self.entered.set()
        await self.gate.wait()
        self.open[where] -= 1
        return await super().send(action)


async def test_a_conversation_has_one_unanswered_send_and_keeps_its_order_others_do_not_wait() -> None:
    transport = Slow()
    async with office(transport) as post, asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(post.outbox.send(hello(str(number))))
            group.create_task(post.outbox.send(hello(f"p{number}", PRIVATE)))
        await transport.entered.wait()
        await until(lambda: sum(transport.open.values()) >= 2)
        transport.gate.set()
    assert transport.most == 1
    assert [text for text in transport.texts if not text.startswith("p")] == ["0", "1", "2"]


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


async def test_while_nobody_is_connected_a_send_waits_and_goes_out_on_the_connection() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away")]
        assert isinstance(await post.outbox.send(hello(), patience=0), Waiting)
        await until(lambda: "queued" in post.states)
        post.outbox.connected()
        await until(lambda: post.transport.sent)
        assert post.transport.texts == ["hello"]


async def test_a_send_that_waited_too_long_is_dropped() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away")] * 3
        task_done = post.outbox.send(hello(), patience=0)
        assert isinstance(await task_done, Waiting)
        post.clock.time += MAX_AGE + 1
        await until(lambda: "queued" in post.states)
        post.outbox.connected()
        await until(lambda: "dropped" in post.states)
        assert post.transport.sent == []


async def test_a_conversation_takes_a_bounded_number_of_sends() -> None:
    transport = Slow()
    async with office(transport) as post:
        for number in range(MAX_WAITING):
            post.outbox.post(hello(str(number)))
        assert isinstance(await post.outbox.send(hello("too much")), Refused)
        transport.gate.set()


async def test_the_pace_is_kept_after_a_burst() -> None:
    async with office(rate=1.0) as post:
        for number in range(22):
            await post.outbox.send(hello(str(number)), patience=60)
        assert len(post.transport.sent) == 22
        assert len(post.clock.slept) == 2
        assert all(0.9 <= wait <= 3 for wait in post.clock.slept)


def stored(state: SendState, text: str = "hello", at: float = 1_700_000_000.0) -> StoredSend:
    return StoredSend(send_id="old-1", turn_id="t0", action=hello(text), final=True, at=at, state=state)


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


async def test_closing_leaves_what_is_queued_in_the_store() -> None:
    transport = Slow()
    async with office(transport) as post:
        post.outbox.post(hello("one"))
        post.outbox.post(hello("two"))
        await transport.entered.wait()
    assert transport.sent == []
    assert post.rows == {"one": "sending", "two": "queued"}


async def test_what_waits_behind_another_send_is_a_row_from_the_start() -> None:
    """However the process ends, the next one knows what was not said."""
    async with office() as post:
        post.transport.failures = [NotConnected("away")] * 9
        for text in ("one", "two", "three"):
            assert isinstance(await post.outbox.send(hello(text), final=True, patience=0), Waiting)
        await until(lambda: post.rows["one"] == "queued")
        assert post.rows == {"one": "queued", "two": "queued", "three": "queued"}


async def test_a_failure_of_ours_is_one_unknown_send_and_the_rest_goes_on() -> None:
    class Broken(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            if action == hello("bad"):
                raise ValueError("a bug in an adapter")
            return await super().send(action)

    async with office(Broken()) as post:
        assert await post.outbox.send(hello("bad")) == Unknown("bug: ValueError")
        assert await post.outbox.send(hello("good")) == Confirmed("9001")
        assert post.rows == {"bad": "unknown", "good": "confirmed"}


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


async def test_finishing_waits_for_what_is_on_the_wire_and_leaves_the_rest_in_the_store() -> None:
    on_wire, gate = asyncio.Event(), asyncio.Event()

    class Slow(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            on_wire.set()
            await gate.wait()
            return await super().send(action)

    async with office(Slow()) as post, asyncio.TaskGroup() as group:
        post.outbox.post(hello("first"))
        post.outbox.post(hello("second"))
        await on_wire.wait()
        finishing = group.create_task(post.outbox.finish(within=5))
        await asyncio.sleep(0)
        assert post.rows == {"first": "sending", "second": "queued"}
        gate.set()
        await finishing
        await post.outbox.wait_idle()
        post.outbox.post(hello("late"))
        assert post.transport.texts == ["first"]
        assert post.rows == {"first": "confirmed", "second": "queued"}


async def test_finishing_does_not_wait_for_a_connection_or_for_long() -> None:
    class Silent(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            if action.conversation == GROUP:
                raise NotConnected("away")
            await asyncio.Event().wait()
            return "never"

    async with office(Silent()) as post:
        post.outbox.post(hello())
        post.outbox.post(hello(where=PRIVATE))
        await until(lambda: sorted(post.states) == ["queued", "sending", "sending"])
        await post.outbox.finish(within=0)
        assert sorted(post.states) == ["queued", "sending", "sending"]
