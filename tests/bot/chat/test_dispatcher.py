from __future__ import annotations

from bot.core.errors import ActionUnanswered
from bot.core.events import AccountChanged, Connected, Heartbeat, MessageSent, Requested
from bot.core.journal import SendChanged, SendState
from bot.policy.wake import Rules
from frostagent.cancellation import background
from frostagent.types.speech import Quote, Text
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, said, until, words


async def test_a_message_sent_by_the_account_elsewhere_is_known_when_it_is_quoted() -> None:
    sent = MessageSent(self_id=BOT, time=0.0, conversation=GROUP, message_id="88", segments=(Text("from my phone"),))
    async with hall(words("yes")) as house:
        await house.take(sent, said((Quote("88"), Text("was that you?")), at=False))
        assert house.transport.texts == ["yes"]


async def test_other_events_are_taken_quietly() -> None:
    async with hall() as house:
        await house.take(
            Connected(self_id=BOT, time=0.0),
            Heartbeat(self_id=BOT, time=0.0, online=True, interval=30.0),
            AccountChanged(self_id=BOT, time=0.0, online=False, reason="kicked"),
        )
        assert house.transport.sent == []


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


async def test_a_friend_request_is_heard() -> None:
    asked = Requested(self_id=BOT, time=0.0, kind="friend", sub_type="", user_id=5, group_id=0, comment="", flag="f")
    async with hall(rules=Rules(names=("小霜",), owners=frozenset({999}))) as house, background(house.decisions.run()):
        await house.take(asked)
        await until(lambda: house.transport.texts != [])
        assert house.transport.texts[0].startswith("#R1 5 ")
