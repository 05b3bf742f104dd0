"""What comes back at the start: everything left unfinished, and nothing else."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.queries import conversations, unfinished
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import Sender
from bot.core.journal import (
    Entry,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendQueued,
    SendState,
    Undelivered,
)
from bot.core.redaction import OwnWords
from bot.core.run_ids import read_run
from frostagent.types.messages import AssistantMessage, ToolMessage, UserMessage
from frostagent.types.speech import Attachment
from tests.adapters.storage.entries import (
    ANSWER,
    CALLING,
    NOW,
    asked,
    began,
    closing,
    ended,
    heard,
    opening,
    put,
    read,
    sending,
    steering,
    step,
)
from tests.data import journal
from tests.fakes import BOT, GROUP, said


def test_what_was_seen_lately_is_known_again(batches: EntryBatches, database: Database) -> None:
    for age in (700, 599, 1):
        batches.write(put(heard(message_id=str(age)), at=NOW - age))
    assert read(database, unfinished.recover, NOW).seen == (
        ((BOT, "group", 4242, "599"), NOW - 599),
        ((BOT, "group", 4242, "1"), NOW - 1),
    )


def test_questions_of_the_last_hour_are_told_with_who_asked_and_lines_of_one_turn_are_one(
    batches: EntryBatches, database: Database
) -> None:
    private = Conversation(BOT, "private", 5)

    def ask(message_id: str, user: int, age: float, where: Conversation = GROUP) -> None:
        question = said("?", where=where, user=user, message_id=message_id)
        batches.write(put(MessageObserved(question, overheard=False), at=NOW - age))

    ask("old", 1, 3700)
    ask("first", 2, 500)
    ask("more", 2, 499)
    first, more = (said("?", user=2, message_id=one) for one in ("first", "more"))
    batches.write(put(replace(opening("t1", first), lines=(more,))))
    ask("chance", 3, 400)
    uncalled = replace(opening("t2", said("?", user=3, message_id="chance")), uncalled=True)
    batches.write(put(uncalled))
    batches.write(put(heard("chatter", user=4, message_id="chatter"), at=NOW - 300))
    ask("waits", 5, 200, private)
    ask("recalled", 6, 100)
    batches.write(put(MessageErased(GROUP, "recalled")))
    ask("later", 7, -1)
    found = read(database, lambda connection: unfinished.recover(connection, NOW, NOW))
    assert found.asked == ((GROUP, 2, NOW - 500), (GROUP, 0, NOW - 400), (private, 5, NOW - 200))


def test_young_questions_that_nobody_took_up_are_waking(batches: EntryBatches, database: Database) -> None:
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
    assert read(database, unfinished.recover, NOW).waking == tuple(forgotten)


@pytest.mark.parametrize("message_id", ["0", ""])
def test_questions_without_an_id_of_their_own_are_told_apart(
    batches: EntryBatches, database: Database, message_id: str
) -> None:
    first, second = (
        replace(said(words, message_id=message_id), time=NOW + place) for place, words in enumerate(["one", "two"])
    )
    batches.write(put(*[MessageObserved(question, overheard=False) for question in (first, second)]))
    batches.write(put(opening("t1", first)))
    assert read(database, unfinished.recover, NOW).waking == (second,)
    batches.write(put(opening("t2", second)))
    assert read(database, unfinished.recover, NOW).waking == ()


def test_a_question_that_came_again_is_taken_up_wherever_it_is_written(
    batches: EntryBatches, database: Database
) -> None:
    question = asked()
    batches.write(put(question, question, opening("t1", question.message)))
    assert read(database, unfinished.recover, NOW).waking == ()


def test_what_was_written_since_a_time_is_not_recovered(batches: EntryBatches, database: Database) -> None:
    old, new = opening("old", at=NOW - 9), opening("new", at=NOW)
    waits, waits_now = opening("waits", at=NOW - 9), opening("waits now", at=NOW)
    waiting = [RunSuspended(turn_id=turn.turn_id, state="{}", expires=NOW + 60) for turn in (waits, waits_now)]
    before, since = asked("before", message_id="1"), asked("since", message_id="2")
    batches.write(put(old, waits, before, replace(sending("s1", "old"), at=NOW - 9), at=NOW - 9))
    batches.write(put(new, waits_now, *waiting, since, sending("s2", "new"), at=NOW))
    recovery = read(database, unfinished.recover, NOW + 1, NOW)
    assert [turn.turn_id for turn in recovery.turns] == ["old"]
    assert [suspended.turn_id for suspended in recovery.suspended] == ["waits"]
    assert [send.send_id for send in recovery.sends] == ["s1"]
    assert recovery.waking == (before.message,)
    assert [identity[-1] for identity, _ in recovery.seen] == ["1"]
    assert recovery.active == ((GROUP, before.message.time),)


@pytest.mark.parametrize("waits", [False, True])
def test_a_turn_whose_question_was_recalled_is_marked_and_waits_for_nobody(
    batches: EntryBatches, database: Database, waits: bool
) -> None:
    question = asked(message_id="7")
    state = [RunSuspended(turn_id="t1", state="{}", expires=NOW + 60)] if waits else []
    batches.write(put(question, opening("t1", question.message), *state))
    recovery = read(database, unfinished.recover, NOW)
    assert [turn.recalled for turn in recovery.turns] == [False] * (not waits)
    batches.write(put(MessageErased(GROUP, "7")))
    recovery = read(database, unfinished.recover, NOW)
    assert [(turn.turn_id, turn.recalled) for turn in recovery.turns] == [("t1", True)]
    assert recovery.suspended == ()


def test_a_second_try_reads_nothing_that_was_said_since_the_first(batches: EntryBatches, database: Database) -> None:
    question, since = asked(), heard("since then")
    first = opening("t1", question.message)
    again = opening("t2", question.message, retry_of="t1")
    batches.write(put(question, first, since, closing(first, keep=False), again))
    assert read(database, conversations.remember, GROUP).overheard == (since.message,)


def test_a_turn_left_open_comes_back_with_all_it_did(batches: EntryBatches, database: Database) -> None:
    opened = opening("t1", retry_of="t0")
    results = [ToolMessage("c2", "nothing", "no such tool", is_error=True), ToolMessage("c1", "get_weather", "晴")]
    entries: list[Entry] = [
        opened,
        step("t1", 1, CALLING),
        began("t1", 1, "c1", "get_weather"),
        *(ended("t1", result, 1, code="x", seconds=0.1) for result in results),
        step("t1", 2, replace(CALLING, text="again")),
        began("t1", 2, "c2", "send_message"),
        sending("s1", "t1"),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW, message_id="9"),
        sending("s2", "t1", state=SendState.SENDING),
    ]
    closed = opening("t2")
    batches.write(put(*entries, closed, closing(closed)))
    (turn,) = read(database, unfinished.recover, NOW).turns
    assert (turn.turn_id, turn.question, turn.user) == ("t1", opened.question, opened.user)
    assert (turn.at, turn.retry_of) == (NOW, "t0")
    assert turn.messages == (CALLING, results[1], results[0], replace(CALLING, text="again"))
    assert turn.started == ("get_weather", "send_message")
    assert [(send.send_id, send.state) for send in turn.sends] == [
        ("s1", SendState.CONFIRMED),
        ("s2", SendState.SENDING),
    ]
    assert [send.send_id for send in read(database, unfinished.recover, NOW).sends] == ["s2"]


def test_what_steered_a_turn_comes_back_where_it_was_said_and_is_heard_nowhere_else(
    batches: EntryBatches, database: Database
) -> None:
    question, called, talk, recalled = asked("q"), asked("no"), heard("tomorrow"), asked("secret")
    opened, result = opening("t1", question.message), ToolMessage("c1", "get_weather", "晴")
    batches.write(put(question, opened, called, talk, recalled))
    batches.write(put(steering("t1", called.message), step("t1", 1, CALLING), ended("t1", result, 1)))
    batches.write(put(steering("t1", talk.message, step=1), steering("t1", recalled.message, step=1)))
    batches.write(put(step("t1", 2, AssistantMessage("overtaken")), step("t1", 3, ANSWER)))
    batches.write(put(MessageErased(GROUP, recalled.message.message_id)))
    recovery = read(database, unfinished.recover, NOW)
    (turn,) = recovery.turns
    assert turn.user.text == f"{opened.user.text}\nno"
    assert turn.messages == (CALLING, result, UserMessage("tomorrow"), ANSWER)
    assert recovery.waking == ()
    assert read(database, conversations.remember, GROUP).overheard == ()


def test_only_unfinished_sends_come_back_oldest_first(batches: EntryBatches, database: Database) -> None:
    for place, state in enumerate(SendState):
        batches.write(put(sending(f"s{place}", "", state=state)))
    found = read(database, unfinished.recover, NOW).sends
    assert [send.state for send in found] == [SendState.QUEUED, SendState.SENDING, SendState.UNKNOWN]


def test_a_send_nobody_knows_of_is_looked_out_for_a_day(batches: EntryBatches, database: Database) -> None:
    batches.write(put(sending("s1", "", state=SendState.UNKNOWN), sending("s2", "", state=SendState.QUEUED)))
    assert len(read(database, unfinished.recover, NOW + 86_400).sends) == 2
    assert [send.send_id for send in read(database, unfinished.recover, NOW + 86_401).sends] == ["s2"]


def test_what_was_refused_after_its_turn_had_ended_unconfirmed_comes_back_unless_more_was_said(
    batches: EntryBatches, database: Database
) -> None:
    def turn(name: str, why: Undelivered | None, at: float) -> list[Entry]:
        opened = opening(name, asked(message_id=name).message)
        ends = replace(closing(opened), undelivered=why)
        refused = SendChanged(send_id=f"s-{name}", state=SendState.REFUSED, at=at, reason="muted: not now")
        return [opened, sending(f"s-{name}", name), ends, refused]

    batches.write(
        put(
            *turn("lately", Undelivered.UNCONFIRMED, NOW - 5),
            *turn("earlier", Undelivered.UNCONFIRMED, NOW - 121),
            *turn("known", Undelivered.NOT_DELIVERED, NOW - 5),
            *turn("told", Undelivered.UNCONFIRMED, NOW - 5),
            sending("line", "told", state=SendState.CONFIRMED),
        )
    )
    (found,) = read(database, unfinished.recover, NOW).sends
    assert (found.send_id, found.state, found.reason) == ("s-lately", SendState.REFUSED, "muted: not now")
    assert read(database, unfinished.recover, NOW, NOW - 1).sends == ()


def test_a_suspended_run_waits_with_its_question_until_it_goes_on(batches: EntryBatches, database: Database) -> None:
    opened = opening("t1")
    batches.write(put(opened, RunSuspended(turn_id="t1", state='{"a": 1}', expires=NOW + 60)))
    recovery = read(database, unfinished.recover, NOW)
    assert recovery.turns == ()
    (suspended,) = recovery.suspended
    assert (suspended.turn_id, suspended.state, suspended.expires) == ("t1", '{"a": 1}', NOW + 60)
    assert (suspended.question, suspended.user) == (opened.question, opened.user)
    batches.write(put(RunResumed("t1")))
    recovery = read(database, unfinished.recover, NOW)
    assert recovery.suspended == ()
    assert [turn.turn_id for turn in recovery.turns] == ["t1"]
    batches.write(put(RunSuspended(turn_id="t1", state="again", expires=NOW), closing(opened)))
    recovery = read(database, unfinished.recover, NOW)
    assert (recovery.suspended, recovery.turns) == ((), ())


def test_a_suspended_run_knows_what_its_turn_said_here_and_may_have_been_read(
    batches: EntryBatches, database: Database
) -> None:
    """Not what never left but as a draft, nor what went elsewhere; of media alone, that something was said."""
    picture = SendMessage(GROUP, (Attachment("image", "x", "a.png"),))
    states = [sending(str(state), "t1", f"{state}!", state=state) for state in SendState]
    elsewhere = sending("s1", "t1", "elsewhere", Conversation(BOT, "private", 5), state=SendState.CONFIRMED)
    alone = SendQueued(send_id="s2", turn_id="t1", action=picture, final=False, at=NOW, state=SendState.CONFIRMED)
    suspended = RunSuspended(turn_id="t1", state="{}", expires=NOW + 60)
    batches.write(put(opening("t1"), *states, elsewhere, alone, sending("s3", "t2", "not its own"), suspended))
    (found,) = read(database, unfinished.recover, NOW).suspended
    assert found.said == ("queued!", "sending!", "confirmed!", "unknown!", "draft!", "published!", "reworded!", "")


def test_a_suspended_run_knows_its_messages_by_their_ids_but_those_recalled(
    batches: EntryBatches, database: Database
) -> None:
    private = Conversation(BOT, "private", 5)
    entries: list[Entry] = [opening("t1")]
    for send_id, where, state in (
        ("s1", GROUP, SendState.CONFIRMED),
        ("s2", GROUP, SendState.CONFIRMED),
        ("s3", private, SendState.CONFIRMED),
        ("s4", GROUP, SendState.UNKNOWN),
    ):
        message_id = f"m-{send_id}" if state is SendState.CONFIRMED else ""
        changed = SendChanged(send_id=send_id, state=state, at=NOW, message_id=message_id)
        entries += [sending(send_id, "t1", f"words of {send_id}", where), changed]
    waits = RunSuspended(turn_id="t1", state="{}", expires=NOW + 60)
    batches.write(put(*entries, waits, MessageErased(GROUP, "m-s1")))
    (found,) = read(database, unfinished.recover, NOW).suspended
    assert found.own == (
        (GROUP, "m-s2", OwnWords("t1", "words of s2", final=True, earlier=1)),
        (private, "m-s3", OwnWords("t1", "words of s3", final=True, earlier=1)),
    )


def test_conversations_heard_in_the_last_day_are_active(batches: EntryBatches, database: Database) -> None:
    def at(group: int, when: float) -> MessageObserved:
        return MessageObserved(replace(said("x", where=Conversation(BOT, "group", group)), time=when), overheard=True)

    private = Conversation(BOT, "private", 4)
    batches.write(put(at(1, NOW - 90_000), at=NOW - 90_000))
    batches.write(
        put(
            at(2, NOW - 500),
            at(3, NOW - 100),
            at(2, NOW - 50),
            MessageObserved(replace(said("x", where=private), time=NOW - 40), overheard=False),
            at=NOW - 50,
        )
    )
    assert read(database, unfinished.recover, NOW).active == (
        (private, NOW - 40),
        (Conversation(BOT, "group", 2), NOW - 50),
        (Conversation(BOT, "group", 3), NOW - 100),
    )


# --- one question, taken more than once -----------------------------------------------------------


def test_a_row_of_a_question_waits_for_nobody_where_another_one_was_settled(
    batches: EntryBatches, database: Database
) -> None:
    """As after a start without the journal, at which the event came again: both rows were written when it was back."""
    taken, heard_after_all, recalled, waits = (asked(message_id=name) for name in ("1", "2", "3", "4"))
    batches.write(put(taken, heard_after_all, recalled, waits, at=NOW - 9))
    batches.write(put(opening("t1", taken.message), at=NOW - 8))
    batches.write(put(taken, heard_after_all, waits, at=NOW - 7))
    batches.write(put(MessageOverheard(heard_after_all.message), MessageErased(GROUP, "3"), at=NOW - 6))
    batches.write(put(recalled, at=NOW - 5))
    assert read(database, unfinished.recover, NOW).waking == (waits.message, waits.message)


def test_an_id_that_comes_again_for_another_message_is_another_question(
    batches: EntryBatches, database: Database
) -> None:
    taken = asked(message_id="1")
    later = replace(taken.message, time=NOW + 30)
    other = replace(taken.message, sender=Sender(5))
    elsewhere = replace(taken.message, conversation=Conversation(BOT, "group", 4343))
    others = (later, other, elsewhere)
    batches.write(put(taken, opening("t1", taken.message), at=NOW))
    batches.write(put(*[MessageObserved(message, overheard=False) for message in others], at=NOW + 1))
    assert read(database, unfinished.recover, NOW + 2).waking == others


@pytest.mark.parametrize("message_id", ["0", ""])
def test_questions_without_an_id_of_their_own_settle_none_but_themselves(
    batches: EntryBatches, database: Database, message_id: str
) -> None:
    question = asked(message_id=message_id)
    batches.write(put(question, opening("t1", question.message), at=NOW))
    assert read(database, unfinished.recover, NOW).waking == ()
    batches.write(put(question, at=NOW + 1))
    assert read(database, unfinished.recover, NOW + 2).waking == (question.message,)
    second = opening("t2", question.message)
    batches.write(put(second, closing(second), at=NOW + 2))
    assert [turn.handled for turn in read(database, unfinished.recover, NOW + 3).turns] == [False]


def test_an_open_turn_knows_what_others_of_its_question_said_and_began(
    batches: EntryBatches, database: Database
) -> None:
    question = asked(message_id="1")
    begun = began("t1", 1, "c1", "get_weather")
    result = ToolMessage("c1", "get_weather", "sunny")
    finished = ended("t1", result, 1)
    batches.write(put(question, opening("t1", question.message), step("t1", 1, CALLING), begun, finished, at=NOW - 9))
    batches.write(put(question, opening("t2", question.message), step("t2", 1, CALLING), at=NOW - 8))
    batches.write(put(sending("s2", "t2"), at=NOW - 8))
    batches.write(put(opening("t3"), sending("s3", "t3"), at=NOW - 7))
    one, two, three = read(database, unfinished.recover, NOW).turns
    for turn in (one, two):
        assert turn.started == ("get_weather",)
        assert [send.send_id for send in turn.sends] == ["s2"]
        assert not turn.handled
    assert (one.messages, two.messages) == ((CALLING, result), (CALLING,))
    assert (three.started, [send.send_id for send in three.sends]) == ((), ["s3"])


def test_an_open_turn_knows_that_another_one_of_its_question_has_ended(
    batches: EntryBatches, database: Database
) -> None:
    question = asked(message_id="1")
    second = opening("t2", question.message)
    batches.write(put(question, opening("t1", question.message), at=NOW - 9))
    batches.write(put(question, second, at=NOW - 8))
    assert [turn.handled for turn in read(database, unfinished.recover, NOW).turns] == [False, False]
    batches.write(put(closing(second), at=NOW - 7))
    assert [(turn.turn_id, turn.handled) for turn in read(database, unfinished.recover, NOW).turns] == [("t1", True)]


def test_a_turn_of_an_earlier_question_with_the_same_id_is_no_other(batches: EntryBatches, database: Database) -> None:
    early = asked(message_id="1")
    later = MessageObserved(replace(early.message, time=NOW + 30), overheard=False)
    first = opening("t1", early.message)
    batches.write(put(early, first, closing(first), at=NOW))
    batches.write(put(later, opening("t2", later.message), at=NOW + 30))
    assert [turn.handled for turn in read(database, unfinished.recover, NOW + 40).turns] == [False]


def test_the_turn_that_is_tried_again_is_no_other(batches: EntryBatches, database: Database) -> None:
    question = asked(message_id="1")
    first = opening("t1", question.message)
    batches.write(put(question, first, sending("s1", "t1"), at=NOW - 9))
    batches.write(put(closing(first, keep=False), opening("t2", question.message, retry_of="t1"), at=NOW - 8))
    (again,) = read(database, unfinished.recover, NOW).turns
    assert (again.turn_id, again.handled, again.sends) == ("t2", False, ())


# --- what a turn has said -------------------------------------------------------------------------


def test_what_a_turn_has_said_is_told_with_its_question_and_whether_it_is_over(
    batches: EntryBatches, database: Database
) -> None:
    question = asked(message_id="1")
    opened = opening("t1", question.message)
    unknown = SendChanged(send_id="s1", state=SendState.UNKNOWN, at=NOW)
    batches.write(put(question, opened, sending("s1", "t1"), sending("s2", "t1"), sending("s3", "t3"), unknown))
    spoken = read(database, unfinished.spoken, "t1")
    assert spoken is not None
    assert (spoken.question, spoken.is_over) == (question.message, False)
    assert [(send.send_id, send.state) for send in spoken.sends] == [
        ("s1", SendState.UNKNOWN),
        ("s2", SendState.QUEUED),
    ]
    batches.write(put(closing(opened)))
    spoken = read(database, unfinished.spoken, "t1")
    assert spoken is not None
    assert spoken.is_over


def test_of_a_turn_that_is_not_there_or_whose_question_was_recalled_nothing_is_told(
    batches: EntryBatches, database: Database
) -> None:
    question = asked(message_id="1")
    batches.write(put(question, opening("t1", question.message), MessageErased(GROUP, "1")))
    assert read(database, unfinished.spoken, "t1") is None
    assert read(database, unfinished.spoken, "t2") is None


def test_the_rows_of_an_older_version_are_read_as_those_of_today(
    batches: EntryBatches, database: Database, tmp_path: Path
) -> None:
    batches.write([Put(entry, NOW + place) for place, entry in enumerate(journal.ENTRIES)])
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript((journal.HERE / "rows.sql").read_text("utf-8"))
    with contextlib.closing(Database(f"sqlite:///{tmp_path / 'old.db'}", migrate=migrate)) as old:
        old.connect().close()
        recovered = read(old, unfinished.recover, NOW)
        assert recovered == read(database, unfinished.recover, NOW)
        for where in (journal.GROUP, journal.PRIVATE):
            assert read(old, conversations.remember, where) == read(database, conversations.remember, where)
    assert [read_run(each.state) for each in recovered.suspended] == [journal.RUN]
    assert [turn.turn_id for turn in recovered.turns] == ["t3"]
