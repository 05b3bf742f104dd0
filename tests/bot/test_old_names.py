"""What the documents of b14ad6af told people to import still works, and each old name is told once."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import bot.core.command
import bot.core.ports
import frostagent
from bot.core import errors as service_errors
from bot.runtime.tool_discovery import Discovered, ToolFolder, discover
from frostagent.types import errors, tools
from tests.cases import each_case
from tools.get_weather.tool import get_weather

DICE = '''\
import random
from typing import Annotated

from pydantic import Field

from bot.library import tool


@tool(side_effects="none", repeatable=True)
def roll_dice(count: Annotated[int, Field(ge=1, le=10)], sides: int = 6) -> str:
    """Roll dice. Gives each of them and their sum.

    Args:
        count: How many dice.
        sides: How many sides each of them has.
    """
    rolled = [random.randint(1, sides) for _ in range(count)]
    return f"{rolled}, together {sum(rolled)}"
'''
DICE_OF_THE_README = '''\
import random

from bot.domain.tool import tool


@tool(side_effects="none")
def roll_dice(count: int, sides: int = 6) -> list[int]:
    """Roll dice. Gives what each of them shows.

    Args:
        count: How many dice.
        sides: How many sides each of them has.
    """
    return [random.randint(1, sides) for _ in range(count)]
'''
NOTES = """\
from bot.library import command_tool

count_words = command_tool(
    "count_words",
    "Counts the words of a text file in the notes. Gives the number and the name.",
    ["wc", "-w", "{file}"],
    {
        "properties": {
            "file": {
                "type": "string",
                "description": "The file, as todo.txt.",
                "pattern": "^[a-z]+[.]txt$",
            }
        }
    },
    cwd="data/notes",
    side_effects="read",
    idempotent=True,
    timeout=10,
)
"""
ECHO = """\
from bot.library import foreign_tool

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say again."},
        "times": {"type": "integer", "description": "How often.", "minimum": 1, "default": 2},
    },
    "required": ["text"],
}


async def say_again(text: str, times: int) -> str:
    return " ".join([text] * times)


echo = foreign_tool("Echo-Text", "Says a text again.", SCHEMA, say_again, side_effects="none")
"""
SHOUTING = """\
from bot.library import class_tool


class Shout:
    name = "shout"
    description = "Says a text loudly."
    parameters = {
        "properties": {"input": {"type": "string", "description": "The text."}},
        "required": ["input"],
    }

    def available(self) -> tuple[bool, str]:
        return True, ""

    async def execute(self, input: str) -> str:
        return input.upper() + "!"


shout = class_tool(Shout())
"""
LOCAL_WEATHER = """\
from bot.domain.errors import ToolDenied
from tools.get_weather import get_weather as everywhere


def only_here(context, arguments):
    if "杭州" not in arguments["city"]:
        raise ToolDenied("only the weather of 杭州 may be asked for")


get_weather = everywhere.wrap(only_here).replace(replaces=True)
"""
ROLL = """\
import random

from bot.domain.command import Asked, command


@command("roll", "掷骰子", about=("掷一个骰子", "roll a die"), audience="everyone")
async def roll(asked: Asked) -> str:
    return f"{asked.asker.name}: {random.randint(1, 6)}"
"""
OLD_NAMES = {
    "bot.library": (frostagent, frostagent.__all__),
    "bot.programs": (frostagent, ["command_tool"]),
    "bot.domain.tool": (tools, ["Guard", "Prepare", "Recover", "Tool", "ToolContext", "ToolStatus", "tool"]),
    "bot.domain.errors": (
        errors,
        ["BotError", "InvalidArguments", "MediaError", "ModelError", "ToolDenied", "ToolFailed"],
    ),
    "bot.domain.ports": (bot.core.ports, ["ChatLog", "Looking", "Members", "Store", "Transport", "Web", "WebResponse"]),
    "bot.domain.command": (bot.core.command, ["Asked", "Command", "command"]),
}


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OLD_NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def load(folder: Path, files: dict[str, str]) -> tuple[Discovered, list[warnings.WarningMessage]]:
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        found = discover(ToolFolder(folder))
    return found, told


def test_a_folder_of_tools_and_commands_of_then_is_read(tmp_path: Path) -> None:
    found, told = load(
        tmp_path,
        {
            "dice.py": DICE,
            "notes.py": NOTES,
            "echo.py": ECHO,
            "shouting.py": SHOUTING,
            "local_weather.py": LOCAL_WEATHER,
            "roll.py": ROLL,
        },
    )
    assert found.problems == ()
    assert found.names == ("count_words", "echo_text", "get_weather", "roll_dice", "shout")
    assert [one.names for one in found.commands] == [("roll", "掷骰子")]
    assert all(isinstance(tool, frostagent.Tool) for tool in found.tools)
    assert {(Path(one.filename).name, str(one.message).partition(" ")[0]) for one in told} == {
        ("dice.py", "bot.library"),  # the first file that imports it
        ("local_weather.py", "bot.domain.errors"),
        ("roll.py", "bot.domain.command"),
    }
    assert len(told) == 3
    assert {one.category for one in told} == {FutureWarning}


def test_so_is_the_tool_of_the_readme(tmp_path: Path) -> None:
    found, told = load(tmp_path, {"dice.py": DICE_OF_THE_README})
    assert (found.names, found.problems) == (("roll_dice",), ())
    (warning,) = told
    assert str(warning.message) == (
        "bot.domain.tool is deprecated and will be removed in 1.0: import from frostagent instead"
    )


@each_case(("old", "new", "names"), [(old, new, names) for old, (new, names) in OLD_NAMES.items()])
def test_an_old_name_is_the_same_object(old: str, new: object, names: list[str]) -> None:
    with pytest.warns(FutureWarning, match=f"{old} is deprecated") as told:
        module = import_module(old)
    assert len(told) == 1
    assert import_module(old) is module  # without a second warning, which would be an error
    assert [name for name in names if getattr(module, name) is not getattr(new, name)] == []


def test_the_errors_of_qq_are_still_beside_those_of_tools() -> None:
    with pytest.warns(FutureWarning):
        module = import_module("bot.domain.errors")
    assert module.NotConnected is service_errors.NotConnected
    assert module.AlreadySaid is service_errors.AlreadySaid


def test_a_tool_of_ours_is_where_it_was() -> None:
    assert import_module("tools.get_weather").get_weather is get_weather
