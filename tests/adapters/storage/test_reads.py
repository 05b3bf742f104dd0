"""What comes back: against a model of the journal in plain lists, and by the indexes made for it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import Connection, event, text, update

from adapters.storage import reads
from adapters.storage.ahead import Put
from adapters.storage.batches import Batches, Written
from adapters.storage.database import Database
from adapters.storage.tables import messages as message_table
from adapters.storage.tables import metadata
from adapters.storage.tables import turns as turn_table
from bot.domain import codec
from bot.domain.actions import Attachment, SendMessage
from bot.domain.chat import Message, ToolMessage
from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.journal import (
    CallFinished,
    CallStarted,
    Entry,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    Remembered,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendQueued,
    SendState,
    StoredSend,
)
from bot.domain.segments import File, Image, Quote, Record, Text, Video
from tests.adapters.storage.entries import (
    CALLING,
    NOW,
    ROUND,
    SEND,
    asked,
    closing,
    heard,
    messages,
    opening,
    sending,
    step,
)
from tests.adapters.storage.model import Model, journals, numbers
from tests.fakes import BOT, GROUP, said

T = TypeVar("T")


def put(*entries: Entry, at: float = NOW) -> list[Put]:
    return [Put(entry, at) for entry in entries]


def read(database: Database, query: Callable[..., T], *arguments: Any) -> T:
    with database.reading() as connection:
        return query(connection, *arguments)


# --- against a model ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 100])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(journal=journals())
def test_what_is_remembered_is_what_was_put(
    batches: Batches, database: Database, size: int, journal: tuple[Conversation, list[Entry]]
) -> None:
    where, entries = journal
    model = Model()
    for entry in entries:
        model.take(entry)
    for begin in range(0, len(entries), size):
        batch = put(*entries[begin : begin + size])
        assert batches.write(batch) == Written(len(batch))
    batches.open()
    remembered = read(database, reads.remember, where)
    assert remembered == model.remembered()
    # `via_group` is no part of a conversation's identity, so the comparison above does not see it.
    assert all(message.conversation.via_group == where.via_group for message in remembered.overheard)
    for message_id in ("1", "2", "-3", "four", "五", "never"):
        assert read(database, reads.find, where, message_id) == model.find(message_id)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(round_=ROUND, message=messages(), segments=SEND)
def test_everything_comes_back_byte_for_byte(
    batches: Batches, database: Database, round_: tuple[Message, ...], message: MessageReceived, segments: Any
) -> None:
    number = next(numbers)
    where = Conversation(BOT, "private", number)
    question = replace(message, conversation=where)
    opened = opening(f"b{number}", question)
    closed = replace(closing(opened), round=round_)
    action = SendMessage(where, segments)
    queued = SendQueued(send_id=f"s{number}", turn_id=opened.turn_id, action=action, final=True, at=NOW)
    batches.write(put(MessageObserved(question, overheard=True), queued, opened, closed))
    (found,) = read(database, reads.remember, where).rounds
    assert codec.write(tuple[Message, ...], found.messages) == codec.write(tuple[Message, ...], round_)
    if question.message_id:
        assert read(database, reads.find, where, question.message_id) == question
    sends = {send.send_id: send for send in read(database, reads.recover, NOW).sends}
    assert sends[f"s{number}"] == StoredSend(
        send_id=f"s{number}", turn_id=opened.turn_id, action=action, final=True, at=NOW, state=SendState.QUEUED
    )


# --- one by one -----------------------------------------------------------------------------------


def test_nothing_is_remembered_of_a_conversation_without_a_word(batches: Batches, database: Database) -> None:
    batches.open()
    assert read(database, reads.remember, GROUP) == Remembered()
    assert read(database, reads.find, GROUP, "1") is None
    recovery = read(database, reads.recover, NOW)
    assert recovery == type(recovery)()


def test_only_the_last_thirty_overheard_are_remembered_and_a_recalled_one_leaves_its_place(
    batches: Batches, database: Database
) -> None:
    batches.write(put(*[heard(str(number), message_id=str(number)) for number in range(40)]))
    batches.write(put(MessageErased(GROUP, "20")))
    found = [message.message_id for message in read(database, reads.remember, GROUP).overheard]
    assert found == [str(number) for number in range(10, 40) if number != 20]


def test_a_message_that_was_overheard_after_all_is_read_by_the_next_turn(batches: Batches, database: Database) -> None:
    maybe = said("maybe for you", message_id="5")
    batches.write(put(MessageObserved(maybe, overheard=False), opening("t1"), MessageOverheard(maybe)))
    assert read(database, reads.remember, GROUP).overheard == (maybe,)
    batches.write(put(opening("t2")))
    assert read(database, reads.remember, GROUP).overheard == ()


def test_conversations_do_not_mix(batches: Batches, database: Database) -> None:
    elsewhere = Conversation(BOT, "private", 4242)
    batches.write(put(heard("a", message_id="1"), heard("b", message_id="1", where=elsewhere)))
    (message,) = read(database, reads.remember, elsewhere).overheard
    assert message.segments == (Text("b"),)
    assert read(database, reads.find, elsewhere, "1") == message


def test_the_words_of_a_recalled_message_are_gone(batches: Batches, database: Database) -> None:
    batches.write(put(heard("secret", message_id="1"), MessageErased(GROUP, "1")))
    assert read(database, reads.find, GROUP, "1") is None
    with database.reading() as connection:
        assert connection.scalar(text("SELECT segments FROM messages")) == "[]"
    ((identity, _),) = read(database, reads.recover, NOW).seen
    assert identity == (BOT, "group", 4242, "1")


def test_the_bots_own_message_is_found_as_it_was_sent(batches: Batches, database: Database) -> None:
    media = (
        Attachment("image", "x", "a.png"),
        Attachment("record", "x"),
        Attachment("video", "x"),
        Attachment("file", "x", "b"),
    )
    action = SendMessage(GROUP, (Quote("5"), Text("看"), *media))
    batches.write(put(SendQueued(send_id="s", turn_id="t", action=action, final=True, at=NOW)))
    assert read(database, reads.find, GROUP, "") is None
    assert read(database, reads.find, GROUP, "77") is None
    batches.write(put(SendChanged(send_id="s", state=SendState.CONFIRMED, at=NOW + 1, message_id="77")))
    found = read(database, reads.find, GROUP, "77")
    assert found is not None
    assert found.is_own
    assert (found.time, found.sender) == (NOW + 1, Sender(BOT))
    assert found.segments == (Quote("5"), Text("看"), Image(file="a.png"), Record(), Video(), File(name="b"))
    batches.write(put(heard("the id again", message_id="77"), at=NOW + 2))
    again = read(database, reads.find, GROUP, "77")
    assert again is not None
    assert not again.is_own


def test_a_row_that_cannot_be_read_is_left_out(
    batches: Batches, database: Database, caplog: pytest.LogCaptureFixture
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
    remembered = read(database, reads.remember, GROUP)
    assert [round_.turn_id for round_ in remembered.rounds] == ["t2"]
    assert len(remembered.overheard) == 1
    assert "cannot be read, and is left out" in caplog.text


# --- recovery -------------------------------------------------------------------------------------


def test_what_was_seen_lately_is_known_again(batches: Batches, database: Database) -> None:
    for age in (700, 599, 1):
        batches.write(put(heard(message_id=str(age)), at=NOW - age))
    assert read(database, reads.recover, NOW).seen == (
        ((BOT, "group", 4242, "599"), NOW - 599),
        ((BOT, "group", 4242, "1"), NOW - 1),
    )


def test_young_questions_that_nobody_took_up_are_waking(batches: Batches, database: Database) -> None:
    batches.write(put(asked("too old"), at=NOW - 121))
    forgotten = [said("first"), said("second"), said("third", where=Conversation(BOT, "private", 1))]
    taken, recalled, other = said("taken"), said("recalled"), said("not for the bot")
    own = replace(said("own"), sender=Sender(BOT))
    observed: list[Entry] = [
        MessageObserved(m, overheard=False) for m in (*forgotten[:2], taken, recalled, other, own, forgotten[2])
    ]
    entries: list[Entry] = [
        opening("t1", taken),
        MessageErased(GROUP, recalled.message_id),
        MessageOverheard(other),
        heard("chatter"),
    ]
    batches.write(put(*observed, *entries, at=NOW - 119))
    assert read(database, reads.recover, NOW).waking == tuple(forgotten)


def test_a_second_try_reads_nothing_that_was_said_since_the_first(batches: Batches, database: Database) -> None:
    question, since = asked(), heard("since then")
    first = opening("t1", question.message)
    again = opening("t2", question.message, retry_of="t1")
    batches.write(put(question, first, since, closing(first, keep=False), again))
    assert read(database, reads.remember, GROUP).overheard == (since.message,)


def test_a_turn_left_open_comes_back_with_all_it_did(batches: Batches, database: Database) -> None:
    opened = opening("t1", retry_of="t0")
    results = [ToolMessage("c2", "nothing", "no such tool", is_error=True), ToolMessage("c1", "get_weather", "晴")]
    entries: list[Entry] = [
        opened,
        step("t1", 1, CALLING),
        CallStarted(turn_id="t1", step=1, call_id="c1", name="get_weather"),
        *(CallFinished(turn_id="t1", step=1, result=result, code="x", seconds=0.1) for result in results),
        step("t1", 2, replace(CALLING, text="again")),
        CallStarted(turn_id="t1", step=2, call_id="c2", name="send_message"),
        sending("s1", "t1"),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW, message_id="9"),
        sending("s2", "t1", state=SendState.SENDING),
    ]
    closed = opening("t2")
    batches.write(put(*entries, closed, closing(closed)))
    (turn,) = read(database, reads.recover, NOW).turns
    assert (turn.turn_id, turn.question, turn.user) == ("t1", opened.question, opened.user)
    assert (turn.at, turn.retry_of) == (NOW, "t0")
    assert turn.messages == (CALLING, results[1], results[0], replace(CALLING, text="again"))
    assert turn.started == ("get_weather", "send_message")
    assert [(send.send_id, send.state) for send in turn.sends] == [
        ("s1", SendState.CONFIRMED),
        ("s2", SendState.SENDING),
    ]
    assert [send.send_id for send in read(database, reads.recover, NOW).sends] == ["s2"]


def test_only_unfinished_sends_come_back_oldest_first(batches: Batches, database: Database) -> None:
    for place, state in enumerate(SendState):
        batches.write(put(sending(f"s{place}", "t", state=state)))
    found = read(database, reads.recover, NOW).sends
    assert [send.state for send in found] == [SendState.QUEUED, SendState.SENDING, SendState.UNKNOWN]


def test_a_suspended_run_waits_with_its_question_until_it_goes_on(batches: Batches, database: Database) -> None:
    opened = opening("t1")
    batches.write(put(opened, RunSuspended(turn_id="t1", state='{"a": 1}', expires=NOW + 60)))
    recovery = read(database, reads.recover, NOW)
    assert recovery.turns == ()
    (suspended,) = recovery.suspended
    assert (suspended.turn_id, suspended.state, suspended.expires) == ("t1", '{"a": 1}', NOW + 60)
    assert (suspended.question, suspended.user) == (opened.question, opened.user)
    batches.write(put(RunResumed("t1")))
    recovery = read(database, reads.recover, NOW)
    assert recovery.suspended == ()
    assert [turn.turn_id for turn in recovery.turns] == ["t1"]
    batches.write(put(RunSuspended(turn_id="t1", state="again", expires=NOW), closing(opened)))
    recovery = read(database, reads.recover, NOW)
    assert (recovery.suspended, recovery.turns) == ((), ())


def test_groups_heard_in_the_last_day_are_active(batches: Batches, database: Database) -> None:
    def at(group: int, when: float) -> MessageObserved:
        return MessageObserved(replace(said("x", where=Conversation(BOT, "group", group)), time=when), overheard=True)

    batches.write(put(at(1, NOW - 90_000), at=NOW - 90_000))
    batches.write(
        put(
            at(2, NOW - 500),
            at(3, NOW - 100),
            at(2, NOW - 50),
            heard(where=Conversation(BOT, "private", 4)),
            at=NOW - 50,
        )
    )
    assert read(database, reads.recover, NOW).active == (
        (Conversation(BOT, "group", 2), NOW - 50),
        (Conversation(BOT, "group", 3), NOW - 100),
    )


def test_every_conversation_is_known_unless_there_are_too_many(
    batches: Batches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches.open()
    assert read(database, reads.conversations) == set()
    private, other = Conversation(BOT, "private", 5), Conversation(BOT, "group", 9)
    batches.write(put(heard(), heard(), heard(where=private), opening("t", said("?", where=other))))
    assert read(database, reads.conversations) == {GROUP, private, other}
    monkeypatch.setattr(reads, "MAX_CONVERSATIONS", 2)
    assert read(database, reads.conversations) is None


# --- speed ----------------------------------------------------------------------------------------


CHATTER = """
    INSERT INTO messages (conversation, message_id, self_id, sender, segments, time, taken, overheard)
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99999)
    SELECT '10001:group:' || (n % 100), n, 10001, 777, '[{"text":"chatter","type":"text"}]', n, n, true FROM numbers"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """100,000 messages and 2,000 turns, most of them elsewhere; one of the turns is open, one waits."""
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('large')}/frost.db", migrate=lambda _: None)
    batches = Batches(database, stamp=str)
    batches.run(lambda connection: connection.execute(text(CHATTER)).rowcount)
    entries: list[Entry] = []
    for number in range(2000):
        opened = opening(f"t{number}", said("?", where=Conversation(BOT, "group", number % 100)))
        entries += [opened, closing(opened)]
    entries += [heard(where=Conversation(BOT, "group", 7), message_id=str(number)) for number in range(40)]
    entries += [opening("open"), step("open"), opening("waiting"), RunSuspended(turn_id="waiting", state="", expires=0)]
    assert batches.write(put(*entries, at=NOW - 100_000)).failure == ""
    yield database
    batches.close()
    database.close()


def test_a_large_database_remembers_as_fast_as_a_small_one(large: Database) -> None:
    def seconds(query: Callable[..., object], *arguments: Any) -> float:
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            read(large, query, *arguments)
            times.append(time.perf_counter() - begun)
        return min(times)

    somewhere, nowhere = Conversation(BOT, "group", 7), Conversation(BOT, "group", 7777)
    remembered = read(large, reads.remember, somewhere)
    assert (len(remembered.rounds), len(remembered.overheard)) == (20, 30)
    empty = seconds(reads.remember, nowhere)
    assert seconds(reads.remember, somewhere) < empty + 0.005
    assert seconds(reads.find, somewhere, "7") < 0.005
    assert seconds(reads.recover, NOW) < 0.02
    assert seconds(reads.conversations) < 0.02


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
    read(large, reads.remember, where)
    read(large, reads.find, where, "7")
    recovery = read(large, reads.recover, NOW)
    assert (len(recovery.turns), len(recovery.suspended)) == (1, 1)
    read(large, reads.conversations)
    assert len(plans) == 16
    # An index of the few unfinished rows may be read from end to end; nothing else may.
    few = r"(?! USING INDEX (runs_suspended|turns_left_open|sends_unfinished)$)"
    whole = re.compile(rf"SCAN ({'|'.join(metadata.tables)}){few}")
    assert {sql: plan for sql, plan in plans.items() if any(whole.match(step) for step in plan)} == {}
