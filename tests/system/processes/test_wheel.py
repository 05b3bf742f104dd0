"""What `pip install` and `uv tool install` give people: the wheel, in an empty environment and an empty folder."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

from adapters.offline.server import OfflineModel
from tests.conformance.vendor import serving as model_serving
from tests.frostagent.test_library_page import RUNNER, answer, write_examples
from tests.system.processes.test_first_evening import first_answer, names, run, serving, start
from tests.typed import TYPED, WRONG, WRONG_LINES
from tests.wheels import PACKAGES, ROOT, build_wheel, light_environment, needed, pip

NO_ROOT = {"PYTHONPATH": ""}  # it would be the checkout's modules that run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """`frostagent` of a new environment, which has the wheel and borrows the libraries of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    python = str(folder / "bin" / "python")
    pip(f"--python={python}", "install", "--no-deps", "--no-index", str(wheel))
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return (str(folder / "bin" / "frostagent"),)


LIGHT = {
    *("aiohttp", "cachetools", "jsonschema", "msgspec", "opentelemetry-api", "orjson", "pydantic", "rapidfuzz"),
    "typing-extensions",
}
EXAMPLE = """
import asyncio
from frostagent import Agent, ScriptedModel, call, tool


@tool(side_effects="none")
def double(number: int) -> int:
    '''Doubles.

    Args:
        number: What to double.
    '''
    return 2 * number


async def main() -> None:
    with ScriptedModel(call("double", number=21), "It is 42.") as model:
        print((await Agent(model=model, tools=[double]).chat("What is twice 21?")).text)


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has the wheel and what `pip install frostagent` brings."""
    return light_environment(tmp_path_factory.mktemp("light"), wheel)


def said(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env={"PYTHONUTF8": "1"}, capture_output=True, text=True, check=False, timeout=50
    )


def test_the_library_is_light_and_the_service_an_extra(wheel: Path) -> None:
    assert needed(wheel) == LIGHT
    assert needed(wheel, "bot") > LIGHT | {"sqlalchemy", "typer", "websockets"}


def test_the_light_library_runs_an_agent_beside_modules_of_the_user_s_own(light: Path, tmp_path: Path) -> None:
    for name in ("bot.py", "config.py", "adapters.py", "tools.py"):
        (tmp_path / name).write_text("raise ImportError('the library imports this')\n", "utf-8")
    (tmp_path / "example.py").write_text(EXAMPLE, "utf-8")
    done = said(tmp_path, str(light / "python"), "-W", "error", "example.py")
    assert (done.returncode, done.stdout) == (0, "It is 42.\n"), done.stderr
    assert said(tmp_path, str(light / "python"), "-c", "from frostagent import *").stderr == ""


async def test_the_examples_of_the_page_run_and_are_typed_beside_modules_of_the_user_s_own(
    light: Path, tmp_path: Path
) -> None:
    folder, python = tmp_path / "mine", str(light / "python")
    async with model_serving(answer) as vendor:
        expected = write_examples(folder, url=vendor.url)
        done = await asyncio.to_thread(said, folder, python, "-W", "error", "-c", RUNNER)
    assert done.returncode == 0, done.stderr
    assert {name: text.splitlines() for name, text in json.loads(done.stdout).items()} == expected
    checked = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python]
    cache = str(tmp_path / "cache")
    (folder / "examples" / "typed.py").write_text(TYPED, "utf-8")
    typed = await asyncio.to_thread(said, folder, *checked, "--cache-dir", cache, "examples")
    assert typed.returncode == 0, typed.stdout + typed.stderr
    (folder / "examples" / "wrong.py").write_text(WRONG, "utf-8")
    typed = await asyncio.to_thread(said, folder, *checked, "--cache-dir", cache, "examples/wrong.py")
    assert {int(line) for line in re.findall(r"wrong\.py:(\d+): error", typed.stdout)} == WRONG_LINES, typed.stdout


def test_without_the_extra_the_command_says_what_to_install(light: Path, tmp_path: Path) -> None:
    done = said(tmp_path, str(light / "frostagent"), "run")
    assert done.returncode == 1
    assert done.stderr.endswith('pip install ".[bot]"\n')
    assert "Traceback" not in done.stderr


def test_the_wheel_has_every_file_of_the_packages_and_the_example(wheel: Path) -> None:
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file())
    ours = {file.relative_to(ROOT).as_posix() for file in files if "__pycache__" not in file.parts}
    with ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert archive.read("config/.env.example") == (ROOT / ".env.example").read_bytes()
    assert inside == ours | {"config/.env.example"}


async def test_from_the_wheel_to_the_first_answer(program: tuple[str, ...], tmp_path: Path) -> None:
    async with OfflineModel() as model:
        options = ("--base-url", model.base_url, "--model", "offline-demo", "--owner", "20001")
        code, told = await run(tmp_path, "setup", "--non-interactive", *options, program=program, **NO_ROOT)
        assert code == 0, told
        assert "frostagent run\n" in told
        assert names(tmp_path) == [".env"]
        lines = (tmp_path / ".env").read_text("utf-8").splitlines()
        (token,) = (line.partition("=")[2] for line in lines if line.startswith("ONEBOT_ACCESS_TOKEN="))
        persona = "config/personas/default.md"  # as .env.example shows it
        async with serving(tmp_path, program=program, BOT_PERSONA=persona, **NO_ROOT) as url:
            assert await first_answer(url, token)


async def test_the_commands_that_read_files_of_ours_work_from_the_wheel(
    program: tuple[str, ...], tmp_path: Path
) -> None:
    for words, file in (("chat", "fox.zh.md"), ("persona try config/personas/tutor.en.md", "fox.en.md")):
        persona = {"BOT_PERSONA": f"config/personas/{file}"}
        code, told = await said_by(tmp_path, *words.split(), program=program, **persona)
        assert code == 0, told
    model = {"LLM_BASE_URL": "https://llm.invalid/v1", "LLM_MODEL": "m"}
    code, told = await run(tmp_path, "init", program=program, **model, **NO_ROOT)
    assert code == 0, told
    assert (tmp_path / "napcat" / "config" / "onebot11.json").exists()
    nearby = {**model, "LLM_BASE_URL": "http://127.0.0.1:9/v1"}
    _, told = await said_by(tmp_path, "doctor", program=program, **nearby)
    assert "problem  model" in told


async def said_by(folder: Path, *words: str, program: tuple[str, ...], **environment: str) -> tuple[int, str]:
    """A command to its end: exit code, and all it wrote."""
    process = await start(folder, *words, program=program, **environment, **NO_ROOT)
    async with asyncio.timeout(50):
        written, told = await process.communicate()
    assert b"Traceback" not in told
    return process.returncode or 0, (written + told).decode()
