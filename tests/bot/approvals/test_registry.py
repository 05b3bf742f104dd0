from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from bot.approvals.decision import Candidate, Reply
from bot.approvals.registry import PendingDecisions
from bot.core.events import MessageReceived, Requested, message_words
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from frostagent.cancellation import background
from frostagent.types.speech import Quote, Text
from tests.bot.approvals.desk import desk, lost, waiting
from tests.bot.outbox.post import build_outbox
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, RecordingTransport, said, until

OWNER = 999


@dataclass
class Waiting:
    """A kind of decision that waits for this word; with what it heard, and what that quotes."""

    word: str
    heard: list[str | None] = field(default_factory=list)

    def read_reply(self, message: MessageReceived) -> Reply | None:
        if message_words(message) == self.word:
            return Reply("approve", None if any(isinstance(one, Quote) for one in message.segments) else 1)
        return None

    def find_number(self, quoted: MessageReceived) -> int | None:
        self.heard.append(message_words(quoted))
        return 1

    def list_candidates(self, _message: MessageReceived, _reply: Reply) -> list[Candidate]:
        return []

    def accept(self, message: MessageReceived, _number: int, _reply: Reply) -> bool:
        if not any(isinstance(one, Quote) for one in message.segments):
            self.heard.append(None)
        return True


class Office:
    """Kinds of decisions that wait for these words, in the order in which they are asked."""

    def __init__(self, *words: str, known: list[MessageReceived] | None = None) -> None:
        self.waiting = tuple(Waiting(words[index] if index < len(words) else "-") for index in range(4))
        join_requests, groups, drafts, calls = self.waiting
        handlers: dict[str, Any] = {
            "join_requests": join_requests,
            "groups": groups,
            "drafts": drafts,
            "calls": calls,
        }
        self.history, self.is_finishing = History(store=RecordingStore(known=known or [])), False
        self.clock = ManualClock()
        self.ages = ServerClock(self.clock)
        outbox, _ = build_outbox(RecordingTransport(), RecordingStore(), self.clock)
        self.decisions = PendingDecisions(
            **handlers,
            owners=frozenset({OWNER}),
            history=self.history,
            look_up=lost,
            server_clock=self.ages,
            is_finishing=lambda: self.is_finishing,
            postbox=Postbox(outbox=outbox, history=self.history, clock=self.clock),
        )

    @property
    def heard(self) -> list[list[str | None]]:
        return [one.heard for one in self.waiting if one.word != "-"]


async def test_the_first_kind_that_waited_for_a_word_has_it() -> None:
    at = Office("yes", "no", "yes")
    for word, heard in (("yes", (2, 0, 0)), ("no", (2, 2, 0)), ("perhaps", (2, 2, 0))):
        message = said(word, user=OWNER)
        assert at.decisions.take_reply(message) is (word != "perhaps")
        assert await at.decisions.take_reply_later(message) is (word != "perhaps")
        assert tuple(map(len, at.heard)) == heard


async def test_only_an_owner_is_heard_and_never_the_bot_itself() -> None:
    at = Office("yes")
    at.decisions._owners |= {BOT}
    for user in (777, BOT):
        assert not at.decisions.take_reply(said("yes", user=user))
        assert not await at.decisions.take_reply_later(said("yes", user=user))
    assert at.heard == [[]]


async def test_kinds_are_told_what_a_word_quotes_of_the_bots_at_once_from_memory_and_later_from_the_journal() -> None:
    stored = [said("?", user=BOT, message_id="stored"), said("!", user=5, message_id="others")]
    at = Office("yes", known=stored)
    at.history.know(said("??", user=BOT, message_id="known"))
    for quoted in ("known", "stored", "others", "nobody's"):
        message = said((Quote(quoted), Text("yes")), user=OWNER)
        assert at.decisions.take_reply(message) is (quoted == "known")
        assert await at.decisions.take_reply_later(message) is (quoted in {"known", "stored"})
    assert at.heard == [["??", "??", "?"]]


async def test_while_the_service_stops_nothing_is_taken_and_nothing_is_heard() -> None:
    at = Office("yes")
    at.is_finishing = True
    assert not at.decisions.take_reply(said("yes", user=OWNER))
    assert at.heard == [[]]


async def test_every_message_tells_how_far_the_servers_clock_is_behind() -> None:
    at = Office("yes")
    hi = said("hi", where=GROUP)
    assert at.ages.is_older(replace(hi, time=at.clock.time - 60), at.clock.time)
    at.decisions.take_reply(replace(hi, time=at.clock.time - 60))
    assert not at.ages.is_older(replace(hi, time=at.clock.time - 60), at.clock.time)


async def test_what_waits_for_an_owner_is_counted_by_kind() -> None:
    async with desk() as at, background(at.decisions.run()):
        assert set(at.decisions.count().values()) == {0}
        at.wait(waiting("mail"))
        for user, group in ((5, 0), (6, 77)):
            event = Requested(
                self_id=BOT,
                time=at.clock.time,
                kind="group" if group else "friend",
                sub_type="invite" if group else "",
                user_id=user,
                group_id=group,
                comment="",
                flag=str(user),
            )
            at.decisions.join_requests.receive(event)
        await until(lambda: len(at.decisions.join_requests.open) == 2)
        assert at.decisions.count() == {"call": 1, "friend": 1, "invite": 1, "apply": 0, "group": 0, "draft": 0}
