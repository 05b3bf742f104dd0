from __future__ import annotations

import asyncio
import shutil
import threading
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
