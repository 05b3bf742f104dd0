"""What a type checker finds in the examples of docs/library.md and in the two modules below, with the library installed
from its wheel, in a folder that has modules called as the service's. mypy does so in a test; pyright, which is no
dependency of ours, where CI can install it:

    python -m tests.typed PATH-OF-BASEDPYRIGHT
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.frostagent.test_library_page import write_examples
from tests.wheels import build_wheel, light_environment

TYPED = '''
from typing import Annotated, Any, Literal, assert_type

from pydantic import BaseModel

from frostagent import Agent, AgentStream, Reply, ScriptedModel, ToolContext, call, tool
from frostagent.testing import RecordingModel, ReplayModel


class Cat(BaseModel):
    lives: int


class Dog(BaseModel):
    tricks: list[str]


@tool(side_effects="none")
async def double(context: ToolContext, number: int) -> int:
    """Doubles."""
    return 2 * number


agent = Agent(model=ScriptedModel(call("double", number=2), "4"), tools=[double])


async def main(kind: type[Cat]) -> None:
    assert_type(await agent.run("a"), Reply[str])
    assert_type(await agent.run("a", output=Cat, images=["data:"]), Reply[Cat])
    assert_type(await agent.run("a", output=kind), Reply[Cat])
    assert_type(await agent.run("a", output=Cat | Dog), Reply[Cat | Dog])
    assert_type(await agent.run("a", output=Cat | None), Reply[Cat | None])
    assert_type(await agent.run("a", output=Annotated[int, "years"]), Reply[int])
    assert_type(await agent.run("a", output=Literal["a", "b"]), Reply[Literal["a", "b"]])
    assert_type((await agent.run("a", output=list[Cat])).output, list[Cat])
    assert_type(await agent.run("a", output={"type": "object"}), Reply[Any])
    assert_type(agent.stream("a", output=Cat), AgentStream[Cat])
    assert_type(agent.run_sync("a", output=dict[str, int]).output, dict[str, int])
    async with agent.stream("a") as stream:
        async for piece in stream.text():
            assert_type(piece, str)
    assert_type(await double(ToolContext.for_test(deps={}), number=2), int)
    with RecordingModel(ScriptedModel("hi"), "a.jsonl", secrets=["k"]) as model, ReplayModel("a.jsonl") as played:
        Agent(model=model)
        Agent(model=played)
'''

WRONG = '''
from frostagent import Agent, ScriptedModel, ToolContext, tool
from frostagent.testing import ReplayModel


@tool
async def double(number: int) -> int:
    """Doubles."""
    return 2 * number


agent = Agent(model=ScriptedModel("hi"), tools=[double])
agent.run_sync("go", histroy=())
agent.run_sync("go", output=int, histroy=())
agent.stream("go", image=())
agent.stream("go").text(lively=True)
Agent(model=ScriptedModel(), instrutions="")
_ = double("two")
_ = double(numbr=2)
tool(side_effect="none")
ToolContext.for_test(ports={})
ReplayModel("a.jsonl", secret=["k"])
'''
WRONG_LINES = set(range(WRONG[: WRONG.index("agent.run_sync")].count("\n") + 1, WRONG.count("\n") + 1))


def main(checker: str) -> int:
    """Check with a pyright; 0 if it finds nothing wrong, and everything that is."""
    with TemporaryDirectory() as name:
        place = Path(name)
        python = light_environment(place / "light", build_wheel(place)) / "python"
        folder = place / "mine"
        folder.mkdir()
        write_examples(folder)
        (folder / "examples" / "typed.py").write_text(TYPED, "utf-8")
        (folder / "examples" / "wrong.py").write_text(WRONG, "utf-8")
        settings = {"include": ["examples"], "typeCheckingMode": "strict"}
        (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
        words = [checker, "--pythonpath", str(python), "--outputjson"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    begin = done.stdout.find("{")
    if begin < 0:
        sys.stderr.write(done.stdout + done.stderr)
        return 1
    told = json.loads(done.stdout[begin:])
    found: set[int] = set()
    wrong: list[str] = []
    for one in told["generalDiagnostics"]:
        file, line = Path(one["file"]).name, one["range"]["start"]["line"] + 1
        if file == "wrong.py":
            found.add(line)
        else:
            wrong.append(f"{file}:{line}: {one['message']}")
    wrong += [f"wrong.py:{line}: it finds nothing wrong here" for line in sorted(WRONG_LINES - found)]
    wrong += [f"wrong.py:{line}: nothing is wrong here" for line in sorted(found - WRONG_LINES)]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{told['summary']['filesAnalyzed']} files checked by {Path(checker).name} {told['version']}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
