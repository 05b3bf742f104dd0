from __future__ import annotations

from bot.domain.errors import ActionUnanswered, NotConnected
from bot.domain.events import (
    AccountChanged,
    Connected,
    Heartbeat,
    MessageSent,
)
from bot.domain.journal import SendChanged, SendState
from bot.domain.segments import Quote, Text
from tests.bot.hall import hall, muted
from tests.fakes import BOT, GROUP, said, until, words


async def test_a_message_sent_by_the_account_elsewhere_is_known_when_it_is_quoted() -> None:
    sent = MessageSent(self_id=BOT, time=0.0, conversation=GROUP, message_id="88", segments=(Text("from my phone"),))
    async with hall(words("yes")) as house:
        await house.take(sent, said((Quote("88"), Text("was that you?")), at=False))
        assert house.transport.texts == ["yes"]


async def test_a_mute_whose_end_was_missed_is_not_believed_after_a_reconnect() -> None:
    async with hall(words("a")) as house:
        await house.take(muted(-1, user_id=0), said("hi"), Connected(self_id=BOT, time=0.0), said("hi"))
        assert house.transport.texts == ["a"]


async def test_other_events_are_taken_quietly() -> None:
    async with hall() as house:
        await house.take(
            Connected(self_id=BOT, time=0.0),
            Heartbeat(self_id=BOT, time=0.0, online=True, interval=30.0),
            AccountChanged(self_id=BOT, time=0.0, online=False, reason="kicked"),
        )
        assert house.transport.sent == []


async def test_sends_and_lines_to_the_owner_that_wait_for_a_connection_go_out_with_it() -> None:
    async with hall(words("a")) as house:
        house.transport.failures.append(NotConnected("away"))
        house.owner.tell("disk", "the disk is full")
        await house.dispatcher.handle(said("hi"))
        await until(lambda: house.store.of("send_changed"))
        assert house.transport.sent == []
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        await house.outbox.wait_idle()
        assert sorted(house.transport.texts) == ["a", "the disk is full"]


async def test_an_answer_in_doubt_is_confirmed_by_what_the_account_is_seen_to_say() -> None:
    shown = MessageSent(
        self_id=BOT,
        time=said("now").time,
        conversation=GROUP,
        message_id="9",
        segments=(Quote("7"), Text("a")),
    )
    async with hall(words("a")) as house:
        house.transport.failures.append(ActionUnanswered("lost"))
        await house.take(said("hi", message_id="7"))
        await house.take(shown)
        changes = [entry for entry in house.store.entries if isinstance(entry, SendChanged)]
        assert (changes[-1].state, changes[-1].message_id) == (SendState.CONFIRMED, "9")
