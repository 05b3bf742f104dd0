"""What each entry is written as."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from adapters.storage.batches import Put
from adapters.storage.rows import kept, rows
from adapters.storage.statements import SQL, Statement, compiled, plain
from bot.core import codec
from bot.core.actions import MAX_SOURCE, SendMessage
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.jobs import JobChanged, JobsEnded
from bot.core.journal import (
    Audited,
    ConversationReset,
    Entry,
    MemberNumbered,
    MessageErased,
    MessageOverheard,
    MessageTakenUp,
    PersonaChosen,
    PictureDescribed,
    PlaceSet,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendQueued,
    SendState,
    UsageAdded,
    UsageReleased,
    UsageReserved,
    WindowMoved,
)
from bot.core.memories import MemoriesForgotten, MemoriesUsed, Visibility
from frostagent.types.messages import AssistantMessage, ToolMessage, Usage
from frostagent.types.speech import Attachment, Text
from tests.adapters.storage.entries import (
    NOW,
    asked,
    began,
    beside,
    closing,
    ended,
    fact,
    heard,
    job,
    opening,
    sending,
    steering,
    step,
    thing,
    verdict,
)
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said

ENTRIES: list[tuple[Entry, list[Statement]]] = [
    (heard(), [Statement.ADD_MESSAGE]),
    (asked(), [Statement.ADD_MESSAGE]),
    (MessageOverheard(said("no")), [Statement.TAKE_BACK_MESSAGE, Statement.ADD_MESSAGE]),
    (
        MessageErased(GROUP, "5"),
        [
            Statement.ERASE_MESSAGE,
            Statement.ERASE_STEERED,
            Statement.FIND_READERS,
            Statement.ERASE_THINGS,
            Statement.RECALL_JOBS,
            Statement.UNLEARN_TERMS,
            Statement.UNLEARN,
        ],
    ),
    (verdict(), [Statement.ADD_VERDICT]),
    (opening("t1"), [Statement.CONSUME_MESSAGES, Statement.MARK_READ, Statement.OPEN_TURN]),
    (MessageTakenUp(said("hi")), [Statement.TAKE_IN_LINE]),
    (MessageTakenUp(said("hi"), gone=True), [Statement.TAKE_IN_LINE]),
    (steering("t1"), [Statement.TAKE_IN_LINE, Statement.ADD_STEERED]),
    (step("t1"), [Statement.ADD_STEP, Statement.ADD_USAGE]),
    (began("t1", 1, "c", "n"), [Statement.START_CALL]),
    (
        ended("t1", ToolMessage("c", "n", "ok"), 1, code="ok", seconds=1.0),
        [Statement.FINISH_CALL],
    ),
    (closing(opening("t1")), [Statement.CLOSE_RUN, Statement.CLOSE_TURN]),
    (WindowMoved(GROUP, "t1", "t2", "notes"), [Statement.MOVE_WINDOW]),
    (ConversationReset(GROUP), [Statement.RESET_WINDOW]),
    (PersonaChosen(GROUP, "fox.zh"), [Statement.CHOOSE_PERSONA]),
    (PlaceSet(GROUP, "hush", "mute"), [Statement.SET_PLACE]),
    (UsageAdded(turn_id="t1", model="demo", usage=Usage(10, 5), at=NOW), [Statement.ADD_USAGE]),
    (
        UsageAdded(turn_id="t1", model="demo", usage=Usage(10, 5, reserved=7), at=NOW),
        [Statement.ADD_USAGE, Statement.DROP_RESERVED],
    ),
    (
        UsageReserved(turn_id="t1", number=7, model="demo", usage=Usage(10, 5), at=NOW),
        [Statement.ADD_USAGE],
    ),
    (beside("t1", AssistantMessage("hm")), [Statement.ADD_REQUEST]),
    (Audited(at=NOW, login="a1b2", address="127.0.0.1", action="login"), [Statement.ADD_AUDIT]),
    (UsageReleased(turn_id="t1", number=7), [Statement.DROP_RESERVED]),
    (MemberNumbered(conversation=GROUP, number=2, user_id=777, name="小明"), [Statement.NUMBER_MEMBER]),
    (thing(1), [Statement.NAME_THING]),
    (PictureDescribed("d1", "a cat"), [Statement.DESCRIBE_PICTURE]),
    (sending("s1", "t1"), [Statement.QUEUE_SEND]),
    (SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW, message_id="7"), [Statement.CHANGE_SEND]),
    (RunSuspended(turn_id="t1", state="{}", expires=NOW), [Statement.SUSPEND_RUN]),
    (RunResumed("t1"), [Statement.RESUME_RUN]),
    (
        fact("m1", "猫咪", visibility=Visibility.PERSON),
        [
            Statement.FORGET_TERMS,
            Statement.KEEP_MEMORY,
            Statement.ADD_TERM,
            Statement.ADD_TERM,
            Statement.CROP_TERMS,
            Statement.CROP_MEMORIES,
        ],
    ),
    (MemoriesUsed(("m1", "m2"), NOW, NOW), [Statement.USE_MEMORY, Statement.USE_MEMORY]),
    (job(1), [Statement.ADD_JOB]),
    (JobChanged(job(1).job), [Statement.CHANGE_JOB]),
    (JobsEnded(GROUP, 5, 9), [Statement.END_JOBS]),
    (MemoriesForgotten(("m1",)), [Statement.FORGET_TERMS, Statement.FORGET_MEMORY]),
]


@each_case(("entry", "statements"), ENTRIES)
def test_an_entry_becomes_its_statements_in_order(entry: Entry, statements: list[Statement]) -> None:
    assert [statement for statement, _ in rows(entry, NOW)] == statements


def test_every_kind_of_entry_is_among_them() -> None:
    assert {type(entry) for entry, _ in ENTRIES} == set(Entry.__args__)


def parameters(entry: Entry) -> dict[str, Any]:
    return rows(entry, 5.0)[-1][1]


def test_a_message_keeps_when_it_was_said_and_when_it_was_taken() -> None:
    row = parameters(heard("你好"))
    assert (row["time"], row["taken"], row["overheard"]) == (1_700_000_000.0, 5.0, True)
    assert row["segments"] == '[{"type":"text","text":"你好"}]'


def test_the_group_of_a_temporary_session_is_kept_beside_the_conversation() -> None:
    where = Conversation(BOT, "private", 777, via_group=4242)
    row = parameters(heard(where=where))
    assert (row["conversation"], row["via_group"]) == ("10001:private:777", 4242)
    row = parameters(sending("s", "t", where=where))
    assert (row["conversation"], row["via_group"]) == ("10001:private:777", 4242)


def test_a_question_is_kept_whole() -> None:
    question = said("你好", where=Conversation(BOT, "private", 777, via_group=4242))
    assert codec.read(MessageReceived, parameters(opening("t", question))["question"]) == question


def test_a_round_is_what_the_codec_writes_and_an_empty_one_is_none() -> None:
    closed = closing(opening("t"))
    assert parameters(closed)["round"] == codec.write(closed.round)
    assert parameters(closing(opening("t"), keep=False))["round"] is None


def test_a_step_without_usage_costs_no_row() -> None:
    entry = step("t")
    bare = replace(entry, completion=replace(entry.completion, usage=None))
    assert [statement for statement, _ in rows(bare, NOW)] == [Statement.ADD_STEP]


def test_states_are_plain_text() -> None:
    """A driver may write an enum by its name."""
    for entry in (step("t"), sending("s", "t"), SendChanged(send_id="s", state=SendState.SENDING, at=NOW)):
        for _, row in rows(entry, NOW):
            assert {type(value) for value in row.values()} <= {str, int, float, bool}


def test_a_large_medium_is_not_kept_and_the_send_says_so() -> None:
    small, large = Attachment("image", "x" * MAX_SOURCE), Attachment("image", "x" * (MAX_SOURCE + 1), "cat.png")
    assert kept((Text("a"), small)) == ((Text("a"), small), True)
    assert kept((small, large)) == ((small, Attachment("image", "", "cat.png")), False)
    row = parameters(SendQueued(send_id="s", turn_id="t", action=SendMessage(GROUP, (large,)), final=False, at=NOW))
    assert row["whole"] is False
    assert len(row["segments"]) < 200


def test_a_nul_is_replaced_where_postgresql_has_none() -> None:
    assert plain("a\0b") == "a�b"
    row = parameters(heard("a\0b", name="x\0y"))
    assert row["nickname"] == "x�y"
    assert codec.read(tuple[Text, ...], row["segments"]) == (Text("a\0b"),)


def test_the_parameters_are_those_of_the_statements(batches: Any, database: Any) -> None:
    """Each name a statement asks for is given, and none besides (which PostgreSQL's driver would not mind)."""
    database.connect().close()
    compiled(database.dialect)
    for entry, _ in ENTRIES:
        for statement, row in rows(entry, NOW):
            if statement in SQL:
                assert all(f":{name}" in SQL[statement] for name in row), statement
    assert batches.write([Put(entry, NOW) for entry, _ in ENTRIES]).failure == ""
