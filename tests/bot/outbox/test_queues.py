from __future__ import annotations

import asyncio

from bot.core.actions import JobWords, SendMessage, send_name_of_jobs, send_prefix_of_person
from bot.core.erasure import SubjectErased
from bot.core.errors import NotConnected
from bot.outbox.pacing import APART
from bot.outbox.sender import MAX_WAITING
from frostagent.types.speech import Queued, Refused
from tests.bot.outbox.post import Slow, hello, office
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingTransport, until


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


async def test_a_conversation_takes_a_bounded_number_of_sends() -> None:
    transport = Slow()
    async with office(transport) as post:
        for number in range(MAX_WAITING):
            post.outbox.post(hello(str(number)))
        assert isinstance(await post.outbox.send(hello("too much")), Refused)
        transport.gate.set()


async def test_what_repeats_what_was_just_said_lets_others_pass() -> None:
    """Many are owed the same polite line after a restart: nobody waits for all of those first."""
    transport = Slow()
    async with office(transport, rate=1.0) as post:
        post.outbox.post(hello("sorry"), turn_id="a")
        await transport.entered.wait()
        post.outbox.post(hello("sorry"), turn_id="b")
        post.outbox.post(hello("later in b"), turn_id="b")
        async with asyncio.TaskGroup() as group:
            group.create_task(post.outbox.send_all([hello("one"), hello("two")], turn_id="c"))
            await until(lambda: "two" in post.rows)
            group.create_task(post.outbox.send_all([hello("sorry"), hello("and why")]))
            await until(lambda: "and why" in post.rows)
            post.outbox.post(hello("of nobody's turn"))
            transport.gate.set()
        await post.outbox.wait_idle()
    assert transport.texts == ["sorry", "one", "two", "of nobody's turn", "sorry", "later in b", "sorry", "and why"]


async def test_answers_go_before_any_number_of_reminders_and_have_room_beside_them() -> None:
    transport = Slow()
    async with office(transport) as post:
        for number in range(MAX_WAITING + 2):
            name = send_name_of_jobs(777, JobWords.FIRED, [number])
            post.outbox.claim(hello(f"reminder {number}"), lambda _: (), name=name)
        await transport.entered.wait()
        assert post.outbox.lines(GROUP) == 0
        assert post.outbox.post(hello("answer"), turn_id="a")
        assert post.outbox.post(hello("line"))
        assert post.outbox.lines(GROUP) == 1
        transport.gate.set()
        await post.outbox.wait_idle()
    assert transport.texts[:4] == ["reminder 0", "answer", "line", "reminder 1"]
    assert len(transport.texts) == MAX_WAITING + 4


async def test_nothing_goes_between_the_pieces_of_one_answer() -> None:
    clock = ManualClock()

    class Tedious(Slow):
        async def send(self, action: SendMessage) -> str:
            message_id = await super().send(action)
            clock.time += APART * (action == hello("one"))  # the same may be said again by then
            return message_id

    transport = Tedious()
    async with office(transport, rate=1.0, clock=clock) as post, asyncio.TaskGroup() as group:
        post.outbox.post(hello("sorry"))
        await transport.entered.wait()
        post.outbox.post(hello("sorry"))
        group.create_task(post.outbox.send_all([hello("one"), hello("two")]))
        await until(lambda: "two" in post.rows)
        transport.gate.set()
        await post.outbox.wait_idle()
    assert transport.texts == ["sorry", "one", "two", "sorry"]


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
            assert isinstance(await post.outbox.send(hello(text), final=True, patience=0), Queued)
        await until(lambda: post.rows["one"] == "queued")
        assert post.rows == {"one": "queued", "two": "queued", "three": "queued"}


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
        assert post.outbox.post(hello("late")) is None
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
        post.outbox.connected()
        for _ in range(10):
            await asyncio.sleep(0)
        assert sorted(post.states) == ["queued", "sending", "sending"]


async def test_lines_that_wait_about_who_is_forgotten_are_not_said() -> None:
    transport = Slow()
    async with office(transport) as post:
        post.outbox.post(hello("first", PRIVATE))
        await transport.entered.wait()
        lines = {
            "friend request of 345": "",
            "request of 3456": "",
            "group 345 says hello": "t1",
            "· likes tea": send_prefix_of_person(345),
            "· likes milk": send_prefix_of_person(3456),
        }
        for text, of in lines.items():
            is_turn = of.startswith("t")
            post.outbox.post(hello(text, PRIVATE), turn_id=of if is_turn else "", name="" if is_turn else of)
        post.sender.forget(SubjectErased(user=345))
        transport.gate.set()
        await post.outbox.wait_idle()
    assert transport.texts == ["first", "request of 3456", "group 345 says hello", "· likes milk"]
