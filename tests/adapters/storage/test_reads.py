"""What comes back: against a model of the journal in plain lists, and by the indexes made for it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from sqlalchemy import Connection, delete, event, text, update

from adapters.storage.batches import EntryBatches, Written
from adapters.storage.database import Database
from adapters.storage.queries import conversations, unfinished
from adapters.storage.tables import messages as message_table
from adapters.storage.tables import metadata
from adapters.storage.tables import turns as turn_table
from bot.core import codec
from bot.core.actions import MergedForward, SendMessage, SentSegment
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.journal import (
    ConversationReset,
    Entry,
    KnownLine,
    LogQuery,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    Remembered,
    RunSuspended,
    SendChanged,
    SendQueued,
    SendState,
    StoredSend,
    WindowMoved,
)
from bot.core.segments import File, Forward, Picture, Record, Video
from frostagent.types.messages import Message
from frostagent.types.speech import Attachment, Quote, Text
from frostagent.types.traits import Audience
from tests.adapters.storage.entries import (
    NOW,
    ROUND,
    SEND,
    asked,
    closing,
    heard,
    job,
    messages,
    opening,
    put,
    read,
    sending,
    step,
    thing,
)
from tests.adapters.storage.model import Model, journals, numbers
from tests.fakes import BOT, GROUP, said

T = TypeVar("T")


# --- against a model ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 100])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(journal=journals())
def test_what_is_remembered_is_what_was_put(
    batches: EntryBatches, database: Database, size: int, journal: tuple[Conversation, list[Entry]]
) -> None:
    where, entries = journal
    model = Model()
    for entry in entries:
        model.take(entry)
    for begin in range(0, len(entries), size):
        batch = put(*entries[begin : begin + size])
        assert batches.write(batch) == Written(len(batch))
    batches.open()
    remembered = read(database, conversations.remember, where)
    assert remembered == model.remembered()
    # `via_group` is no part of a conversation's identity, so the comparison above does not see it.
    assert all(message.conversation.via_group == where.via_group for message in remembered.overheard)
    for message_id in ("1", "2", "-3", "four", "五", "never"):
        assert read(database, conversations.find, where, message_id) == model.find(message_id)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(round_=ROUND, message=messages(), segments=SEND)
def test_everything_comes_back_byte_for_byte(
    batches: EntryBatches, database: Database, round_: tuple[Message, ...], message: MessageReceived, segments: Any
) -> None:
    number = next(numbers)
    where = Conversation(BOT, "private", number)
    question = replace(message, conversation=where)
    opened = opening(f"b{number}", question)
    closed = replace(closing(opened), round=round_)
    action = SendMessage(where, segments)
    queued = SendQueued(send_id=f"s{number}", turn_id=opened.turn_id, action=action, final=True, at=NOW)
    batches.write(put(MessageObserved(question, overheard=True), queued, opened, closed))
    (found,) = read(database, conversations.remember, where).rounds
    assert codec.write(found.messages) == codec.write(round_)
    if question.message_id:
        assert read(database, conversations.find, where, question.message_id) == question
    sends = {send.send_id: send for send in read(database, unfinished.recover, NOW).sends}
    assert sends[f"s{number}"] == StoredSend(
        send_id=f"s{number}", turn_id=opened.turn_id, action=action, final=True, at=NOW, state=SendState.QUEUED
    )


# --- one by one -----------------------------------------------------------------------------------


def test_nothing_is_remembered_of_a_conversation_without_a_word(batches: EntryBatches, database: Database) -> None:
    batches.open()
    assert read(database, conversations.remember, GROUP) == Remembered()
    assert read(database, conversations.find, GROUP, "1") is None
    recovery = read(database, unfinished.recover, NOW)
    assert recovery == type(recovery)()


def test_only_the_last_sixty_overheard_are_remembered_and_a_recalled_one_takes_no_place(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(*[heard(str(number), message_id=str(number)) for number in range(80)]))
    batches.write(put(MessageErased(GROUP, "40")))
    remembered = read(database, conversations.remember, GROUP)
    found = [message.message_id for message in remembered.overheard]
    assert found == [str(number) for number in range(19, 80) if number != 40]
    assert remembered.missed == 19
    batches.write(put(opening("t1")))
    with database.reading() as connection:
        its_own = connection.execute(text("SELECT message_id FROM messages WHERE turn_id = 't1' ORDER BY id"))
        assert [row.message_id for row in its_own] == found


def test_a_round_follows_those_that_ended_before_it_however_early_its_turn_began(
    batches: EntryBatches, database: Database
) -> None:
    turns = {name: opening(name) for name in "abcd"}
    batches.write(put(*turns.values()))
    for second, name in enumerate("bcda"):  # the first one has waited for somebody's word
        batches.write(put(replace(closing(turns[name]), at=NOW + second)))

    def remembered() -> str:
        return "".join(round_.turn_id for round_ in read(database, conversations.remember, GROUP).rounds)

    assert remembered() == "bcda"
    batches.write(put(WindowMoved(GROUP, "c")))
    assert remembered() == "cda"
    batches.run(lambda connection: connection.execute(delete(turn_table).where(turn_table.c.turn_id == "c")).rowcount)
    assert remembered() == "da"
    batches.write(put(WindowMoved(GROUP, "d")))
    batches.run(lambda connection: connection.execute(delete(turn_table)).rowcount)
    assert remembered() == ""


def test_what_is_told_shortened_and_what_was_before_is_known_whatever_was_forgotten_meanwhile(
    batches: EntryBatches, database: Database
) -> None:
    turns = {name: opening(name) for name in "abcde"}
    batches.write(put(*turns.values()))
    for second, name in enumerate("bcdae"):
        batches.write(put(replace(closing(turns[name]), at=NOW + second)))

    def remembered() -> tuple[str, int, str]:
        found = read(database, conversations.remember, GROUP)
        return "".join(round_.turn_id for round_ in found.rounds), found.light, found.summary

    assert remembered() == ("bcdae", 0, "")
    batches.write(put(WindowMoved(GROUP, "b", "d")))
    assert remembered() == ("bcdae", 3, "")
    batches.write(put(WindowMoved(GROUP, "c", "a", "小明(777) 问了\n天气")))
    assert remembered() == ("cdae", 3, "小明(777) 问了\n天气")
    batches.write(put(WindowMoved(GROUP, "c", "d", "two")))
    batches.run(lambda connection: connection.execute(delete(turn_table).where(turn_table.c.turn_id == "d")).rowcount)
    assert remembered() == ("cae", 1, "two")
    batches.write(put(WindowMoved(GROUP, "e", "d", "three")))
    assert remembered() == ("e", 0, "three")


def test_what_was_taken_is_known_though_it_was_recalled(batches: EntryBatches, database: Database) -> None:
    elsewhere = heard(message_id="3", where=Conversation(BOT, "group", 1))
    batches.write(put(asked(message_id="1"), heard(message_id="2"), MessageErased(GROUP, "2"), elsewhere))
    assert read(database, conversations.heard, GROUP, ["1", "2", "3", "4"]) == {"1", "2"}
    assert read(database, conversations.heard, GROUP, []) == set()


def test_what_was_sent_from_here_is_known_too(batches: EntryBatches, database: Database) -> None:
    elsewhere = sending("s2", "", where=Conversation(BOT, "group", 1))
    sent = [SendChanged(send_id=name, state=SendState.CONFIRMED, at=NOW, message_id="7") for name in ("s1", "s2")]
    batches.write(put(elsewhere, sent[1], sending("s3", "")))
    assert read(database, conversations.heard, GROUP, ["7", ""]) == set()
    batches.write(put(sending("s1", ""), sent[0]))
    assert read(database, conversations.heard, GROUP, ["7", "8", ""]) == {"7"}


def test_a_message_that_was_overheard_after_all_is_read_by_the_next_turn(
    batches: EntryBatches, database: Database
) -> None:
    maybe = said("maybe for you", message_id="5")
    batches.write(put(MessageObserved(maybe, overheard=False), opening("t1"), MessageOverheard(maybe)))
    assert read(database, conversations.remember, GROUP).overheard == (maybe,)
    batches.write(put(opening("t2")))
    assert read(database, conversations.remember, GROUP).overheard == ()


def test_conversations_do_not_mix(batches: EntryBatches, database: Database) -> None:
    elsewhere = Conversation(BOT, "private", 4242)
    batches.write(put(heard("a", message_id="1"), heard("b", message_id="1", where=elsewhere)))
    (message,) = read(database, conversations.remember, elsewhere).overheard
    assert message.segments == (Text("b"),)
    assert read(database, conversations.find, elsewhere, "1") == message


def test_the_words_of_a_recalled_message_are_gone(batches: EntryBatches, database: Database) -> None:
    batches.write(put(heard("secret", message_id="1"), MessageErased(GROUP, "1")))
    assert read(database, conversations.find, GROUP, "1") is None
    with database.reading() as connection:
        assert connection.scalar(text("SELECT segments FROM messages")) == "[]"
    ((identity, _),) = read(database, unfinished.recover, NOW).seen
    assert identity == (BOT, "group", 4242, "1")


def test_the_latest_things_are_remembered_and_of_a_recalled_message_only_that_there_were_some(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(*(thing(number, message_id=str(number)) for number in range(1, conversations.THINGS + 3))))
    batches.write(put(thing(1, where=Conversation(BOT, "private", 4242)), MessageErased(GROUP, "302")))
    things = read(database, conversations.remember, GROUP).things
    assert [one.number for one in things] == [*range(3, conversations.THINGS + 3)]
    assert things[:-1] == tuple(thing(number, message_id=str(number)) for number in range(3, conversations.THINGS + 2))
    assert (things[-1].message_id, things[-1].segment) == ("", None)


def test_the_bots_own_message_is_found_as_it_was_sent(batches: EntryBatches, database: Database) -> None:
    media = (
        Attachment("image", "x", "a.png"),
        Attachment("record", "x"),
        Attachment("video", "x"),
        Attachment("file", "x", "b"),
    )
    action = SendMessage(GROUP, (Quote("5"), Text("看"), *media, MergedForward(("一", "二"), "小霜")))
    batches.write(put(SendQueued(send_id="s", turn_id="", action=action, final=True, at=NOW)))
    assert read(database, conversations.find, GROUP, "") is None
    assert read(database, conversations.find, GROUP, "77") is None
    batches.write(put(SendChanged(send_id="s", state=SendState.CONFIRMED, at=NOW + 1, message_id="77")))
    found = read(database, conversations.find, GROUP, "77")
    assert found is not None
    assert found.is_own
    assert (found.time, found.sender) == (NOW + 1, Sender(BOT))
    shown = (Picture(file="a.png"), Record(), Video(), File(name="b"))
    assert found.segments == (Quote("5"), Text("看"), *shown, Text("一\n\n二"))
    batches.write(put(heard("the id again", message_id="77"), at=NOW + 2))
    again = read(database, conversations.find, GROUP, "77")
    assert again is not None
    assert not again.is_own


def test_a_row_that_cannot_be_read_is_left_out(
    batches: EntryBatches, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = opening("t1"), opening("t2")
    batches.write(put(heard("a"), heard("b"), one, closing(one), two, closing(two), heard("c"), heard("d")))

    def spoil(connection: Connection) -> None:
        connection.execute(
            update(turn_table).where(turn_table.c.turn_id == "t1").values(round='[{"type": "hologram"}]')
        )
        connection.execute(update(message_table).where(message_table.c.segments.like("%c%")).values(segments="?"))

    batches.run(spoil)
    caplog.set_level(logging.WARNING)
    remembered = read(database, conversations.remember, GROUP)
    assert [round_.turn_id for round_ in remembered.rounds] == ["t2"]
    assert len(remembered.overheard) == 1
    assert "cannot be read, and is left out" in caplog.text


def test_every_conversation_is_known_unless_there_are_too_many(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches.open()
    assert read(database, conversations.conversations) == set()
    private, other = Conversation(BOT, "private", 5), Conversation(BOT, "group", 9)
    batches.write(put(heard(), heard(), heard(where=private), opening("t", said("?", where=other))))
    assert read(database, conversations.conversations) == {GROUP, private, other}
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 2)
    assert read(database, conversations.conversations) is None


# --- speed ----------------------------------------------------------------------------------------


CHATTER = """
    INSERT INTO messages (conversation, message_id, self_id, sender, segments, time, taken, overheard)
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99999)
    SELECT '10001:group:' || (n % 100), n, 10001, 777, '[{"text":"chatter","type":"text"}]', n, n, true FROM numbers"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """100,000 messages and 2,000 turns, most of them elsewhere; one of the turns is open, one waits."""
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('large')}/frost.db", migrate=lambda _: None)
    batches = EntryBatches(database, stamp=str)
    batches.run(lambda connection: connection.execute(text(CHATTER)).rowcount)
    entries: list[Entry] = []
    for number in range(2000):
        opened = opening(f"t{number}", said("?", where=Conversation(BOT, "group", number % 100)))
        entries += [opened, closing(opened)]
    entries.append(WindowMoved(Conversation(BOT, "group", 8), "t1008"))
    entries += [heard(where=Conversation(BOT, "group", 7), message_id=str(number)) for number in range(40)]
    entries += [opening("open"), step("open"), opening("waiting"), RunSuspended(turn_id="waiting", state="", expires=0)]
    assert batches.write(put(*entries, at=NOW - 100_000)).failure == ""
    yield database
    batches.close()
    database.close()


def test_of_a_large_database_only_what_is_of_the_conversation_is_remembered(large: Database) -> None:
    remembered = read(large, conversations.remember, Conversation(BOT, "group", 7))
    assert (len(remembered.rounds), len(remembered.overheard)) == (20, 40)
    nothing = read(large, conversations.remember, Conversation(BOT, "group", 7777))
    assert (nothing.rounds, nothing.overheard) == ((), ())


def test_every_query_uses_an_index(large: Database) -> None:
    plans: dict[str, list[str]] = {}

    def explain(connection: Connection, _c: object, statement: str, values: Any, *_: object) -> None:
        if "SELECT" in statement:
            driver: Any = connection.connection.driver_connection
            plan = driver.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            plans[statement] = [row[3] for row in plan]

    listening: Any = large._reading
    event.listen(listening, "before_cursor_execute", explain)
    where = Conversation(BOT, "group", 7)
    read(large, conversations.remember, where)
    read(large, conversations.remember, Conversation(BOT, "group", 8))
    read(large, conversations.find, where, "7")
    recovery = read(large, unfinished.recover, NOW)
    assert (len(recovery.turns), len(recovery.suspended)) == (1, 1)
    read(large, conversations.conversations)
    read(large, conversations.heard, where, ["7", "8"])
    assert read(large, unfinished.spoken, "open") is not None
    read(large, conversations.latest, where)
    assert len(plans) == 34
    # An index of the few unfinished rows may be read from end to end; nothing else may.
    few = r"(?! USING INDEX (runs_suspended|turns_left_open|sends_unfinished)$)"
    whole = re.compile(rf"SCAN ({'|'.join(metadata.tables)}){few}")
    assert {sql: plan for sql, plan in plans.items() if any(whole.match(step) for step in plan)} == {}


def test_the_latest_lines_of_a_place_are_told_with_what_is_gone_and_what_was_sent(
    batches: EntryBatches, database: Database
) -> None:
    lines = [replace(heard(words, message_id=words).message, time=NOW + n) for n, words in enumerate(("a", "b"))]
    elsewhere = said("c", where=Conversation(BOT, "group", 9), message_id="c")
    no_id = said("d", message_id="")
    own = said("draft", user=BOT, message_id="draft-1")  # what was published is a send as well
    taken = (*lines, elsewhere, no_id, own)
    batches.write(put(*[MessageObserved(one, overheard=True) for one in taken], MessageErased(GROUP, "b")))
    parts: dict[str, tuple[SentSegment, ...]] = {
        "s1": (Text("hi"),),
        "s2": (MergedForward(("long",), name="bot"),),
        "s3": (Text("unsent"),),
    }
    for send_id, segments in parts.items():
        action = SendMessage(GROUP, segments)
        batches.write(put(SendQueued(send_id=send_id, turn_id="", action=action, final=False, at=NOW)))
    for send_id in ("s1", "s2"):
        changed = SendChanged(send_id=send_id, state=SendState.CONFIRMED, at=NOW + 9, message_id=f"m{send_id}")
        batches.write(put(changed))
    assert {one.message_id: one for one in read(database, conversations.latest, GROUP)} == {
        "a": KnownLine("a", lines[0].sender.user_id, NOW, lines[0].segments),
        "b": KnownLine("b", lines[1].sender.user_id, NOW + 1, None),
        "ms1": KnownLine("ms1", BOT, NOW + 9, (Text("hi"),)),
        "ms2": KnownLine("ms2", BOT, NOW + 9, (Forward(""),)),
    }


# --- the log --------------------------------------------------------------------------------------


def test_the_log_is_searched_by_time_by_person_and_by_words_here_only(
    batches: EntryBatches, database: Database
) -> None:
    talk = {"1": '周六"去"香山', "2": "100% 同意", "3": "周六下雨 OK", "4": "周六也行"}
    said_here = [replace(heard(text, message_id=id_).message, time=NOW + int(id_)) for id_, text in talk.items()]
    other = replace(said_here[3], sender=Sender(5, "阿澈"))
    elsewhere = said("周六", at=False, where=Conversation(BOT, "group", 9), message_id="9")
    batches.write(put(*[MessageObserved(one, overheard=True) for one in (*said_here[:3], other, elsewhere)]))
    batches.write(put(asked("周六，撤回", message_id="5"), MessageErased(GROUP, "5")))

    def found(**more: Any) -> list[str]:
        query = LogQuery(conversation=GROUP, **more)
        return [message.message_id for message in read(database, conversations.search, query)]

    assert found() == ["1", "2", "3", "4"]
    assert found(limit=2) == ["3", "4"]
    assert found(words=("周六",)) == ["1", "3", "4"]
    assert found(words=("周六", "ok")) == ["3"]
    assert found(words=('"去"',)) == ["1"]
    assert (found(words=("%",)), found(words=("_",))) == (["2"], [])
    assert found(sender=5) == ["4"]
    assert found(since=NOW + 2, until=NOW + 3) == ["2", "3"]


def test_after_a_reset_nothing_of_before_is_told_and_all_of_after_is(batches: EntryBatches, database: Database) -> None:
    before, after = opening("t1", said("before")), opening("t2", said("after"))
    batches.write(put(heard("old"), before, closing(before), WindowMoved(GROUP, "t1", "t1", "notes"), heard("older")))
    batches.write(put(ConversationReset(GROUP)))
    remembered = read(database, conversations.remember, GROUP)
    assert (remembered.rounds, remembered.overheard, remembered.summary) == ((), (), "")
    batches.write(put(heard("new"), after, closing(after)))
    assert [round_.turn_id for round_ in read(database, conversations.remember, GROUP).rounds] == ["t2"]


@pytest.mark.parametrize(
    ("send_id", "turn_id", "authorities", "cap"),
    [
        ("boot-1", "", (), ""),  # a line of the service
        ("boot-1", "t", (), ""),  # an answer
        ("user-777-boot-1", "", (), "everyone"),  # what a command told
        ("user-777-boot-1", "", (Audience.OWNER,), "owner"),
        ("user-777-boot-1", "", (Audience.OWNER, Audience.GROUP_ADMIN), "group_admin"),
        ("turn-t-boot-1", "", (), "everyone"),
    ],
)
def test_the_bots_own_message_has_the_authority_of_those_whose_words_it_passed_on(
    batches: EntryBatches,
    database: Database,
    send_id: str,
    turn_id: str,
    authorities: tuple[Audience, ...],
    cap: str,
) -> None:
    action = SendMessage(GROUP, (Text("看"),))
    elsewhere = job(9, where=Conversation(BOT, "group", 9), claim=send_id)
    made = [job(number, claim=send_id, authority=one) for number, one in enumerate(authorities, 1)]
    turn = (opening("t", said("?")),) if turn_id else ()
    sent = SendQueued(send_id=send_id, turn_id=turn_id, action=action, final=True, at=NOW)
    confirmed = SendChanged(send_id=send_id, state=SendState.CONFIRMED, at=NOW, message_id="77")
    batches.write(put(*turn, elsewhere, *made, sent, confirmed))
    found = read(database, conversations.find, GROUP, "77")
    assert found is not None
    assert found.cap == cap
