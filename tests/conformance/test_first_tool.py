"""What docs/first-tool.md shows, run as it stands there, against a model server on the loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from bot.runtime.tool_discovery import ToolFolder, discover
from frostagent import SystemClock, Toolset
from tests.conformance.vendor import Body, serving

ROOT = Path(__file__).parents[2]
VENDOR = "https://api.deepseek.com"


def blocks() -> tuple[str, str]:
    """The tool and the library, as the page has them."""
    tool, library = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs/first-tool.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return tool, library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The operator's folder with the tool in it."""
    tool, _ = blocks()
    (tmp_path / "dice.py").write_text(tool, "utf-8")
    return tmp_path


async def test_the_one_file_of_the_page_is_a_tool(folder: Path) -> None:
    found = discover(ToolFolder(folder))
    assert (found.names, found.problems) == (("roll_dice",), ())
    result = await Toolset(found.tools, clock=SystemClock()).execute("roll_dice", '{"count": "2"}')
    assert [1 <= number <= 6 for number in json.loads(result.content)] == [True, True]
    schema = found.tools[0].spec.parameters
    assert all(parameter["description"] for parameter in schema["properties"].values())


def answer(body: Body) -> Body:
    """A model that calls the tool, then tells what it gave."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return {"content": f"You rolled {last['content']}."}
    call = {"id": "c1", "type": "function", "function": {"name": "roll_dice", "arguments": '{"count": 2}'}}
    return {"content": None, "tool_calls": [call]}


@pytest.mark.system
async def test_the_ten_lines_of_the_page_run_the_engine_without_qq(folder: Path) -> None:
    _, library = blocks()
    assert len([line for line in library.splitlines() if line.strip()]) <= 10
    assert VENDOR in library
    async with serving(answer) as vendor, asyncio.timeout(30):
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            library.replace(VENDOR, vendor.url),
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PYTHONUTF8": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await running.communicate()
    assert (running.returncode, err.decode()) == (0, "")
    assert re.fullmatch(r"You rolled \[[1-6], [1-6]\]\.\n", out.decode())
    assert [message["role"] for message in vendor.bodies[0]["messages"]] == ["system", "user"]
    assert vendor.bodies[0]["model"] == "deepseek-v4-flash"
