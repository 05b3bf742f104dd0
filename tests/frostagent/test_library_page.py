"""The examples of docs/library.md, as they stand there, run beside modules of a user's own: what a line prints is what
its comment says.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from tests.conformance.vendor import Body, serving
from tests.documents import ROOT, Block, blocks

PAGES = ("docs/library.md", "docs/zh/library.md")
VENDOR = "https://api.deepseek.com"
TOLD = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
RUNNER = """
import contextlib, io, json, pathlib, runpy, sys
told = {}
for file in sorted(pathlib.Path("examples").glob("*.py")):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(file), run_name="__main__")
    told[file.name] = out.getvalue()
print(json.dumps(told))
"""


def examples() -> list[Block]:
    return blocks(PAGES[0], "python")


def write_examples(folder: Path, *, url: str = VENDOR) -> dict[str, list[str]]:
    """A user's folder with modules called as the service's, and the examples; what each of them prints."""
    for name in ("bot.py", "config.py", "adapters.py", "tools/__init__.py"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("raise ImportError('the library imports this')\n", "utf-8")
    (folder / "examples").mkdir()
    printed = {}
    for number, block in enumerate(examples(), 1):
        name = f"example_{number:02}.py"
        (folder / "examples" / name).write_text(block.text.replace(VENDOR, url), "utf-8")
        printed[name] = TOLD.findall(block.text)
    return printed


def answer(body: Body) -> Body:
    """The vendor of the first example."""
    messages = body["messages"]
    if messages[-1]["role"] == "tool":
        return {"content": "It is sunny in Beijing, 25 °C."}
    if any(message["role"] == "tool" for message in messages):
        return {"content": "No coat today."}
    called = {"name": "get_weather", "arguments": '{"city": "Beijing"}'}
    return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": called}]}


async def test_every_example_prints_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "frostagent").symlink_to(ROOT / "frostagent")
    folder = tmp_path / "mine"
    async with serving(answer) as vendor, asyncio.timeout(50):
        expected = write_examples(folder, url=vendor.url)
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", RUNNER),
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "site"), "PYTHONUTF8": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await running.communicate()
    assert running.returncode == 0, err.decode()
    printed = {name: text.splitlines() for name, text in json.loads(out).items()}
    assert printed == expected
    assert len(printed) >= 9
    assert all(printed.values())


def test_both_pages_have_the_same_examples() -> None:
    english, chinese = ([block.text for block in blocks(page, "python")] for page in PAGES)
    assert english == chinese
