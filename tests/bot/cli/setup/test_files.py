"""Files that are written together or not at all."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli.setup.files import NewFile, read_text, write_files
from frostagent.types.errors import ConfigError


def everything(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_files_are_written_with_their_folders_for_their_owner_alone(tmp_path: Path) -> None:
    write_files([NewFile(tmp_path / ".env", "A=霜\n"), NewFile(tmp_path / "napcat" / "config" / "x.json", "{}")])
    assert everything(tmp_path) == [".env", "napcat", "napcat/config", "napcat/config/x.json"]
    assert (tmp_path / ".env").read_bytes() == "A=霜\n".encode()
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_nothing_is_changed_when_one_of_them_cannot_be_written(tmp_path: Path) -> None:
    old = tmp_path / ".env"
    old.write_text("old")
    (tmp_path / "napcat").write_text("a file where a folder should be")
    with pytest.raises(ConfigError, match=r"x\.json: cannot be written"):
        write_files([NewFile(old, "new"), NewFile(tmp_path / "napcat" / "x.json", "{}")])
    assert old.read_text() == "old"
    assert everything(tmp_path) == [".env", "napcat"]


def test_ctrl_c_in_the_middle_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def stopped_after_the_first() -> Iterator[NewFile]:
        yield NewFile(tmp_path / "a", "new")
        raise KeyboardInterrupt

    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_files(stopped_after_the_first())
    assert (tmp_path / "a").read_text() == "old"
    assert everything(tmp_path) == ["a"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / ".env").symlink_to("real")
    write_files([NewFile(tmp_path / ".env", "new")])
    assert (tmp_path / ".env").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_where_nothing_can_be_written_at_all_the_way_out_of_the_container_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(ConfigError, match="Run setup outside the container"):
        write_files([NewFile(tmp_path / ".env", "A=1")])


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError, match="a: cannot be written"):
        write_files([NewFile(tmp_path / "a", "text")])
    assert everything(tmp_path) == ["a"]


def test_a_missing_file_reads_as_none_and_a_folder_is_told(tmp_path: Path) -> None:
    assert read_text(tmp_path / "none") is None
    (tmp_path / "bytes").write_bytes(b"\xff")
    for wrong in (tmp_path, tmp_path / "bytes"):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_text(wrong)
