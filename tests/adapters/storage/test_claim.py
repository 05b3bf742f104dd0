"""One process has a journal; whoever comes second is told who, and what a dead one had is free at once."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from adapters.storage import claim, store
from adapters.storage.claim import FileClaim, JournalTaken, holder_of
from adapters.storage.database import Database
from frostagent.types.errors import ConfigError
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import heard
from tests.adapters.storage.killed import killed_in
from tests.fakes import until


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "PATIENCE", 0.1)
    monkeypatch.setattr(claim, "PAUSE", 0.01)


def test_a_second_claim_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "frost.db"
    first, second = FileClaim(file), FileClaim(file)
    assert first.take() is None
    first.follow()
    assert first.take() is None  # it has it already
    with pytest.raises(
        JournalTaken, match=rf"in use \({file}\) by another process \(pid {os.getpid()}\)\. Stop that one"
    ):
        second.take()
    assert holder_of(file) == f" (pid {os.getpid()})"
    first.release(whole=True)
    assert list(tmp_path.iterdir()) == []
    assert holder_of(file) is None
    assert second.take() is None
    second.release(whole=False)
    assert (tmp_path / "frost.db-lock").exists()
    assert holder_of(file) is None  # its file is there, and nobody has it


def test_a_lock_that_is_removed_while_it_is_taken_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "frost.db-lock"
    really = fcntl.flock
    removed: list[Path] = []

    def remove_first(descriptor: int, how: int) -> None:
        if not removed:
            lock.unlink()  # as who ends properly does
            removed.append(lock)
        really(descriptor, how)

    monkeypatch.setattr("fcntl.flock", remove_first)
    ours = FileClaim(tmp_path / "frost.db")
    ours.take()
    assert ours.is_held
    ours.release(whole=True)


def test_what_was_moved_into_the_database_is_not_noted_as_being_in_the_log_alone(tmp_path: Path) -> None:
    file, lock = tmp_path / "frost.db", tmp_path / "frost.db-lock"
    ours = FileClaim(file)
    ours.take()

    def noted() -> int:
        ours.note()
        return int(lock.read_text().split()[2])

    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL").close()
        connection.execute("CREATE TABLE words (word)").close()
        ours.follow()
        before = noted()
        connection.execute("INSERT INTO words VALUES ('one')").close()
        assert noted() > before > 0
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        assert noted() == 0
        connection.execute("INSERT INTO words VALUES ('two')").close()
        assert noted() > 0
    ours.release(whole=True)


@pytest.mark.system
def test_what_a_killed_process_had_is_free_at_once_and_known_to_be_left(tmp_path: Path) -> None:
    file = killed_in(tmp_path)
    ours = FileClaim(file)
    left = ours.take()
    assert left is not None
    assert left.pages > 5
    assert left.changed == file.stat().st_mtime_ns
    ours.release(whole=True)


def test_a_lock_whose_file_somebody_removed_is_taken_again_or_is_somebody_elses_by_now(tmp_path: Path) -> None:
    file = tmp_path / "frost.db"
    first, second = FileClaim(file), FileClaim(file)
    first.take()
    assert not first.was_removed
    (tmp_path / "frost.db-lock").unlink()
    assert first.was_removed
    assert first.take() is None
    assert not first.was_removed
    (tmp_path / "frost.db-lock").unlink()
    second.take()
    with pytest.raises(JournalTaken):
        first.take()
    second.release(whole=True)


def test_where_the_file_system_has_no_locks_that_is_a_line_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_descriptor: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    ours = FileClaim(tmp_path / "frost.db")
    assert ours.take() is None
    assert ours.take() is None
    ours.follow()
    ours.note()
    assert not ours.was_removed
    assert holder_of(tmp_path / "frost.db") is None
    ours.release(whole=True)
    assert caplog.text.count("nothing keeps a second process from the journal") == 1
    assert "No locks available" in caplog.text


def test_a_disk_that_fails_is_not_taken_for_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int, _how: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("fcntl.flock", fail)
    with pytest.raises(OSError, match="Input/output error"):
        FileClaim(tmp_path / "frost.db").take()


def test_a_torn_file_of_a_lock_says_that_somebody_was_killed_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "frost.db-lock").write_text("12 ho")
    ours = FileClaim(tmp_path / "frost.db")
    assert ours.take() == claim.Traces(0, 0)
    ours.release(whole=True)


# --- the store, on both databases -----------------------------------------------------------------


async def test_a_journal_that_is_in_use_cannot_be_opened_a_second_time_but_read(url: str) -> None:
    async with opened(url) as first:
        assert await first.store.commit(heard(message_id="1"))
        with pytest.raises(ConfigError, match=rf"in use .* by another process \(pid {os.getpid()}\)"):
            async with opened(url):
                pass
        reading = Database(url, migrate=lambda _: None)
        assert reading.holder() == first.database.holder()
        assert str(os.getpid()) in str(reading.holder())
        with reading.connect() as connection:  # as `forget` does
            assert connection.scalar(text("SELECT count(*) FROM messages")) == 1
        reading.close()
        assert await first.store.commit(heard(message_id="2"))
    async with opened(url) as second:
        assert second.database.holder()
    assert second.database.holder() is None
    second.database.close()


async def test_who_lost_the_journal_to_another_process_is_told_and_ends(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WATCH", 0.05)
    ousted: list[JournalTaken] = []
    with pytest.RaisesGroup(JournalTaken, flatten_subgroups=True):
        async with opened(url, ousted=ousted.append) as first:
            assert await first.store.commit(heard(message_id="1"))
            other = Database(url, migrate=lambda _: None, owner=True)
            if first.database.file is not None:
                first.database.file.with_name("frost.db-lock").unlink()
            else:
                first.batches._connection.connection.driver_connection.close()  # type: ignore[union-attr]  # it has one
            with other.connect():
                await until(lambda: ousted)
                await until(lambda: False)
    other.close()
    other.release()
    assert len(ousted) == 1
    assert "by another process" in str(ousted[0])


async def test_a_connection_that_was_lost_is_had_again_with_the_lock_though_nobody_says_anything(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WATCH", 0.05)
    async with opened(postgres) as at:
        assert await at.store.commit(heard(message_id="1"))
        with at.database.reading() as connection:
            who = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = :o"
            mine = connection.scalar(text(f"SELECT {claim.LOCK_OBJECT}::oid"))
            connection.execute(text(who), {"o": mine}).all()
        await at.wait_told(2)
        assert at.told[1].startswith("The journal is written again")
        with at.database.reading() as connection:
            assert claim.holder_of_session(connection) == f" (pid {os.getpid()})"
