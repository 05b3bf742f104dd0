"""What is missing after a kill is said, and nothing is said where all is there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from adapters.storage import store
from adapters.storage.claim import FoundFile, SelfCheck, Traces, describe_loss
from adapters.storage.notices import LOG_CUT, LOG_EMPTIED, LOG_GONE
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import heard
from tests.adapters.storage.killed import killed_in
from tests.fakes import until

WORDS = "The journal is not whole"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SELF_CHECK", 0.01)


def log_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")


def leave(_file: Path) -> None:
    """Nothing happens to it."""


def remove(file: Path) -> None:
    log_of(file).unlink()


def empty(file: Path) -> None:
    log_of(file).write_bytes(b"")


def cut(file: Path) -> None:
    log = log_of(file).read_bytes()
    log_of(file).write_bytes(log[: 32 + 3 * 4120])


def flip(file: Path) -> None:
    log = bytearray(log_of(file).read_bytes())
    log[32 + 24 + 100] ^= 1
    log_of(file).write_bytes(log)


def read_by_another_program(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT count(*) FROM messages").fetchone() == (5,)
    assert not log_of(file).exists()


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (leave, ""),
        (read_by_another_program, ""),
        (remove, "its write-ahead log is gone), after the bot was killed"),
        (empty, "its write-ahead log was emptied"),
        (cut, "its write-ahead log is damaged or was cut off: "),
        (flip, "its write-ahead log is damaged or was cut off: 0 of "),
    ],
)
async def test_what_became_of_the_log_of_a_killed_process_is_told_once(
    tmp_path: Path, happens: Callable[[Path], None], told: str
) -> None:
    file = killed_in(tmp_path)
    happens(file)
    async with opened(f"sqlite:///{file}") as at:
        assert at.database.was_killed
        assert await at.store.commit(heard(message_id="new"))
        if told:
            (line,) = await at.wait_told(1)
            assert line.startswith(f"{WORDS} ({file}: {told}")
            assert "go back to a backup" in line
        assert len(at.told) == bool(told)
    async with opened(f"sqlite:///{file}") as at:
        assert not at.database.was_killed
        assert at.told == []


async def test_a_log_that_was_moved_into_the_database_before_the_kill_is_not_missed(tmp_path: Path) -> None:
    file = killed_in(tmp_path, messages=700)  # more than one checkpoint
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    async with opened(f"sqlite:///{file}") as at:
        assert await at.store.commit()
        assert at.told == []


async def test_a_database_that_was_damaged_is_told_after_a_kill(tmp_path: Path) -> None:
    file = killed_in(tmp_path, messages=300)
    with closing(sqlite3.connect(file)) as other:
        (root,) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
        pages = other.execute("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'").fetchall()
    content = bytearray(file.read_bytes())
    place = (pages[len(pages) // 2][0] - 1) * 4096
    assert root != pages[len(pages) // 2][0]
    content[place + 8 : place + 400] = b"\xff" * 392
    file.write_bytes(content)
    async with opened(f"sqlite:///{file}") as at:
        (line,) = await at.wait_told(1)
    assert line.startswith(f"The journal is damaged ({file}: ")
    assert "Stop the bot and go back to a backup" in line


async def test_a_whole_database_is_said_to_be_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    file = killed_in(tmp_path)
    async with opened(f"sqlite:///{file}") as at:
        await until(lambda: "nothing is wrong with it" in caplog.text)
    assert at.told == []


def test_only_what_nobody_else_can_have_moved_is_missing() -> None:
    left = Traces(pages=9, changed=7)
    assert describe_loss(left, FoundFile(changed=7, log=100), good=9) is None
    assert describe_loss(left, FoundFile(changed=8, log=-1), good=0) is None
    assert describe_loss(left, FoundFile(changed=7, log=-1), good=0) == LOG_GONE.fill()
    assert describe_loss(left, FoundFile(changed=7, log=0), good=0) == LOG_EMPTIED.fill()
    assert describe_loss(left, FoundFile(changed=7, log=100), good=8) == LOG_CUT.fill(good=8, pages=9)
    assert describe_loss(Traces(0, 0), FoundFile(changed=0, log=-1), good=0) is None


def test_a_check_has_its_time_and_can_be_ended(tmp_path: Path) -> None:
    file = killed_in(tmp_path, messages=1)
    check = SelfCheck(file)
    check.stop()
    assert check.run() == ""
    (tmp_path / "no.db").write_bytes(b"no database at all" * 100)
    assert SelfCheck(tmp_path / "no.db").run() == "file is not a database"
