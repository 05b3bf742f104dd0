"""What was recalled leaves the turns that read it, and a summary that was made of it, in both databases."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import select, text

from adapters.storage import redaction
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries import conversations
from adapters.storage.tables import messages, metadata, turns
from adapters.storage.tables import sends as sends_table
from bot.core import codec
from bot.core.actions import SendMessage, plain_words
from bot.core.drafts import draft_id, published_id, published_line
from bot.core.events import MessageReceived
from bot.core.journal import (
    Entry,
    MessageErased,
    MessageObserved,
    Remembered,
    RequestMade,
    SendChanged,
    SendQueued,
    SendState,
    TurnOpened,
    WindowMoved,
)
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from frostagent.types.speech import Text
from tests.adapters.storage.entries import (
    NOW,
    asked,
    began,
    closing,
    ended,
    fact,
    heard,
    opening,
    put,
    read,
    sending,
    step,
)
from tests.fakes import BOT, GROUP, said

ASKED = UserMessage("[群聊记录]\n阿澈#1: 周六去香山吧\n[提问]\n小明#2: 行吗", sources=("7", "8"))
GONE = UserMessage("[群聊记录]\n阿澈#1: [已撤回]\n[提问]\n小明#2: 行吗", sources=("7", "8"))
QUOTING = UserMessage("小红#3: [引用 阿澈#1 的「周六去香山吧」] 啊", sources=("9",))
RECALL = MessageErased(GROUP, "7")


def turn(name: str, user: UserMessage, *, at: float = NOW) -> TurnOpened:
    return replace(opening(name, at=at), user=user)


def told(database: Database) -> Remembered:
    return read(database, conversations.remember, GROUP)


def users(database: Database) -> list[Any]:
    with database.reading() as connection:
        return [
            codec.read(UserMessage, user) for user in connection.scalars(text('SELECT "user" FROM turns ORDER BY id'))
        ]


def test_a_recalled_message_leaves_turns_that_go_on_and_rounds_that_are_kept(
    batches: EntryBatches, database: Database
) -> None:
    first, quoting, open_yet = turn("t1", ASKED), turn("t2", QUOTING), turn("t3", ASKED)
    batches.write(put(heard(message_id="7"), asked(message_id="8"), first, closing(first), quoting, closing(quoting)))
    batches.write(put(open_yet, RECALL))
    rounds = [round_.messages[0] for round_ in told(database).rounds]
    assert rounds == [GONE, replace(QUOTING, text="小红#3: [引用 阿澈#1 的「[已撤回]」] 啊")]
    assert users(database) == [*rounds, GONE]
    batches.write(put(RECALL, MessageErased(GROUP, "nowhere")))
    assert users(database) == [*rounds, GONE]


def test_a_quotation_of_what_nobody_heard_is_gone_from_the_latest_turns(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "TOLD_AGAIN", 2)
    quoting = replace(QUOTING, quotes=(("9", "7"),))
    turns = [turn(f"t{number}", quoting, at=NOW + number) for number in range(4)]
    for number, one in enumerate(turns[:3]):
        batches.write(put(one, replace(closing(one), at=NOW + number), at=NOW + number))
    batches.write(put(turns[3], RECALL, at=NOW + 5))
    gone = replace(quoting, text="小红#3: [引用 阿澈#1 的「[已撤回]」] 啊")
    assert users(database) == [quoting, quoting, gone, gone]


def test_turns_that_had_ended_before_it_was_said_and_rows_that_cannot_be_read_stay(
    batches: EntryBatches, database: Database
) -> None:
    early = turn("t1", ASKED)
    batches.write(put(early, closing(early), at=NOW))
    batches.write(put(heard(message_id="7"), opening("t2"), at=NOW + 50))
    with database.connect() as connection, connection.begin():
        connection.execute(text("UPDATE turns SET round = 'x', question = 'x' WHERE turn_id = 't2'"))
    batches.write(put(RECALL, at=NOW + 60))
    assert users(database)[0] == ASKED
    with database.reading() as connection:
        assert conversations.find(connection, GROUP, "7") is None


def test_a_summary_that_was_made_of_it_is_given_up_and_its_rounds_are_told_again(
    batches: EntryBatches, database: Database, monkeypatch: Any
) -> None:
    monkeypatch.setattr(redaction, "TOLD_AGAIN", 3)
    said: list[Entry] = [heard(message_id="7")]
    turns = [turn(f"t{number}", ASKED if number == 2 else QUOTING, at=NOW + number) for number in range(5)]
    for each in turns:
        said += [each, closing(each)]
    batches.write(put(*said, WindowMoved(GROUP, "t3", "t3", "阿澈说周六去香山")))
    assert [round_.turn_id for round_ in told(database).rounds] == ["t3", "t4"]
    batches.write(put(heard(message_id="66"), MessageErased(GROUP, "66")))
    assert told(database).summary
    batches.write(put(RECALL))
    now = told(database)
    assert ([round_.turn_id for round_ in now.rounds], now.summary, now.light) == (["t2", "t3", "t4"], "", 0)
    assert now.rounds[0].messages[0] == GONE


def questions(database: Database) -> list[tuple[str, int, str]]:
    """Which message each turn's question is, whose, and in which words."""
    with database.reading() as connection:
        rows = connection.scalars(select(turns.c.question).order_by(turns.c.id))
        asked = [codec.read(MessageReceived, row) for row in rows]
    return [(one.message_id, one.sender.user_id, plain_words(one.segments, own=BOT)) for one in asked]


def test_a_recalled_question_is_kept_without_its_words_by_whom_and_when_it_was_asked(
    batches: EntryBatches, database: Database
) -> None:
    """Whatever else can be read of its turn; and other turns' questions have theirs."""
    first, second = opening("t1", said("去香山", message_id="8")), opening("t2", said("下雨吗", message_id="9"))
    third = opening("t3", said("去香山", message_id="8"), at=NOW + 1, retry_of="t1")
    batches.write(put(asked(message_id="8"), first, second, closing(second), third))
    with database.connect() as connection, connection.begin():
        connection.execute(turns.update().where(turns.c.turn_id == "t3").values(user="x", round="y"))
    batches.write(put(MessageErased(GROUP, "8")))
    assert questions(database) == [("8", 777, "[已撤回]"), ("9", 777, "下雨吗"), ("8", 777, "[已撤回]")]
    with database.reading() as connection:
        assert connection.execute(select(turns.c.user, turns.c.round).where(turns.c.turn_id == "t3")).one() == (
            "x",
            "y",
        )


def test_what_a_summary_does_not_tell_leaves_it_as_it_is(batches: EntryBatches, database: Database) -> None:
    first, second = turn("t1", UserMessage("小明#2: hi", sources=("6",))), turn("t2", ASKED)
    kept: list[Entry] = [heard(message_id="7"), first, closing(first), second, closing(second)]
    batches.write(put(*kept, WindowMoved(GROUP, "t2", "", "小明打了招呼"), RECALL))
    assert (told(database).summary, told(database).rounds[0].messages[0]) == ("小明打了招呼", GONE)


def test_so_does_a_recalled_question_that_no_round_told(batches: EntryBatches, database: Database) -> None:
    first, second = turn("t1", UserMessage("[提问]")), turn("t2", UserMessage("[提问]"))
    first = replace(first, question=said("天晴吗", message_id="8"))
    kept: list[Entry] = [first, closing(first), second, closing(second)]
    batches.write(put(*kept, WindowMoved(GROUP, "t2", "", "谁也没说什么"), MessageErased(GROUP, "8")))
    assert told(database).summary == "谁也没说什么"
    assert questions(database)[0] == ("8", 777, "[已撤回]")


def rows(database: Database) -> str:
    """All rows of all tables."""
    with database.reading() as connection:
        found = [row for each in metadata.sorted_tables for row in connection.execute(select(each))]
    return "\n".join(str(value) for row in found for value in row)


@pytest.mark.parametrize("is_closed", [True, False])
def test_words_that_were_recalled_are_in_no_table_though_a_tool_kept_them(
    batches: EntryBatches, database: Database, *, is_closed: bool
) -> None:
    """The line, its turn, what the model gave the tool, the fact with the words it is found by, and the summary."""
    planted = "planted-霜降-word"
    opened = turn("t1", UserMessage(f"[提问]\n小明#2: 记住 {planted}", sources=("8",)))
    opened = replace(opened, question=said(planted, message_id="8"))
    call = AssistantMessage("好", (ToolCall("c", "memory", f'{{"text": "{planted}"}}'), ToolCall("d", "look", "{1}")))
    result = ToolMessage("c", "memory", f"remembered: {planted}", sources=("8",))
    other = ToolMessage("d", "look", "a cat", sources=("5",))
    batches.write(put(asked(planted, message_id="8"), opened, step("t1", 1, call), fact("m1", planted, sources=("8",))))
    batches.write(put(began("t1", 1, "c", "memory"), ended("t1", result, 1), ended("t1", other, 1)))
    if is_closed:
        batches.write(put(closing(opened, call, result, other, AssistantMessage("记住了"))))
        batches.write(put(opening("t2"), WindowMoved(GROUP, "t2", "", planted)))
    assert planted in rows(database)
    batches.write(put(MessageErased(GROUP, "8")))
    left = rows(database)
    assert "planted" not in left
    assert "霜降" not in left
    assert left.count("a cat") == 1 + is_closed
    assert left.count("{1}") == 1 + is_closed  # the other call's
    assert left.count("记住了") == is_closed  # the bot's own words stay


def test_what_a_subagent_did_for_a_call_that_told_a_recalled_line_is_in_no_table(
    batches: EntryBatches, database: Database
) -> None:
    opened = turn("t1", UserMessage("[提问]\n小明#2: 她说了什么", sources=("8",)))
    ask, other = (ToolCall(name, "use_subagent", f'{{"request": "{name}"}}') for name in ("planted", "cat"))
    results = (
        ToolMessage("planted", "use_subagent", "planted", sources=("7",)),
        ToolMessage("cat", "use_subagent", "a cat", sources=("5",)),
    )
    batches.write(put(heard(message_id="7"), asked(message_id="8"), opened))
    batches.write(put(step("t1", 1, AssistantMessage("", (ask, other)))))
    batches.write(put(*(began("t1", 1, one.call_id, "use_subagent") for one in results)))
    for call_id in ("planted", "cat", "planted/2/c"):  # the last one is nobody's: subagents ask no others
        said = AssistantMessage(f"of {call_id}")
        made = RequestMade(
            turn_id="t1", model="m", outcome="ok", seconds=1, at=NOW, run=f"t1/1/{call_id}", step=1, message=said
        )
        batches.write(put(made))
    batches.write(put(*(ended("t1", one, 1) for one in results), RECALL))
    with database.reading() as connection:
        kept = {row.run: row.message for row in connection.execute(text("SELECT run, message FROM requests"))}
    assert kept["t1/1/planted"] is None
    assert "of cat" in kept["t1/1/cat"]
    assert "of planted/2/c" in kept["t1/1/planted/2/c"]


def test_recalled_words_of_the_bot_leave_the_turn_that_said_them_its_steps_and_a_summary_of_it(
    batches: EntryBatches, database: Database
) -> None:
    answer = AssistantMessage("**去**香山")
    for name, after in (("t1", 0.0), ("t2", 10.0), ("t3", 20.0)):
        opened, spoken = opening(name, said("去哪", message_id=f"q{name}"), at=NOW + after), said_by(name, NOW + after)
        batches.write(put(opened, step(name, message=answer), *spoken, closing(opened, answer)))
    batches.write(put(WindowMoved(GROUP, "t3", summary="他们去香山")))
    batches.write(put(MessageErased(GROUP, "own-t2"), MessageErased(GROUP, "0")))
    gone = AssistantMessage("[已撤回]")
    remembered = told(database)
    assert remembered.summary == ""
    assert [round_.messages[1] for round_ in remembered.rounds] == [answer, gone, answer]
    with database.reading() as connection:
        steps = [
            codec.read(AssistantMessage, one)
            for one in connection.scalars(text("SELECT message FROM steps ORDER BY id"))
        ]
        rows = [*connection.scalars(text("SELECT segments FROM sends ORDER BY id"))]
    assert steps == [answer, gone, answer]
    assert ["香山" in one for one in rows] == [True, False, True]


def test_recalled_words_of_the_bot_leave_what_its_tools_and_subagents_said_before_it(
    batches: EntryBatches, database: Database
) -> None:
    words = "周六去香山公园，八点半在北门见"
    ask = ToolCall("c1", "use_subagent", '{"request": "where"}')
    results = ToolMessage("c1", "use_subagent", words), ToolMessage("c2", "look_up", "周六晴，适合出门走走")
    opened = opening("t1", said("去哪", message_id="q"), at=NOW)
    answer = AssistantMessage(f"**{words}**\n\n| a |\n|-|")
    made = [
        RequestMade(
            turn_id=turn_id, model="m", outcome="ok", seconds=1, at=NOW, run=f"{turn_id}/1/c1", step=1, message=message
        )
        for turn_id, message in (("t1", AssistantMessage(words)), ("t1", None), ("t0", AssistantMessage(words)))
    ]
    sends = (*said_by("t1", NOW, words), *said_by("t1", NOW + 1, "表格", "own-2"))
    calling = AssistantMessage("", (ask, ToolCall("c2", "look_up", "{}")))
    batches.write(put(opening("t0", said("?", message_id="q0"), at=NOW - 1)))
    batches.write(put(opened, step("t1", 1, calling), step("t1", 2, answer), *made))
    batches.write(put(*(began("t1", 1, one.call_id, one.name) for one in results)))
    batches.write(put(*(ended("t1", one, 1) for one in results), *sends, closing(opened, calling, *results, answer)))
    batches.write(put(MessageErased(GROUP, "own-t1")))
    kept = rows(database)
    assert kept.count("香山公园") == 1  # of another turn
    assert (kept.count("| a |"), kept.count("适合出门走走")) == (2, 2)
    batches.write(put(MessageErased(GROUP, "own-2"), MessageErased(GROUP, "own-2")))
    kept = rows(database)
    assert (kept.count("| a |"), kept.count("表格"), kept.count("适合出门走走")) == (0, 0, 2)
    assert [round_.messages[-1] for round_ in told(database).rounds] == [AssistantMessage("[已撤回]")]


def said_by(turn_id: str, at: float, words: str = "去香山", message_id: str = "") -> list[Entry]:
    """Its answer, as QQ has it."""
    message_id = message_id or f"own-{turn_id}"
    action, send_id = SendMessage(GROUP, (Text(words),)), f"{turn_id}-{message_id}"
    sent = SendQueued(send_id=send_id, turn_id=turn_id, action=action, final=True, at=at, state=SendState.SENDING)
    return [sent, SendChanged(send_id=send_id, state=SendState.CONFIRMED, at=at, message_id=message_id)]


def test_a_recalled_message_of_a_draft_leaves_its_line_and_the_draft_and_no_other_ones(
    batches: EntryBatches, database: Database
) -> None:
    """Both pieces of draft 7 were published, in one line each; the same words are in draft 71."""
    opened = turn("t1", ASKED)
    entries: list[Entry] = [opened]
    for number, place, words in ((7, 1, "霜降那天去香山"), (7, 2, "记得带上雨伞"), (71, 1, "霜降那天去香山")):
        line = said(words, user=BOT, message_id=published_line(number, NOW + place))
        draft, sent = f"{draft_id(number)}b-{place}", f"{published_id(number)}b-{place}"
        confirmed = SendChanged(send_id=sent, state=SendState.CONFIRMED, at=NOW, message_id=f"q{number}-{place}")
        entries += [sending(draft, "t1", words, state=SendState.PUBLISHED), sending(sent, "t1", words), confirmed]
        entries.append(MessageObserved(line, overheard=True))
    batches.write(put(*entries, MessageErased(GROUP, "q7-1")))
    with database.reading() as connection:
        drafts = connection.execute(select(sends_table.c.send_id, sends_table.c.segments)).all()
        lines = connection.execute(select(messages.c.message_id, messages.c.segments, messages.c.erased)).all()
    blank = {row.send_id for row in drafts if row.segments == redaction.BLANK}
    assert blank == {"draft-7-b-1", "published-7-b-1"}
    assert [row.message_id for row in lines if row.erased] == [published_line(7, NOW + 1)]
    assert sum("霜降" in row.segments for row in lines) == 1
