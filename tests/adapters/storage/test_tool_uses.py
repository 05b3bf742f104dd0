from __future__ import annotations

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.tool_uses import tools
from bot.domain.chat import ToolMessage
from bot.domain.inspection import ToolUse
from tests.adapters.storage.entries import ended, read
from tests.adapters.storage.test_books import whole, write


def test_tools_are_told_with_how_often_they_were_called_and_failed(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole())
    assert read(database, tools) == (ToolUse("get_weather", 1, 0, "", 1.5),)
    write(batches, ended("t1", ToolMessage("c2", "get_weather", ""), step=2, code="TOOL_TIMEOUT", seconds=3.0))
    assert read(database, tools) == (ToolUse("get_weather", 2, 1, "TOOL_TIMEOUT", 3.0),)
