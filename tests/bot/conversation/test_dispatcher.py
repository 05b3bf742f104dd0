from __future__ import annotations

from bot.domain.events import (
    AccountChanged,
    Connected,
    Heartbeat,
    MessageSent,
)
from bot.domain.segments import Quote, Text
from tests.bot.hall import hall, muted
from tests.fakes import BOT, GROUP, said, words


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
