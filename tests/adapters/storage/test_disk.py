from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adapters.storage.disk import free_at


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
