from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tools

DICE = '''
from frostagent import tool


@tool
async def roll_dice(sides: int = 6) -> int:
    """Rolls a dice."""
    return sides


@tool
def flip_coin() -> str:
    """Flips a coin."""
    return "heads"


again = roll_dice
NUMBER = 6
'''


def names() -> list[str]:
    return [tool.name for tool in tools.discover()]


OURS = [
    "chat_log", "get_game_version", "get_weather", "look", "memory", "read_page", "remind", "search_web",
    "send_message", "stay_silent", "subscribe", "use_subagent",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where modules can be dropped as if it were `tools/`; they are gone again afterwards."""
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(tmp_path)])
    before, attributes = set(sys.modules), set(vars(tools))
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("tools."):
            del sys.modules[name]
    for name in set(vars(tools)) - attributes:
        delattr(tools, name)
    importlib.invalidate_caches()


def test_our_tools_are_found_sorted_by_name() -> None:
    assert names() == OURS


def test_a_module_in_the_folder_is_all_a_new_tool_needs(folder: Path) -> None:
    (folder / "games.py").write_text(DICE)
    importlib.invalidate_caches()
    assert names() == sorted([*OURS, "flip_coin", "roll_dice"])


def test_a_package_is_as_good_as_a_module(folder: Path) -> None:
    (folder / "casino").mkdir()
    (folder / "casino" / "__init__.py").write_text("from tools.casino.dice import roll_dice\n")
    (folder / "casino" / "dice.py").write_text(DICE)
    importlib.invalidate_caches()
    assert names() == sorted([*OURS, "roll_dice"])


def test_a_tool_that_another_module_imports_is_found_once(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    (folder / "table.py").write_text("from tools.dice import roll_dice\n")
    importlib.invalidate_caches()
    assert names().count("roll_dice") == 1


def test_two_tools_of_one_name_are_both_found_so_that_the_registry_can_refuse(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    (folder / "more_dice.py").write_text(DICE)
    importlib.invalidate_caches()
    assert names().count("roll_dice") == 2


def test_a_module_that_is_broken_is_not_passed_over(folder: Path) -> None:
    (folder / "broken.py").write_text("raise LookupError('a bug')\n")
    importlib.invalidate_caches()
    with pytest.raises(LookupError):
        tools.discover()
