"""Several messages that are one thing said, and who hears of those that got lost: the outbox between fakes."""

from __future__ import annotations

import asyncio

import pytest

from bot.core.actions import SendMessage
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.journal import SendState
from bot.outbox.outbox import FULL
from bot.outbox.sender import MAX_AGE, MAX_WAITING
from frostagent.types.errors import BotError
from frostagent.types.speech import Confirmed, Queued, Refused, Unknown
from tests.bot.outbox.post import Slow, hello, office, stored
from tests.cases import each_case
from tests.fakes import RecordingTransport


async def test_several_are_rows_at_once_and_said_in_order_with_nothing_in_between() -> None:
    transport = Slow()
    async with office(transport) as post:
        async with asyncio.TaskGroup() as group:
            saying = group.create_task(post.outbox.send_all([hello("a1"), hello("a2"), hello("a3")]))
            await transport.entered.wait()
            assert post.rows == {"a1": "sending", "a2": "queued", "a3": "queued"}
            post.outbox.post(hello("b"))
            transport.gate.set()
        assert await saying == (Confirmed("9001"), Confirmed("9002"), Confirmed("9003"))
        await post.outbox.wait_idle()
    assert transport.texts == ["a1", "a2", "a3", "b"]


@each_case("failure", [ActionRefused("send", retcode=1, wording="no"), ActionUnanswered("?")])
async def test_after_one_of_several_that_was_not_delivered_the_rest_is_not_sent(failure: BotError) -> None:
    class Failing(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            if action == hello("a2"):
                raise failure
            return await super().send(action)

    async with office(Failing()) as post:
        first, second = await post.outbox.send_all([hello(f"a{number}") for number in range(1, 5)])
        assert (first, type(second)) == (Confirmed("9001"), Refused if isinstance(failure, ActionRefused) else Unknown)
        await post.outbox.send(hello("b"))
        assert post.transport.texts == ["a1", "b"]
        assert (post.rows["a3"], post.rows["a4"]) == ("withdrawn", "withdrawn")


async def test_several_of_which_the_first_waits_all_wait_and_go_out_on_the_connection() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away")]
        receipts = await post.outbox.send_all([hello("a1"), hello("a2")], patience=0)
        assert [type(receipt) for receipt in receipts] == [Queued, Queued]
        post.outbox.connected()
        await post.outbox.wait_idle()
        assert post.transport.texts == ["a1", "a2"]


async def test_several_are_withdrawn_together_when_nobody_waits_for_them_any_more() -> None:
    transport = Slow()
    async with office(transport) as post:
        async with asyncio.TaskGroup() as group:
            saying = group.create_task(post.outbox.send_all([hello("a1"), hello("a2"), hello("a3")]))
            await transport.entered.wait()
            saying.cancel()
            await asyncio.wait({saying})
            transport.gate.set()
        await post.outbox.wait_idle()
        assert post.rows == {"a1": "confirmed", "a2": "withdrawn", "a3": "withdrawn"}


async def test_several_are_taken_whole_or_not_at_all() -> None:
    transport = Slow()
    async with office(transport) as post:
        for number in range(MAX_WAITING - 1):
            post.outbox.post(hello(str(number)))
        post.outbox.post(hello("the last that is taken"))
        assert await post.outbox.send_all([hello("too"), hello("much")]) == (Refused(FULL),)
        assert not {"too", "much"} & set(post.rows)
        transport.gate.set()


async def test_what_waits_for_its_turn_behind_a_film_is_not_too_old() -> None:
    class Film(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            post.clock.time += MAX_AGE + 1
            return await super().send(action)

    async with office(Film()) as post:
        assert await post.outbox.send_all([hello("film"), hello("and a word")]) == (
            Confirmed("9001"),
            Confirmed("9002"),
        )


async def test_a_message_of_a_turn_that_may_be_lost_is_reported_whoever_waits() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?"), ActionUnanswered("?")]
        await post.outbox.send(hello("one"), turn_id="t1")
        await post.outbox.send(hello("nobody's"))
        assert post.told == [("one", "unknown")]


@pytest.mark.parametrize(
    ("failure", "state"),
    [(ActionRefused("send", retcode=1, wording="no"), "refused"), (ActionUnanswered("?"), "unknown")],
)
async def test_what_becomes_of_a_send_after_its_caller_left_is_reported(failure: BotError, state: str) -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away"), failure]
        assert isinstance(await post.outbox.send(hello(), turn_id="t1", patience=0), Queued)
        assert post.told == []
        post.outbox.connected()
        await post.outbox.wait_idle()
        assert post.told == [("hello", state)]


async def test_a_message_that_waited_too_long_is_reported_and_one_whose_caller_hears_of_it_is_not() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away"), ActionRefused("send", retcode=1, wording="no")]
        assert isinstance(await post.outbox.send(hello("late"), turn_id="t1", patience=0), Queued)
        post.clock.time += MAX_AGE + 1
        post.outbox.connected()
        await post.outbox.wait_idle()
        assert isinstance(await post.outbox.send(hello("refused"), turn_id="t1"), Refused)
        assert post.told == [("late", "dropped")]


async def test_what_a_restart_made_doubtful_is_reported_once() -> None:
    async with office() as post:
        post.outbox.remember_unknown(stored(SendState.SENDING))
        post.outbox.remember_unknown(stored(SendState.UNKNOWN))
        assert post.told == [("hello", "unknown")]
