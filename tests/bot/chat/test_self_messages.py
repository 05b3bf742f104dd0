from __future__ import annotations

from msgspec.structs import replace

from bot.chat.message_log import SelfMessages
from bot.core.actions import SendMessage
from bot.core.errors import ActionUnanswered
from bot.core.events import MessageReceived, MessageSent
from bot.core.journal import MessageErased
from bot.core.segments import File
from frostagent.types.speech import Attachment, Text
from tests.bot.hall import Hall, hall
from tests.fakes import BOT, GROUP, PRIVATE, said, until, words

SENT = SendMessage(PRIVATE, (Attachment("file", "base64://aGVsbG8=", "作业.txt"),))


def told(name: str = "作业.txt", size: int = 5, *, message_id: str) -> MessageReceived:
    """A file, as somebody's in private."""
    return said((File(name, size=size),), where=PRIVATE, message_id=message_id, at=False)


async def send(house: Hall) -> None:
    house.outbox.post(SENT)
    await house.outbox.wait_idle()


async def test_what_the_account_said_elsewhere_is_known_to_whoever_quotes_it() -> None:
    async with hall() as house:
        said = MessageSent(self_id=BOT, time=0.0, conversation=GROUP, message_id="88", segments=(Text("by hand"),))
        SelfMessages(house.history, house.outbox).record_sent(said)
        known = house.history.known(GROUP, "88")
        assert known is not None
        assert known.is_own
        assert known.cap == "everyone"  # whose words it is, nobody knows


async def test_a_report_of_what_was_sent_does_not_change_whose_words_it_is() -> None:
    async with hall() as house:
        ours = replace(said("an answer", user=BOT), message_id="88")
        house.history.know(ours)
        event = MessageSent(self_id=BOT, time=0.0, conversation=GROUP, message_id="88", segments=ours.segments)
        SelfMessages(house.history, house.outbox).record_sent(event)
        assert house.history.known(GROUP, "88") == ours


async def test_a_file_of_our_own_that_is_told_as_somebodys_is_neither_answered_nor_told() -> None:
    async with hall(words("the same again?")) as house:
        await send(house)
        await house.take(told(message_id="-5"))
        assert len(house.transport.sent) == 1
        known = house.history.known(PRIVATE, "-5")
        assert known is not None
        assert known.is_own
        assert house.store.entries[-1] == MessageErased(PRIVATE, "-5")  # known as taken, over a restart too
        await house.take(told(message_id="-6"))  # somebody sends it back
        assert house.transport.texts[-1:] == ["the same again?"]


async def test_another_file_or_one_that_was_sent_long_ago_is_somebodys() -> None:
    async with hall(words("a"), words("b"), words("c")) as house:
        await send(house)
        await house.take(told("别的.txt", message_id="1"))
        await house.take(told(size=6, message_id="2"))
        house.clock.time += 61
        await house.take(told(message_id="3"))
        assert house.transport.texts[1:] == ["a", "b", "c"]


async def test_a_file_that_nobody_has_confirmed_is_known_by_it() -> None:
    async with hall() as house:
        house.transport.failures = [ActionUnanswered("cut")]
        house.outbox.post(SENT)
        await until(lambda: bool(house.outbox.unconfirmed.sends))
        await house.take(told(size=0, message_id="-5"))  # it does not say how large
        assert not house.outbox.unconfirmed.sends
        assert house.transport.sent == []
