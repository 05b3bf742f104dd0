"""Folders and the journal, on a real disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.tables import REVISIONS
from bot.cli.checks import Check, Outcome
from bot.cli.doctor import storage
from bot.cli.doctor.storage import check_folder, check_folders, check_store
from bot.core.language import Language, text_in
from config.loading import load_settings
from config.settings import Settings


def settings(folder: Path, **more: str) -> Settings:
    environ = {"STORE_URL": f"sqlite:///{folder}/frostagent.db", "MEDIA_DIR": str(folder / "media"), **more}
    return load_settings(environ=environ, env_file=None, service=False)[0]


def store(folder: Path, **more: str) -> Check:
    (check,) = check_store(settings(folder, **more))
    return check


def make_journal(folder: Path) -> Path:
    file = folder / "frostagent.db"
    database = Database(f"sqlite:///{file}", migrate=migrate)
    database.connect().close()
    database.close()
    return file


def test_a_new_group_of_which_no_owner_has_heard_is_told(tmp_path: Path) -> None:
    with closing(sqlite3.connect(make_journal(tmp_path))) as journal, journal:
        for where, mode in (("1:group:4242", "asking"), ("1:group:5252", "asked")):
            journal.execute(
                "INSERT INTO place_settings (conversation, name, value) VALUES (?, 'mode', ?)", (where, mode)
            )
    _, told = check_store(settings(tmp_path))
    assert (told.outcome, "[4242]" in told.said) == (Outcome.WARNING, True)


@pytest.mark.parametrize(
    ("owners", "mode", "petition", "expected"),
    [
        ("", "shadow", "{}", ["drafts", "requests"]),
        ("", "live", "", []),
        ("999", "shadow", "{}", []),
    ],
)
def test_drafts_and_requests_that_no_owner_can_read_are_told(
    tmp_path: Path, owners: str, mode: str, petition: str, expected: list[str]
) -> None:
    with closing(sqlite3.connect(make_journal(tmp_path))) as journal, journal:
        rows = [("1:group:4242", "mode", mode)]
        rows += [(f"1:private:{who}", "petition", petition) for who in (7, 8)]
        journal.executemany("INSERT INTO place_settings (conversation, name, value) VALUES (?, ?, ?)", rows)
    _, *told = check_store(settings(tmp_path, BOT_OWNERS=owners))
    assert [check.name for check in told] == expected
    assert [check.said[-1] for check in told[1:]] == ["2" for _ in expected[1:]]


def test_folders_that_can_be_written_or_made_are_well_and_nothing_is_left_there(tmp_path: Path) -> None:
    checks = check_folders(settings(tmp_path))
    assert [check.outcome for check in checks] == [Outcome.OK] * 2
    assert "can be written" in checks[0].said
    assert "can be created" in checks[1].said
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check = check_folder(tmp_path / "file" / "data")
    assert check.outcome is Outcome.PROBLEM
    assert "chown" in check.fix


def test_a_disk_that_is_full_or_nearly_is_told(tmp_path: Path) -> None:
    assert check_folder(tmp_path, little=0, too_little=0).outcome is Outcome.OK
    assert check_folder(tmp_path, little=2**70, too_little=0).outcome is Outcome.WARNING
    assert check_folder(tmp_path, little=2**70, too_little=2**70).outcome is Outcome.PROBLEM


def test_a_journal_that_is_not_there_yet_is_well_and_is_not_made(tmp_path: Path) -> None:
    assert store(tmp_path).outcome is Outcome.OK
    assert not list(tmp_path.iterdir())


def test_a_current_journal_is_well(tmp_path: Path) -> None:
    make_journal(tmp_path)
    assert store(tmp_path).outcome is Outcome.OK
    assert REVISIONS[-1] in store(tmp_path).said


def test_an_empty_file_is_well(tmp_path: Path) -> None:
    (tmp_path / "frostagent.db").touch()
    assert "create its tables" in store(tmp_path).said


def test_a_journal_of_a_newer_version_is_a_problem(tmp_path: Path) -> None:
    connection = sqlite3.connect(make_journal(tmp_path))
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert store(tmp_path).outcome is Outcome.PROBLEM
    assert "newer" in store(tmp_path).said


def test_an_older_journal_is_a_warning_and_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_journal(tmp_path)
    monkeypatch.setattr(storage, "REVISIONS", (*REVISIONS, "9999"))
    assert store(tmp_path).outcome is Outcome.WARNING
    assert [file.name for file in tmp_path.glob("*.bak*")] == []


def test_a_journal_before_the_baseline_is_a_problem_that_says_how_to_bring_it_up(tmp_path: Path) -> None:
    connection = sqlite3.connect(make_journal(tmp_path))
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '0014'")
    connection.close()
    assert store(tmp_path).outcome is Outcome.PROBLEM
    assert "its schema is 0014" in store(tmp_path).said
    assert "更早版本" in text_in(Language.CHINESE, store(tmp_path).said)
    assert "git checkout b14ad6af" in store(tmp_path).fix
    assert "先用提交 b14ad6af 启动一次" in text_in(Language.CHINESE, store(tmp_path).fix)


def test_a_damaged_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "frostagent.db").write_bytes(b"no database at all" * 100)
    check = store(tmp_path)
    assert check.outcome is Outcome.PROBLEM
    assert "not a database" in check.said
