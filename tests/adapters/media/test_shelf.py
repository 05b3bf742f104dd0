from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest

from adapters.broker.partitions import ClusterPartition
from adapters.media.folder import FOLDER, UNDONE, DraftFiles, MediaFolder
from frostagent.types.errors import MediaError


async def test_what_is_kept_is_found_by_the_next_process_until_it_is_not_wanted_any_more(tmp_path: Path) -> None:
    root = tmp_path / "media"
    shelf = DraftFiles(root)
    await shelf.keep_only(())  # there is no folder yet
    assert await shelf.find("1-a") == b""
    for name in ("1-a", "2-b"):
        await shelf.keep(name, name.encode())
    later = DraftFiles(root)
    assert (await later.find("1-a"), await later.find("2-b")) == (b"1-a", b"2-b")
    (root / FOLDER / f"3-c{UNDONE}").write_bytes(b"half")
    await later.keep_only({"2-b"})
    assert [file.name for file in (root / FOLDER).iterdir()] == ["2-b"]


async def test_a_share_deletes_nothing_of_anothers(tmp_path: Path) -> None:
    first, second, alone = (
        DraftFiles(tmp_path, ClusterPartition(0, 2).suffix),
        DraftFiles(tmp_path, ClusterPartition(1, 2).suffix),
        DraftFiles(tmp_path),
    )
    for shelf in (first, second, alone):
        await shelf.keep("1-a", b"x")
    await second.keep_only(())
    assert [await shelf.find("1-a") for shelf in (first, second, alone)] == [b"x", b"", b"x"]


async def test_nobody_else_on_the_machine_reads_it(tmp_path: Path) -> None:
    await DraftFiles(tmp_path).keep("1-a", b"x")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / FOLDER, tmp_path / FOLDER / "1-a")]
    assert modes == [0o700, 0o600]


async def test_no_more_is_kept_than_there_is_room_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shelf = DraftFiles(tmp_path, most=10)
    await shelf.keep("1-a", b"123456")
    await shelf.keep("2-b", b"12345")
    await shelf.keep("3-c", b"1234")
    assert sorted(file.name for file in (tmp_path / FOLDER).iterdir()) == ["1-a", "3-c"]
    assert "draft 2-b are not kept: there are too many" in caplog.text


async def test_where_files_cannot_be_written_nothing_is_kept_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FOLDER).write_bytes(b"a file in its place")
    shelf = DraftFiles(tmp_path)
    with caplog.at_level(logging.WARNING):
        await shelf.keep("1-a", b"x")
        assert await shelf.find("1-a") == b""
        await shelf.keep_only(())
    assert [record.message.partition(" (")[0] for record in caplog.records] == [
        "the media of draft 1-a are not kept",
        "the media of draft 1-a cannot be read",
        "media of drafts cannot be deleted",
    ]


async def test_what_cannot_be_deleted_is_told_and_harms_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = DraftFiles(tmp_path)
    (tmp_path / FOLDER / "0-folder").mkdir(parents=True)
    (tmp_path / FOLDER / "1-a").write_bytes(b"x")
    await shelf.keep_only(())
    assert [file.name for file in (tmp_path / FOLDER).iterdir()] == ["0-folder"]
    assert "0-folder cannot be deleted" in caplog.text


@pytest.mark.parametrize(
    "path", [".drafts/1-a", ".DRAFTS/1-a", "cats/../.drafts/1-a", "link/1-a", "file://.drafts/1-a"]
)
async def test_no_model_can_have_it_sent_by_its_name(tmp_path: Path, path: str) -> None:
    await DraftFiles(tmp_path).keep("1-a", b"x")
    (tmp_path / ".DRAFTS").mkdir(exist_ok=True)  # one and the same on some systems
    (tmp_path / ".DRAFTS" / "1-a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / FOLDER)
    (tmp_path / "cats").mkdir()
    with pytest.raises(MediaError, match=r"^there is no file .*1-a in the media folder, which is empty$"):
        await MediaFolder(tmp_path, web=None).attach("file", path=path)
