from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from bot.conversation.approval.owner_replies import Meant, OwnerReplies
from bot.conversation.intake.server_clock import ServerClock
from bot.core.events import MessageReceived
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.policy.approval import message_words
from frostagent.types.speech import Quote, Text
from tests.bot.outbox.post import build_outbox
from tests.bot.studio import lost
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, RecordingTransport, said

OWNER = 999


@dataclass
class Waiting:
    """A desk that waits for this word; with what it heard, and what that quotes."""

    word: str
    heard: list[str | None] = field(default_factory=list)

    def take_reply(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        self.heard.append(None if quoted is None else message_words(quoted))
        return message_words(message) == self.word

    def meant_by(self, _message: MessageReceived) -> list[Meant]:
        return []


class Office:
    def __init__(self, *words: str, known: list[MessageReceived] | None = None) -> None:
        self.waiting = tuple(map(Waiting, words))
        self.history, self.is_finishing = History(store=RecordingStore(known=known or [])), False
        self.clock = ManualClock()
        self.ages = ServerClock(self.clock)
        owners = frozenset({OWNER})
        outbox, _ = build_outbox(RecordingTransport(), RecordingStore(), self.clock)
        self.owner_replies = OwnerReplies(
            *self.waiting,
            owners=owners,
            history=self.history,
            look_up=lost,
            server_clock=self.ages,
            is_finishing=lambda: self.is_finishing,
            postbox=Postbox(outbox=outbox, history=self.history, clock=self.clock),
        )

    @property
    def heard(self) -> list[list[str | None]]:
        return [one.heard for one in self.waiting]


async def test_the_first_desk_that_waited_for_a_word_has_it() -> None:
    at = Office("yes", "no")
    for word, heard in (("yes", (2, 0)), ("no", (4, 2)), ("perhaps", (6, 4))):
        message = said(word, user=OWNER)
        assert at.owner_replies.take(message) is (word != "perhaps")
        assert await at.owner_replies.take_later(message) is (word != "perhaps")
        assert tuple(map(len, at.heard)) == heard


async def test_only_an_owner_is_heard_and_never_the_bot_itself() -> None:
    at = Office("yes")
    at.owner_replies._owners |= {BOT}
    for user in (777, BOT):
        assert not at.owner_replies.take(said("yes", user=user))
        assert not await at.owner_replies.take_later(said("yes", user=user))
    assert at.heard == [[]]


async def test_desks_are_told_what_a_word_quotes_of_the_bots_at_once_from_memory_and_later_from_the_journal() -> None:
    stored = [said("?", user=BOT, message_id="stored"), said("!", user=5, message_id="others")]
    at = Office("yes", known=stored)
    at.history.know(said("??", user=BOT, message_id="known"))
    for quoted in ("known", "stored", "others", "nobody's"):
        message = said((Quote(quoted), Text("yes")), user=OWNER)
        assert at.owner_replies.take(message)
        assert await at.owner_replies.take_later(message)
    assert at.heard == [["??", "??", None, "?", None, None, None, None]]


async def test_while_the_service_stops_nothing_is_taken_and_nothing_is_heard() -> None:
    at = Office("yes")
    at.is_finishing = True
    assert not at.owner_replies.take(said("yes", user=OWNER))
    assert at.heard == [[]]


async def test_every_message_tells_how_far_the_servers_clock_is_behind() -> None:
    at = Office("yes")
    hi = said("hi", where=GROUP)
    assert at.ages.is_older(replace(hi, time=at.clock.time - 60), at.clock.time)
    at.owner_replies.take(replace(hi, time=at.clock.time - 60))
    assert not at.ages.is_older(replace(hi, time=at.clock.time - 60), at.clock.time)
