"""What people said is for the bot's account only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.storage.files import make_file, make_folder, make_private
from adapters.storage.migrations import migrate
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import heard


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def _generous() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


async def test_a_new_journal_is_its_owners_only_with_all_that_lies_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "data" / "frost.db"
    async with opened(f"sqlite:///{file}") as at:
        assert await at.store.commit(heard())
        files = sorted(file.parent.iterdir())
        names = [path.name.removeprefix("frost.db") for path in files]
        assert names == ["", "-ahead", "-lock", "-shm", "-wal"]
        assert [oct(mode(path)) for path in files] == ["0o600"] * 5
        assert mode(file.parent) == mode(tmp_path / "deep") == 0o700


async def test_an_older_journal_is_closed_to_others_with_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    file = tmp_path / "frost.db"
    os.chmod(tmp_path, 0o755)  # noqa: PTH101  # whose folder it is, we do not know
    async with opened(f"sqlite:///{file}"):
        pass
    copy = tmp_path / "frost.db.bak-0001"
    copy.touch()
    for path in (file, copy):
        path.chmod(0o644)
    async with opened(f"sqlite:///{file}", migrate=migrate):
        assert mode(file) == mode(copy) == 0o600
        assert mode(tmp_path) == 0o755
    assert "only their owner can read these now: frost.db, frost.db.bak-0001" in caplog.text
    caplog.clear()
    async with opened(f"sqlite:///{file}"):
        pass
    assert "only their owner" not in caplog.text


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("something")
    make_file(file)
    make_folder(tmp_path)
    assert file.read_text() == "something"
    with pytest.raises(OSError, match="File exists"):
        make_folder(file)


def test_only_files_that_are_there_and_open_to_others_are_changed(tmp_path: Path) -> None:
    secret, open_one, link = tmp_path / "secret", tmp_path / "open", tmp_path / "link"
    for path, rights in ((secret, 0o600), (open_one, 0o640)):
        path.touch()
        path.chmod(rights)
    link.symlink_to(open_one)
    assert make_private([secret, open_one, tmp_path / "none", link, tmp_path]) == [open_one]


def test_a_file_that_cannot_be_closed_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o644)

    def refuse(_path: Path, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    assert make_private([file]) == []
    assert "others can read" in caplog.text
