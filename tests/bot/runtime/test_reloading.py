from __future__ import annotations

import pytest

from bot.runtime.reloading import reload_all
from frostagent.types.errors import Problem


def test_each_file_is_read_again_whatever_is_wrong_with_the_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    def mistaken() -> tuple[Problem, ...]:
        return Problem("A", "is empty", "Write something"), Problem("B", "is missing", "Add it")

    def broken() -> tuple[Problem, ...]:
        raise RuntimeError("nobody expected this")

    reload_all({"one": mistaken, "two": broken, "three": tuple})
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "one is kept as it was: A: is empty. Write something"),
        ("ERROR", "one is kept as it was: B: is missing. Add it"),
        ("ERROR", "two could not be read again and is kept as it was"),
        ("INFO", "three was read again"),
    ]
    assert [bool(record.exc_info) for record in caplog.records] == [False, False, True, False]
