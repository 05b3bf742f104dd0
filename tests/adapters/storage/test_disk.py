from __future__ import annotations

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters.storage import disk
from adapters.storage.disk import free_at
from tests.fakes import until


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


async def test_a_disk_that_hangs_keeps_one_look_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, goes_on, usage = list[Path](), threading.Event(), shutil.disk_usage(tmp_path)

    def look(folder: Path) -> object:
        looks.append(folder)
        goes_on.wait(10)
        return usage

    monkeypatch.setattr(shutil, "disk_usage", look)
    monkeypatch.setattr(disk, "WITHIN", 0.05)
    assert [await free_at(tmp_path) for _ in range(3)] == [None] * 3
    assert looks == [tmp_path]
    goes_on.set()
    await until(lambda: not disk._looks)
    monkeypatch.setattr(disk, "WITHIN", 5.0)
    assert await free_at(tmp_path) == usage.free


async def test_all_who_ask_at_the_same_moment_get_what_one_look_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, goes_on, usage = list[Path](), threading.Event(), shutil.disk_usage(tmp_path)

    def look(folder: Path) -> object:
        looks.append(folder)
        goes_on.wait(10)
        return usage

    monkeypatch.setattr(shutil, "disk_usage", look)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(free_at(tmp_path)) for _ in range(3)]
        await until(lambda: looks)
        asked[0].cancel()  # the look goes on for the others
        asked.append(group.create_task(free_at(tmp_path)))
        await until(asked[0].done)
        goes_on.set()
    assert [one.result() for one in asked[1:]] == [usage.free] * 3
    assert looks == [tmp_path]


async def test_a_look_that_no_thread_takes_is_not_the_last(tmp_path: Path) -> None:
    loop, refuses = asyncio.get_running_loop(), ThreadPoolExecutor(1)
    refuses.shutdown()
    loop.set_default_executor(refuses)
    assert await free_at(tmp_path) is None
    assert disk._looks == {}
    loop.set_default_executor(ThreadPoolExecutor(1))
    assert await free_at(tmp_path) is not None


async def test_a_look_that_ends_before_its_turn_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WITHIN", 1000.0)
    loop, busy, goes_on = asyncio.get_running_loop(), ThreadPoolExecutor(1), threading.Event()
    loop.set_default_executor(busy)
    busy.submit(goes_on.wait, 10)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = [group.create_task(free_at(tmp_path)) for _ in range(2)]
        await until(lambda: disk._looks)
        busy.shutdown(wait=False, cancel_futures=True)
    assert [one.result() for one in asked] == [None, None]
    goes_on.set()
    loop.set_default_executor(ThreadPoolExecutor(1))
    assert await free_at(tmp_path) is not None


async def test_where_nothing_is_there_nobody_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "WITHIN", 1000.0)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    async with asyncio.timeout(5):
        assert await free_at(tmp_path / "drive") is None


async def test_an_error_that_nobody_foresaw_is_told_and_the_next_look_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await free_at(tmp_path)
    await until(lambda: not disk._looks)
    assert await free_at(tmp_path) is not None
