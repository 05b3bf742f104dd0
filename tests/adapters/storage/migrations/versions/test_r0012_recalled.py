"""The words of what was recalled under an older version, in both databases."""

from __future__ import annotations

from typing import Any

from alembic.migration import MigrationContext
from alembic.operations import Operations
from msgspec.structs import replace
from sqlalchemy import select

from adapters.storage import reads
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.migrations.versions import r0011_tools, r0012_recalled
from adapters.storage.tables import messages, turns
from bot.domain import codec
from bot.domain.chat import UserMessage
from bot.domain.events import MessageReceived
from bot.domain.journal import Entry, WindowMoved
from bot.domain.segments import Text
from tests.adapters.storage.entries import asked, closing, heard, opening, put, read
from tests.fakes import GROUP, said

OTHER = replace(GROUP, session_id=1)
TOLD = UserMessage("[群聊记录]\n阿澈#1: 周六去香山吧\n[提问]\n小明#2: 行吗", sources=("7", "8"))
GONE = UserMessage("[群聊记录]\n阿澈#1: [已撤回]\n[提问]\n小明#2: 行吗", sources=("7", "8"))


def recalled_before(database: Database, *ids: str) -> None:
    """As it was done then: the message alone, and then the upgrade."""
    with database.connect() as connection, connection.begin():
        gone = messages.c.message_id.in_(ids) & (messages.c.conversation == str(GROUP)) & (messages.c.nickname != "新")
        connection.execute(messages.update().where(gone).values(segments="[]", erased=True))
        with Operations.context(MigrationContext.configure(connection)):
            r0012_recalled.upgrade()


def rows(database: Database, column: Any) -> list[str]:
    with database.reading() as connection:
        return list(connection.scalars(select(column).order_by(turns.c.id)))


def words(database: Database) -> list[str]:
    """What each turn's question says."""
    asked = [codec.read(MessageReceived, row) for row in rows(database, turns.c.question)]
    return ["".join(part.text for part in one.segments if isinstance(part, Text)) for one in asked]


def test_a_question_leaves_its_row_and_no_other_does(batches: EntryBatches, database: Database) -> None:
    here, there = said("去香山", message_id="8"), said("在哪", message_id="8", where=OTHER)
    batches.write(put(asked(message_id="8"), opening("t1", here), asked(message_id="9"), opening("t2", said("hi"))))
    batches.write(put(asked(message_id="8", where=OTHER), opening("t3", there)))
    batches.write(put(asked(message_id="10"), opening("t4", said("去吗", message_id="10"))))
    before = rows(database, turns.c.user)
    recalled_before(database, "8", "10")
    assert words(database) == ["[已撤回]", "hi", "在哪", "[已撤回]"]
    assert rows(database, turns.c.user) == before
    (row, *_) = rows(database, turns.c.question)
    assert codec.read(MessageReceived, row) == replace(here, segments=(Text("[已撤回]"),))


def test_a_line_leaves_the_rounds_that_tell_it_and_a_summary_of_them_is_given_up(
    batches: EntryBatches, database: Database
) -> None:
    said_so: list[Entry] = [heard(message_id="7"), asked(message_id="8")]
    for name, user in (("t1", TOLD), ("t2", UserMessage("小明#2: hi", sources=("6",)))):
        one = replace(opening(name), user=user)
        said_so += [one, closing(one)]
    batches.write(put(*said_so, WindowMoved(GROUP, "t2", "t2", "阿澈说周六去香山")))
    recalled_before(database, "66")
    assert read(database, reads.remember, GROUP).summary
    recalled_before(database, "7")
    told = read(database, reads.remember, GROUP)
    assert (told.summary, told.rounds[0].messages[0], len(told.rounds)) == ("", GONE, 2)
    assert "香山" not in "".join(rows(database, turns.c.user))


def test_quotations_of_it_leave_all_turns_of_its_conversation_and_those_of_no_other(
    batches: EntryBatches, database: Database
) -> None:
    """As they were told before a round said which message its quotations are of."""
    quoting = UserMessage("小明#2 ↩阿澈#1「周六去香山吧」: 不去", sources=("9",))
    other = UserMessage("小明#2 ↩阿澈#1「周日去香山吧」: 不去", sources=("9",))
    for where in (GROUP, OTHER):
        said_so: list[Entry] = [heard(message_id="7", where=where)]
        for number, user in enumerate((quoting, TOLD, quoting, other)):
            one = replace(opening(f"{where}{number}", said("不去", where=where)), user=user)
            said_so += [one, closing(one)]
        batches.write(put(*said_so))
    recalled_before(database, "7")
    unquoted = replace(quoting, text="小明#2 ↩阿澈#1「[已撤回]」: 不去")
    told = [codec.read(UserMessage, row) for row in rows(database, turns.c.user)]
    assert told == [unquoted, GONE, unquoted, other, quoting, TOLD, quoting, other]


def test_a_summary_of_other_rounds_stays_where_only_a_question_changes(
    batches: EntryBatches, database: Database
) -> None:
    one, two = opening("t1", said("去香山", message_id="8")), opening("t2")
    batches.write(
        put(asked(message_id="8"), one, closing(one), two, closing(two), WindowMoved(GROUP, "t2", "", "旧事"))
    )
    recalled_before(database, "8")
    assert (words(database)[0], read(database, reads.remember, GROUP).summary) == ("[已撤回]", "旧事")


def test_of_messages_that_share_an_id_none_is_taken_for_the_recalled_one(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(asked(message_id="0"), opening("t1", said("去香山", message_id="0"))))
    batches.write(put(asked(message_id="0", name="新"), opening("t2", said("下雨吗", message_id="0"))))
    recalled_before(database, "0")
    assert words(database) == ["去香山", "下雨吗"]


def test_what_cannot_be_read_and_many_turns_stop_nothing(
    batches: EntryBatches, database: Database, monkeypatch: Any
) -> None:
    monkeypatch.setattr(r0012_recalled, "AT_ONCE", 2)
    for number in range(7):
        batches.write(put(asked(message_id="8"), opening(f"t{number}", said("去香山", message_id="8"))))
    with database.connect() as connection, connection.begin():
        connection.execute(turns.update().where(turns.c.turn_id == "t3").values(question="x", user="y", round="z"))
    recalled_before(database, "8")
    assert rows(database, turns.c.question)[3] == "x"
    assert sum("已撤回" in row for row in rows(database, turns.c.question)) == 6


def test_it_follows_the_eleventh() -> None:
    assert (r0012_recalled.revision, r0012_recalled.down_revision) == ("0012", r0011_tools.revision)
