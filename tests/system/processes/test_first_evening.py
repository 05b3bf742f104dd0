"""An operator's first evening, with real processes: `setup`, `init`, and the first answer in a group."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from tests.bot.cli.setup.screen import on_a_terminal

ROOT = Path(__file__).parents[3]
PROGRAM = (sys.executable, "-m", "bot")
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
HERE = {"ONEBOT_HOST": "127.0.0.1", "ONEBOT_PORT": "0", "WEB_PORT": "0"}
READY = "listening on 127.0.0.1:"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of FrostAgent as it is cloned, as far as setup needs it."""
    shutil.copy(ROOT / "docker-compose.yml", tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def start(folder: Path, *words: str, program: Sequence[str] = PROGRAM, **environment: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(*program, *words),
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )


async def run(folder: Path, *words: str, program: Sequence[str] = PROGRAM, **environment: str) -> tuple[int, str]:
    """A command to its end: exit code, and what it told."""
    process = await start(folder, *words, program=program, **environment)
    async with asyncio.timeout(50):
        out, told = await process.communicate()
    assert out == b""
    assert b"Traceback" not in told
    return process.returncode or 0, told.decode()


@asynccontextmanager
async def serving(folder: Path, *, program: Sequence[str] = PROGRAM, **environment: str) -> AsyncIterator[str]:
    """The service as a process; where it listens."""
    process = await start(folder, "run", program=program, **HERE, **environment)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):
            told = ""
            while READY not in told:
                line = await process.stderr.readline()
                assert line, told
                told += line.decode()
        yield f"ws://127.0.0.1:{told.partition(READY)[2].partition(',')[0]}/"
    finally:
        process.kill()
        await process.communicate()


def napcats_token(folder: Path) -> str:
    """The token in the settings NapCat would read."""
    settings = json.loads((folder / "napcat" / "config" / "onebot11.json").read_text("utf-8"))
    (client,) = settings["network"]["websocketClients"]
    token: str = client["token"]
    return token


async def first_answer(url: str, token: str) -> str:
    """What the bot says when it is greeted in a group, by way of a OneBot server with that token."""
    async with Simulator(demo_world(), reconnect=0.05) as simulator:
        simulator.dial(url, token=token)
        await simulator.wait_connected()
        await simulator.say("@bot hello")
        (answer,) = await simulator.wait_sent(1, timeout=30)
        return answer.text


async def test_from_the_options_of_setup_to_the_first_answer(folder: Path) -> None:
    async with OfflineModel() as model:
        options = ("--base-url", model.base_url, "--model", "demo", "--owner", "20001")
        code, told = await run(folder, "setup", "--non-interactive", *options, LLM_API_KEY="sk-not-on-the-screen")
        assert code == 0, told
        assert "  ok, " in told
        assert "sk-not-on-the-screen" not in told
        assert (folder / ".env").stat().st_mode & 0o777 == 0o600
        async with serving(folder) as url:
            assert await first_answer(url, napcats_token(folder))


async def test_from_init_to_the_first_answer_with_a_token_nobody_typed(folder: Path) -> None:
    async with OfflineModel() as model:
        outside = {"LLM_BASE_URL": "https://llm.invalid/v1", "LLM_API_KEY": "sk-1", "LLM_MODEL": "demo"}
        code, told = await run(folder, "init", ONEBOT_ACCESS_TOKEN="", **outside)
        assert code == 0, told
        token = napcats_token(folder)
        assert token not in told
        environment = {**outside, "LLM_BASE_URL": model.base_url, "ONEBOT_ACCESS_TOKEN": ""}
        async with serving(folder, **environment) as url:
            async with Simulator(demo_world(), reconnect=0.05) as stranger:
                stranger.dial(url, token="guessed")
                await stranger.wait_until(lambda: bool(stranger.sockets.refused))
            assert await first_answer(url, token)


async def test_init_beside_an_env_file_reads_what_compose_would_pass_on_and_the_environment_wins(folder: Path) -> None:
    lines = (
        "LLM_BASE_URL=https://llm.invalid/v1",
        "LLM_API_KEY=sk-1",
        "LLM_MODEL=demo",
        "ONEBOT_ACCESS_TOKEN=of-the-file",
    )
    (folder / ".env").write_text("\n".join(lines), "utf-8")
    code, told = await run(folder, "init", LLM_MODEL="", NAPCAT_WEBUI_TOKEN="of-the-environment")
    assert code == 0, told
    assert napcats_token(folder) == "of-the-file"
    shutil.rmtree(folder / "napcat")
    assert (await run(folder, "init", ONEBOT_ACCESS_TOKEN="of-the-environment"))[0] == 0
    assert napcats_token(folder) == "of-the-environment"


async def test_init_tells_everything_wrong_and_stops_what_waits_for_it(folder: Path) -> None:
    code, told = await run(folder, "init", ONEBOT_ACCESS_TOKEN="change-me", LLM_MODEL="your-model", BOT_OWNER="1")
    assert code == 2
    for name in ("LLM_BASE_URL", "LLM_MODEL", "ONEBOT_ACCESS_TOKEN", "BOT_OWNERS"):
        assert name in told
    assert not (folder / "napcat").exists()


async def test_setup_without_a_terminal_says_which_options_it_misses(folder: Path) -> None:
    code, told = await run(folder, "setup")
    assert code == 2
    assert "--base-url" in told
    assert "--model" in told
    assert not (folder / ".env").exists()


async def test_a_model_that_cannot_be_reached_leaves_nothing_behind(folder: Path) -> None:
    code, told = await run(folder, "setup", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert code == 1
    assert "cannot be reached" in told
    assert names(folder) == ["docker-compose.yml"]


def test_on_a_terminal_everything_is_asked_and_the_key_is_not_shown(folder: Path) -> None:
    words = [sys.executable, "-m", "bot", "setup", "--no-test"]
    with on_a_terminal(words, folder=folder, environment=ENVIRONMENT) as screen:
        answers = ("deepseek", "sk-very-secret", "deepseek-chat", "", "", "10001", "", "10000", "1")
        questions = (
            *("base URL [deepseek]: ", "(not shown): ", "Model name: ", "called by it [FrostAgent]: "),
            *(
                "may be empty: ",
                "(owner): ",
                "for all: ",
                "QQ number; may be empty: ",
                "2 without [",
            ),
        )
        for question, answer in zip(questions, answers, strict=True):
            screen.wait_for(question)
            screen.type(f"{answer}\n")
        screen.wait_for("docker compose up -d")
        assert screen.wait() == 0
    assert "sk-very-secret" not in screen.shown
    written = (folder / ".env").read_text("utf-8")
    for line in ("LLM_API_KEY=sk-very-secret", "LLM_MODEL=deepseek-chat", "BOT_OWNERS=10001", "NAPCAT_ACCOUNT=10000"):
        assert f"\n{line}\n" in written


def test_ctrl_c_in_the_middle_leaves_nothing_behind(folder: Path) -> None:
    words = [sys.executable, "-m", "bot", "setup"]
    with on_a_terminal(words, folder=folder, environment=ENVIRONMENT) as screen:
        screen.wait_for("base URL [deepseek]: ")
        screen.type("\n")
        screen.wait_for("(not shown): ")
        screen.type("\x03")
        screen.wait_for("Nothing was written.")
        assert screen.wait() == 130
    assert names(folder) == ["docker-compose.yml"]


def test_the_log_of_a_chat_on_a_terminal_lies_in_a_file_until_its_end(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "bot", "chat"]
    with on_a_terminal(words, folder=tmp_path, environment=ENVIRONMENT) as screen:
        screen.wait_for("Only warnings are shown here.")
        screen.wait_for("`!help` lists")
        screen.type("@bot hello\n")
        screen.wait_for("bot: ")
        (name,) = re.findall(r"The log is in (\S+chat\.log) until the chat ends", screen.shown)
        assert "[info]" in Path(name).read_text("utf-8")
        screen.type("\x04")
        assert screen.wait() == 0
    assert "[info]" not in screen.shown
    assert not Path(name).exists()
