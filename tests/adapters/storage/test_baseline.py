"""Which journals of the commit before are used, and which are refused before anything is written, by both databases and
by a worker of a cluster.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection, inspect, select, text

from adapters.storage.ahead import batches_for
from adapters.storage.baseline import BASELINE, COMMIT, OlderJournal
from adapters.storage.batches import Put
from adapters.storage.database import Database
from adapters.storage.leases import Lease, name_of
from adapters.storage.migrations import configuration, migrate
from adapters.storage.tables import REVISIONS, applied, messages, metadata, versions
from bot.core import codec
from bot.core.language import Language, text_in
from frostagent.types.messages import AssistantMessage, Message, ToolCall, UserMessage
from tests.adapters.storage.entries import heard
from tests.adapters.storage.schemas import Schemas

PLACE = "10001:group:4242"
ASKED = UserMessage("[提问 14:10]\n小明#1: 加群(123456789)", sources=("8",))
NOTE = UserMessage("[注]\n  你上面的回答没有送达: muted")
CALLED = AssistantMessage("", (ToolCall("1", "send_message", "{}"),))

OLDER: Mapping[str, tuple[Message, ...]] = {
    "account": (UserMessage("[提问]\n小明(77777): 你好"), AssistantMessage("好")),
    "quoted account": (UserMessage("[提问]\n小明#1: [引用 小红(33333) 的「嗯」] 好"), AssistantMessage("好")),
    "id in the heading": (UserMessage("[提问] 消息号 -8\n小明: 好"), AssistantMessage("好")),
    "no answer": (ASKED, AssistantMessage("(没有回答)")),
    "broken off": (ASKED, CALLED, AssistantMessage("(被打断了)")),
    "all said": (ASKED, AssistantMessage("(已用 send_message 回答)")),
    "noted": (ASKED, AssistantMessage("(noted)"), NOTE),
    "note on the delivery": (ASKED, AssistantMessage("好\n(前 2 条已送达，之后的没有送达: muted)")),
    "unconfirmed": (ASKED, AssistantMessage("好\n(没有得到 QQ 的确认，可能已送达，不要重复)")),
}

TODAY: Mapping[str, tuple[Message, ...]] = {
    "plain": (ASKED, AssistantMessage("小明(77777) 好")),
    "with a note": (ASKED, AssistantMessage("好"), NOTE),
    "without an id": (UserMessage("[提问]\n小明(77777): 你好", sources=("",)), AssistantMessage("好")),
    "said of it": (ASKED, AssistantMessage("他写了“(没有回答)”，还有 (没有送达: muted) 这句。")),
    "nothing said": (ASKED, AssistantMessage("")),
    "no words of ours": (UserMessage("早"), AssistantMessage("好")),
}


@pytest.fixture
def postgres(schemas: Schemas) -> Iterator[str]:
    """The url of an empty schema: how it is brought to this version is what is tested here."""
    with schemas.empty() as url:
        yield url


def make_baseline(connection: Connection) -> None:
    """The tables of the baseline, empty, in place of those of today."""
    metadata.drop_all(connection)
    versions.drop(connection)
    command.upgrade(configuration(connection), BASELINE)


def prepared(url: str, revision: str = BASELINE, *rows: tuple[str, Mapping[str, object]]) -> None:
    """A journal as an earlier version left it, with the tables of the baseline."""
    database = Database(url, migrate=migrate)
    with database.connect() as connection, connection.begin():
        make_baseline(connection)
        for statement, values in rows:
            connection.execute(text(statement), values)
        connection.execute(text("UPDATE alembic_version SET version_num = :it"), {"it": revision})
    database.close()


def told(*messages: Message, closed: float = 2.0, turn_id: str = "t1") -> tuple[str, Mapping[str, object]]:
    statement = (
        'INSERT INTO turns (turn_id, conversation, asker, question, "user", round, opened, closed)'
        " VALUES (:turn_id, :place, 777, '{}', '{}', :round, 1, :closed)"
    )
    return statement, {"turn_id": turn_id, "place": PLACE, "round": codec.write(messages), "closed": closed}


def window(summary: str = "", first_turn: int = 0) -> tuple[str, Mapping[str, object]]:
    statement = "INSERT INTO windows (conversation, first_turn, summary) VALUES (:place, :first_turn, :summary)"
    return statement, {"place": PLACE, "first_turn": first_turn, "summary": summary}


def revision(connection: Connection) -> str:
    return str(connection.scalar(text("SELECT version_num FROM alembic_version")))


def opens(url: str) -> None:
    database = Database(url, migrate=migrate, owner=True)
    with database.connect() as connection:
        assert revision(connection) == REVISIONS[-1]
    database.close()
    database.release()


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mode) for file in folder.iterdir()}


def refused(url: str, *, lease: Lease | None = None) -> OlderJournal:
    """The refusal; nothing is made, changed or left behind."""
    database = Database(url, migrate=migrate, owner=True, lease=lease)
    before = found(database)
    with pytest.raises(OlderJournal) as caught:
        database.connect()
    database.close()
    assert not database.ready
    database.release()
    assert found(database) == before
    (problem,) = caught.value.problems
    assert problem.name == "STORE_URL"
    assert f"git checkout {COMMIT}" in problem.fix
    assert f"git checkout {COMMIT}" in text_in(Language.CHINESE, problem.fix)
    assert "docs/zh/upgrade.md" in text_in(Language.CHINESE, problem.fix)
    return caught.value


def found(database: Database) -> object:
    if database.file is not None:
        return files(database.file.parent)
    with database.reading() as connection:
        names = sorted(inspect(connection).get_table_names())
        rows = {name: connection.execute(text(f"SELECT count(*), max(xmin::text) FROM {name}")).all() for name in names}
        state = revision(connection), rows
    database.close()
    return state


@pytest.mark.parametrize("name", TODAY)
def test_a_journal_at_the_baseline_is_stamped_and_used(url: str, name: str) -> None:
    prepared(url, BASELINE, told(*TODAY[name]), window("小明#1 喜欢猫 (2024)"))
    opens(url)
    opens(url)


def test_a_worker_of_a_cluster_goes_on_with_a_journal_at_the_baseline(postgres: str) -> None:
    prepared(postgres, BASELINE, told(*TODAY["plain"]))
    database = Database(postgres, migrate=migrate, owner=True, lease=Lease(name_of(0)))
    with database.connect() as connection:
        assert revision(connection) == REVISIONS[-1]
    database.release()
    database.close()


@pytest.mark.parametrize("older", ["0001", "0003", "0014"])
def test_an_older_journal_is_refused_before_anything_is_written(url: str, older: str) -> None:
    prepared(url, older)
    assert f"its schema is {older}, this version reads {BASELINE} and later" in refused(url).what


def test_nothing_is_written_into_an_older_journal_whose_bot_was_killed(sqlite: str) -> None:
    """Its log would be moved into the file by whoever closes it last."""
    prepared(sqlite, "0014")
    file = Database(sqlite, migrate=migrate).file
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        with connection:
            connection.execute("INSERT INTO windows (conversation) VALUES ('only in the log')")
        log = {suffix: Path(f"{file}{suffix}").read_bytes() for suffix in ("", "-wal")}
    for suffix, content in log.items():
        Path(f"{file}{suffix}").write_bytes(content)
    database = Database(sqlite, migrate=migrate, owner=True)
    with pytest.raises(OlderJournal):
        database.connect()
    database.close()
    assert {suffix: Path(f"{file}{suffix}").read_bytes() for suffix in log} == log
    assert {one.name for one in file.parent.iterdir()} <= {"frost.db", "frost.db-wal", "frost.db-shm"}


def test_a_worker_of_a_cluster_refuses_an_older_journal_and_makes_no_lease(postgres: str) -> None:
    prepared(postgres, "0014")
    refused(postgres, lease=Lease(name_of(0)))


@pytest.mark.parametrize("name", OLDER)
def test_a_journal_with_a_round_in_an_older_form_is_refused(url: str, name: str) -> None:
    prepared(url, BASELINE, told(*OLDER[name]), told(*TODAY["plain"], turn_id="t2", closed=3.0))
    refusal = refused(url)
    assert f"1 conversations in a form of early versions ({PLACE})" in refusal.what
    assert "/reset" in refusal.fix.zh


SPEAKER = "INSERT INTO speakers (conversation, number, user_id, name) VALUES (:place, 1, 77777, '小明')"


def test_a_journal_whose_summary_names_a_member_by_account_is_refused(url: str) -> None:
    prepared(url, BASELINE, window("小明(77777) 喜欢猫，小红#2 不喜欢"), (SPEAKER, {"place": PLACE}))
    assert PLACE in refused(url).what.zh


def test_a_number_in_a_summary_that_is_no_members_is_no_reason(url: str) -> None:
    prepared(url, BASELINE, window("小明#1 说加群(123456789)"), (SPEAKER, {"place": PLACE}))
    opens(url)


def test_what_no_prompt_tells_any_more_is_no_reason(url: str) -> None:
    """So /reset helps, as the refusal says."""
    prepared(url, BASELINE, told(*OLDER["account"]), window(first_turn=2))
    opens(url)


def test_a_round_that_ended_after_the_first_of_the_window_is_told(url: str) -> None:
    first = told(*OLDER["account"], closed=9.0), told(*TODAY["plain"], turn_id="t2", closed=3.0)
    prepared(url, BASELINE, *first, window(first_turn=2))
    refused(url)


def test_a_row_that_nobody_can_read_is_no_reason(url: str) -> None:
    statement, values = told(ASKED)
    prepared(url, BASELINE, (statement, {**values, "round": '[{"type":"later","text":"(noted)"}]'}))
    opens(url)


def with_a_line(url: str, then: Callable[[Database], None] = lambda _: None) -> None:
    """A journal beside which one entry is written ahead and not applied, as a killed bot leaves it."""
    database = Database(url, migrate=migrate)
    assert database.file is not None
    batches = batches_for(database, stamp=str)
    batches.write([Put(heard(message_id="1"), 1.0)])
    assert batches.write_at_once([Put(heard(message_id="2"), 2.0)])
    batches.close()
    then(database)
    database.close()


def ids(url: str) -> list[str]:
    database = Database(url, migrate=migrate, owner=True)
    batches = batches_for(database, stamp=str)
    batches.settle()
    with database.reading() as connection:
        told = list(connection.scalars(text("SELECT message_id FROM messages ORDER BY id")))
    batches.close()
    database.close()
    database.release()
    return told


def stamp_baseline(database: Database) -> None:
    with database.connect() as connection, connection.begin():
        kept = {table: connection.execute(select(table)).mappings().all() for table in (messages, applied)}
        make_baseline(connection)
        for table, rows in kept.items():
            names = {column["name"] for column in inspect(connection).get_columns(table.name)}
            for row in rows:
                connection.execute(table.insert(), {name: row[name] for name in names})


def test_entries_that_the_commit_before_wrote_ahead_are_refused(sqlite: str) -> None:
    with_a_line(sqlite, stamp_baseline)
    assert "has 1 entries of an earlier version that are not in its tables yet (frost.db-ahead)" in refused(sqlite).what


def test_entries_of_this_version_are_applied_after_a_crash(sqlite: str) -> None:
    with_a_line(sqlite)
    assert ids(sqlite) == ["1", "2"]


def test_lines_that_are_applied_are_no_reason(sqlite: str) -> None:
    with_a_line(sqlite)
    database = Database(sqlite, migrate=migrate)
    file = database.file
    assert file is not None
    lines = Path(f"{file}-ahead").read_bytes()
    assert ids(sqlite) == ["1", "2"]
    Path(f"{file}-ahead").write_bytes(lines + b"9999999999999999 half a li")  # torn: promised to nobody
    stamp_baseline(database)
    database.close()
    assert ids(sqlite) == ["1", "2"]


def test_a_damaged_file_is_left_to_whoever_opens_it(tmp_path: Path) -> None:
    file = tmp_path / "frost.db"
    file.write_bytes(b"no database at all" * 100)
    database = Database(f"sqlite:///{file}", migrate=migrate)
    with pytest.raises(Exception, match="not a database"):
        database.connect()
    database.close()
