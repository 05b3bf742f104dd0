from __future__ import annotations

import asyncio
from pathlib import Path

from PIL import Image

from tests.system.console.pictures import SHOTS, main


def test_the_pictures_of_the_documents_are_taken_of_a_running_console(tmp_path: Path) -> None:
    asyncio.run(main(tmp_path, SHOTS[:1], pace=0.0))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["today.png", "today.zh.png"]
    for file in tmp_path.iterdir():
        with Image.open(file) as picture:
            assert picture.size == SHOTS[0][2]
            assert len(picture.getcolors() or ()) > 8, "nothing is shown"
