"""Backups and restores that are killed at every step: real processes that end in the middle."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from adapters.storage.backup import BackupError, back_up
from adapters.storage.database import Database, describe_error
from adapters.storage.migrations import migrate
from tests.adapters.storage.killed import killed, restore_from
from tests.adapters.storage.test_backup import ids_in, journal_in, made, needs_posix, put_back


@needs_posix
@pytest.mark.timeout(300)
def test_a_restore_that_is_killed_anywhere_has_done_nothing_or_is_completed(tmp_path: Path) -> None:
    old, now = tmp_path / "old", tmp_path / "now"
    journal_in(old, "old", ahead="old ahead")
    (old / "personas").mkdir()
    (old / "personas" / "frost.md").write_text("old")
    target = made(old / "frost.db", tmp_path / "b.tgz", old / "personas" / "frost.md")
    journal_in(now, "now", ahead="now ahead")
    (now / "personas").mkdir()
    (now / "personas" / "frost.md").write_text("now")
    states, place = [], 0
    while True:
        here = tmp_path / "here"
        shutil.copytree(now, here)
        cut_off = killed(place, partial(restore_from, here / "frost.db", target), here)
        pending = (here / "frost.db-restore" / "plan.json").exists()
        if pending:  # a command that does not have the journal leaves it alone
            with pytest.raises(BackupError, match="cut off before its end"):
                made(here / "frost.db", here / "c.tgz")
            other = Database(f"sqlite:///{here}/frost.db", migrate=migrate)
            with pytest.raises(BackupError, match="run restore again") as error:
                other.connect()
            assert "cut off" in describe_error(error.value)
        elif place % 6 == 5:  # nothing but a second try
            put_back(here / "frost.db", target, stamp="again")
            assert ids_in(here / "frost.db") == ["old", "old ahead"]
            shutil.rmtree(here)
            place += 1
            continue
        ids = ids_in(here / "frost.db")
        state = (here / "personas" / "frost.md").read_text()
        assert ids == [state, f"{state} ahead"]
        if state == "old":
            aside = here / "frost.db.before-restore-then"
            assert (aside / "personas" / "frost.md").read_text() == "now"
            assert sorted(file.name for file in aside.iterdir() if "db" in file.name)[:2] == [
                "frost.db",
                "frost.db-ahead",
            ]
            assert not (here / "frost.db-restore").exists()
        states.append(state)
        shutil.rmtree(here)
        if not cut_off:
            break
        place += 1
    assert states == sorted(states)  # first nothing is done, from some place on all of it
    assert {*states} == {"now", "old"}


@needs_posix
def test_a_backup_that_is_killed_anywhere_leaves_the_older_one(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "data", "1")
    (tmp_path / "b.tgz").write_text("precious")
    work = partial(back_up, journal, tmp_path / "b.tgz", files=(), version="1.0", force=True)
    place = 0
    while killed(place, work, tmp_path):
        if (tmp_path / "b.tgz").read_bytes() != b"precious":
            put_back(tmp_path / f"new{place}" / "frost.db", tmp_path / "b.tgz")
        place += 1
    assert place > 3
    put_back(tmp_path / "new" / "frost.db", tmp_path / "b.tgz")
    assert ids_in(journal) == ["1"]
