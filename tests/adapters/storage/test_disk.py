from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from adapters.storage import files
from adapters.storage.files import free_at
from tests.fakes import until


class Hung:
    """A disk that hangs until it goes on; who looked at it."""

    def __init__(self, folder: Path) -> None:
        self.looks = list[Path]()
        self.goes_on = threading.Event()
        self.usage = shutil.disk_usage(folder)

    def look(self, folder: Path) -> object:
        self.looks.append(folder)
        self.thread = threading.current_thread()
        self.goes_on.wait(10)
        return self.usage


@pytest.fixture
def hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hung:
    disk_that_hangs = Hung(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", disk_that_hangs.look)
    return disk_that_hangs


async def test_the_room_is_that_of_the_disk_where_a_folder_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type(shutil.disk_usage(tmp_path))
    rooms = {tmp_path: usage(9, 2, 7)}

    def look(folder: Path) -> object:
        if folder not in rooms:
            raise OSError("no such file")
        return rooms[folder]

    monkeypatch.setattr(shutil, "disk_usage", look)
    assert await free_at(tmp_path / "data" / "media") == 7
    rooms.clear()
    assert await free_at(tmp_path) is None


async def test_a_disk_that_hangs_keeps_one_look_and_no_more(
    tmp_path: Path, hung: Hung, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WITHIN", 0.05)
    assert [await free_at(tmp_path) for _ in range(3)] == [None] * 3
    assert hung.looks == [tmp_path]
    [(look, _)] = files._looks.values()
    assert len(vars(look)["_done_callbacks"]) == 2  # its own, and that of who waited: nothing of who asked later
    hung.goes_on.set()
    await until(lambda: not files._looks)
    monkeypatch.setattr(files, "WITHIN", 5.0)
    assert await free_at(tmp_path) == hung.usage.free


async def test_all_who_ask_at_the_same_moment_get_what_one_look_finds(tmp_path: Path, hung: Hung) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(free_at(tmp_path)) for _ in range(3)]
        await until(lambda: hung.looks)
        asked[0].cancel()  # the look goes on for the others
        asked.append(group.create_task(free_at(tmp_path)))
        await until(asked[0].done)
        hung.goes_on.set()
    assert [one.result() for one in asked[1:]] == [hung.usage.free] * 3
    assert hung.looks == [tmp_path]


async def test_a_look_that_no_thread_takes_is_not_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuses)
        assert await free_at(tmp_path) is None
    assert files._looks == {}
    assert await free_at(tmp_path) is not None


def test_a_look_that_outlasts_its_loop_is_not_the_last(
    tmp_path: Path, hung: Hung, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(files, "WITHIN", 0.05)
    assert asyncio.run(free_at(tmp_path)) is None
    assert list(files._looks) == [tmp_path]
    assert hung.thread.daemon  # nor does the process wait for it
    hung.goes_on.set()
    asyncio.run(until(lambda: not files._looks))
    monkeypatch.setattr(files, "WITHIN", 5.0)
    assert asyncio.run(free_at(tmp_path)) == hung.usage.free
    assert (hung.looks, caplog.messages) == ([tmp_path] * 2, [])


async def test_where_nothing_is_there_nobody_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WITHIN", 1000.0)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    async with asyncio.timeout(30):
        assert await free_at(tmp_path / "drive") is None


async def test_an_error_that_nobody_foresaw_is_told_and_the_next_look_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await free_at(tmp_path)
    await until(lambda: not files._looks)
    assert await free_at(tmp_path) is not None
