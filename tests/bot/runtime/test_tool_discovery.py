"""Real files in real folders."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tools
from bot.runtime.tool_discovery import Discovered, Finder, PackagedTools, ToolFolder, discover, report
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import Problem
from tests.fakes import ManualClock, tool_context

ROOT = Path(__file__).parents[3]

HEAD = "from frostagent import tool\n\n"
DICE = f'''{HEAD}
@tool(replace=False)
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


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An operator's folder; what was imported from it is forgotten afterwards."""
    before, finders = set(sys.modules), list(sys.meta_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    sys.meta_path[:] = finders
    importlib.invalidate_caches()


def look(folder: Path) -> Discovered:
    return discover(ToolFolder(folder))


def looked(folder: Path) -> Discovered:
    """As the service does."""
    return discover(PackagedTools(tools), ToolFolder(folder))


def told(found: Discovered) -> list[str]:
    return [str(problem) for problem in found.problems]


# --- what is found --------------------------------------------------------------------------------


def test_the_packaged_tools_are_found_sorted_by_name_and_nothing_is_wrong_with_them() -> None:
    found = discover(PackagedTools(tools))
    assert found == Discovered(tools.discover())
    assert list(found.names) == sorted(found.names)


def test_a_file_is_all_a_tool_needs_and_all_its_tools_are_found_once(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    (folder / "table.py").write_text("from .dice import roll_dice\n\nTOOLS = [roll_dice]\n")
    assert look(folder) == Discovered(look(folder).tools)
    assert look(folder).names == ("flip_coin", "roll_dice")
    assert set(looked(folder).names) == {"flip_coin", "roll_dice", *discover(PackagedTools(tools)).names}


async def test_what_is_found_can_be_called(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    toolset = Toolset(look(folder).tools, clock=ManualClock())
    assert (await toolset.execute("roll_dice", {"sides": "20"})).content == "20"


def test_a_package_is_as_good_as_a_file(folder: Path) -> None:
    (folder / "casino").mkdir()
    (folder / "casino" / "__init__.py").write_text("from .games.dice import flip_coin\n")
    (folder / "casino" / "games").mkdir()
    (folder / "casino" / "games" / "__init__.py").write_text("")
    (folder / "casino" / "games" / "dice.py").write_text(DICE)
    assert look(folder).names == ("flip_coin",)


def test_tools_in_a_list_are_found(folder: Path) -> None:
    made = 'TOOLS = [foreign_tool(f"get_{name}", "Gets it.", {}, lambda: 1) for name in ("a", "b")]\n'
    (folder / "many.py").write_text(f"from frostagent import foreign_tool\n\n{made}")
    assert look(folder).names == ("get_a", "get_b")


def test_a_module_that_begins_with_an_underscore_is_for_the_others(folder: Path) -> None:
    (folder / "_shared.py").write_text("SIDES = 20\n")
    text = DICE.replace("sides: int = 6", "sides: int = SIDES").replace(HEAD, f"from ._shared import SIDES\n{HEAD}")
    (folder / "dice.py").write_text(text)
    found = look(folder)
    assert found.names == ("flip_coin", "roll_dice")
    assert found.problems == ()


def test_a_file_named_like_a_library_or_like_a_module_of_ours_is_nobody_elses(folder: Path) -> None:
    for name in ("json", "bot", "tools", "send_message"):
        (folder / f"{name}.py").write_text(
            DICE.replace("roll_dice", f"roll_{name}").replace("flip_coin", f"flip_{name}")
        )
    before = {name: sys.modules.get(name) for name in ("json", "bot", "tools", "tools.send_message")}
    assert len(look(folder).names) == 8
    assert before == {name: sys.modules.get(name) for name in before}


def test_two_folders_may_have_files_of_one_name(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "dice.py").write_text(
            DICE.replace("roll_dice", f"roll_{name}").replace("flip", f"flip_{name}")
        )
    found = discover(ToolFolder(folder / "one"), ToolFolder(folder / "two"))
    assert {"roll_one", "roll_two"} < set(found.names)


def test_nothing_is_written_into_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (folder / "dice.py").write_text(DICE)
    (folder / "casino").mkdir()
    (folder / "casino" / "__init__.py").write_text("from ..dice import roll_dice\n")
    look(folder)
    assert sorted(path.name for path in folder.rglob("*")) == ["__init__.py", "casino", "dice.py"]


def test_a_relative_folder_is_as_good_as_an_absolute_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "dice.py").write_text(DICE + "1 / 0\n")
    (problem,) = look(Path("mine")).problems
    assert problem.name == f"mine/dice.py:{DICE.count(chr(10)) + 1}"


def test_looking_twice_finds_the_same_and_looks_through_one_finder(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    assert look(folder) == look(folder)
    assert sum(isinstance(finder, Finder) for finder in sys.meta_path) == 1


# --- one name, two tools --------------------------------------------------------------------------


MINE = f'''{HEAD}
@tool(replace=True)
def get_weather(city: str) -> str:
    """The weather, by my own station.

    Args:
        city: A city.
    """
    return "rain"
'''


def test_a_tool_that_says_so_replaces_a_packaged_one(folder: Path) -> None:
    (folder / "weather.py").write_text(MINE)
    found = looked(folder)
    (mine,) = [tool for tool in found.tools if tool.name == "get_weather"]
    assert mine.description == "The weather, by my own station."
    assert found.problems == ()


def test_a_second_tool_of_a_name_is_told_and_left_out(folder: Path) -> None:
    (folder / "weather.py").write_text(MINE.replace("replace=True", ""))
    found = looked(folder)
    assert found.tools == tools.discover()
    (line,) = told(found)
    assert line.startswith(f"{folder}/weather.py: has a second tool get_weather, besides that of tools/get_weather.")
    assert "replace=True" in line


def test_a_packaged_tool_that_a_file_imports_is_no_second_one(folder: Path) -> None:
    text = "from tools.get_weather import get_weather as theirs\n"
    (folder / "weather.py").write_text(
        text + "guarded = theirs.wrap(lambda context, given: None).replace(replaces=True)\n"
    )
    found = looked(folder)
    assert found.problems == ()
    (guarded,) = [tool for tool in found.tools if tool.name == "get_weather"]
    assert len(guarded.guards) > len(next(tool for tool in tools.discover() if tool.name == "get_weather").guards)


# --- the examples of docs/tools.md -----------------------------------------------------------------

EXAMPLE = re.compile(r"^```python\n# my-tools/(?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = EXAMPLE.findall((ROOT / "docs" / "tools.md").read_text("utf-8"))


@pytest.fixture
def examples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Toolset:
    """The tools of a bot whose operator has copied every example."""
    monkeypatch.chdir(folder)
    (folder / "data" / "notes").mkdir(parents=True)
    (folder / "data" / "notes" / "todo.txt").write_text("buy more ice\n")
    (folder / "my-tools").mkdir()
    for file, text in EXAMPLES:
        (folder / "my-tools" / file).write_text(text, "utf-8")
    found = looked(Path("my-tools"))
    assert found.problems == ()
    return Toolset(found.tools, clock=ManualClock())


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("roll_dice", '{"count": 1, "sides": 1}', "[1], together 1"),
        ("roll_dice", '{"count": 11}', "[TOOL_INVALID_ARGUMENTS]"),
        ("count_words", '{"file": "todo.txt"}', "3 todo.txt"),
        ("count_words", '{"file": "../../secret"}', "[TOOL_INVALID_ARGUMENTS]"),
        ("echo_text", '{"text": "ice"}', "ice ice"),
        ("echo_text", '{"text": "ice", "times": "3"}', "ice ice ice"),
        ("shout", '{"input": "ice"}', "ICE!"),
        ("shout", "ice, please", "ICE, PLEASE!"),
    ],
)
async def test_the_examples_of_the_page_work(examples: Toolset, name: str, arguments: str, said: str) -> None:
    result = await examples.execute(name, arguments)
    assert said in result.content


async def test_the_example_of_a_built_in_tool_on_a_shorter_leash_works(examples: Toolset) -> None:
    tool = examples.get("get_weather")
    assert tool is not None
    context = tool_context(dict.fromkeys(tool.needs))
    refused = await examples.execute("get_weather", {"city": "北京"}, context)
    assert refused.content == "error: only the weather of 杭州 may be asked for [TOOL_DENIED]"


def test_every_example_of_the_page_is_run() -> None:
    assert len(EXAMPLES) == (ROOT / "docs" / "tools.md").read_text("utf-8").count("```python") == 5


# --- what is broken -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x = 1\nraise LookupError('a bug')\n", 2, "LookupError: a bug"),
        ("x = 1\n\ndef broken(:\n", 3, "SyntaxError: invalid syntax"),
        ("import no_such_library\n", 1, "ModuleNotFoundError: No module named 'no_such_library'"),
        ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError: "),
        ("raise SystemExit\n", 1, "(SystemExit)"),
        (f"{HEAD}@tool\ndef roll(sides) -> int:\n    '''Rolls.'''\n", 3, "UnsuitableType: "),
        (f"{HEAD}@tool(permission='maybe')\ndef roll() -> int:\n    '''Rolls.'''\n", 3, "ValueError: 'maybe'"),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_costs_only_its_own_tools(
    folder: Path, text: str, line: int, what: str
) -> None:
    (folder / "broken.py").write_text(text)
    (folder / "dice.py").write_text(DICE)
    found = look(folder)
    assert found.names == ("flip_coin", "roll_dice")
    (problem,) = found.problems
    assert problem.name == f"{folder}/broken.py:{line}"
    assert what in problem.what


def test_a_broken_module_among_the_packaged_ones_does_not_stop_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(folder)])
    (folder / "broken.py").write_text("1 / 0\n")
    importlib.invalidate_caches()
    found = discover(PackagedTools(tools))
    assert "send_message" in found.names
    assert told(found)[0].startswith("tools/broken.py:1: cannot be used (ZeroDivisionError: division by zero)")


def test_a_file_without_a_tool_is_told(folder: Path) -> None:
    (folder / "empty.py").write_text("def roll_dice():\n    return 6\n")
    (line,) = told(look(folder))
    assert line.startswith(f"{folder}/empty.py: has no tool and no command. Put @tool")


def test_a_folder_or_file_that_everybody_can_write_is_told(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    (folder / "dice.py").chmod(0o666)
    folder.chmod(0o777)
    found = look(folder)
    assert found.names == ("flip_coin", "roll_dice")
    assert [line.partition(" can be")[0] for line in told(found)] == [
        f"TOOLS_DIR: {folder}",
        f"TOOLS_DIR: {folder}/dice.py",
    ]


def test_a_folder_that_is_not_there_is_a_problem_and_no_failure(folder: Path) -> None:
    found = look(folder / "gone")
    assert found.tools == ()
    assert told(found) == [
        f"TOOLS_DIR: {folder}/gone cannot be read (No such file or directory). Name a folder that the bot may read"
    ]


def test_what_is_wrong_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        report([Problem("mine/dice.py:3", "cannot be used (ZeroDivisionError)", "Correct the file")])
    assert caplog.messages == ["tools: mine/dice.py:3: cannot be used (ZeroDivisionError). Correct the file"]


def test_a_link_to_nowhere_costs_no_tools(folder: Path) -> None:
    (folder / "dice.py").write_text(DICE)
    (folder / ".#dice.py").symlink_to("nobody@nowhere:1")
    assert look(folder) == Discovered(look(folder).tools)
    (folder / "gone.py").symlink_to("nowhere.py")
    found = look(folder)
    assert found.names == ("flip_coin", "roll_dice")
    assert any("gone.py" in line and "cannot be read" in line for line in told(found))


STRANGE = (
    "class Strange:\n    @property\n    def __class__(self):\n        raise OSError('odd')\n\n\nstrange = Strange()\n"
)


@pytest.mark.parametrize("text", ["class Panic(BaseException): ...\n\n\nraise Panic\n", STRANGE])
def test_whatever_a_file_does_costs_only_its_own_tools(folder: Path, text: str) -> None:
    (folder / "dice.py").write_text(DICE)
    (folder / "bad.py").write_text(text)
    found = look(folder)
    assert found.names == ("flip_coin", "roll_dice")
    assert ["bad.py" in line and "cannot be used" in line for line in told(found)] == [True]


def test_a_file_whose_name_has_a_dot_is_told(folder: Path) -> None:
    (folder / "a.b.py").write_text(DICE)
    assert ["a.b.py" in line and "dot in its name" in line for line in told(look(folder))] == [True]


def test_a_command_of_an_operators_own_is_a_file_too(folder: Path) -> None:
    (folder / "greet.py").write_text(
        "from bot.core.command import command\n\n"
        "@command('greet', '问好', about=('问个好', 'greet'))\n"
        "async def greet(asked):\n"
        "    return asked.either('你好', 'hello')\n"
    )
    found = look(folder)
    assert ([one.names for one in found.commands], found.problems) == ([("greet", "问好")], ())
