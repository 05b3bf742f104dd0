"""What others can read or write is told with its fix, on a real disk."""

from __future__ import annotations

from pathlib import Path

from bot.cli.checks import Check, Outcome
from bot.cli.doctor.storage import check_privacy
from tests.bot.cli.doctor.test_storage import settings


def told(folder: Path) -> list[Check]:
    return [
        check for check in check_privacy(settings(folder), env_file=folder / ".env") if check.outcome is not Outcome.OK
    ]


def test_files_with_secrets_that_others_read_are_named(tmp_path: Path) -> None:
    made = tmp_path / "data" / "tokens.env"
    made.parent.mkdir()
    for file in (tmp_path / ".env", made):
        file.touch()
        file.chmod(0o600)
    assert told(tmp_path) == []
    (tmp_path / ".env").chmod(0o640)
    made.chmod(0o604)
    assert [check.fix for check in told(tmp_path)] == [f"chmod 600 {tmp_path}/.env", f"chmod 600 {made}"]
    assert all(check.outcome is Outcome.WARNING for check in told(tmp_path))


def test_folders_that_others_write_are_named(tmp_path: Path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    media.chmod(0o777)
    tmp_path.chmod(0o755)
    (check,) = told(tmp_path)
    assert check.said == f"{media} can be written by everyone"


def test_without_a_file_there_is_nothing_to_read(tmp_path: Path) -> None:
    (check,) = check_privacy(settings(tmp_path), env_file=None)
    assert check.outcome is Outcome.OK
