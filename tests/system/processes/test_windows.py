"""The commands where what Windows lacks is missing: real processes, of which `windows/sitecustomize.py` takes it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from tests.bot.cli.commands import CLEAN, ROOT, SERVING, WAITLESS

HERE = Path(__file__).with_name("windows")
ENVIRONMENT = CLEAN | WAITLESS | {"PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)]), "PYTHONUTF8": "1"}
PATIENCE = 50.0  # seconds for a command to end; the machine may be busy

pytestmark = pytest.mark.timeout(180)  # several commands one after another, each a process of its own

EVERY_MODULE = """
import importlib, pkgutil, sys
import adapters, bot, config, frostagent, tools

skipped = {"bot.__main__", "bot.runtime.container_init", "adapters.storage.migrations.env"}
for root in (adapters, bot, config, frostagent, tools):
    for one in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        if one.name not in skipped and ".versions." not in one.name:
            importlib.import_module(one.name)
ours = {"adapters", "bot", "config", "frostagent", "tools"}
print(len([name for name in sys.modules if name.partition(".")[0] in ours]))
"""

PICTURE = """
import asyncio, io
from PIL import Image
from adapters.media.decoder_process import DecoderProcess

async def unpack():
    drawn = io.BytesIO()
    Image.new("RGB", (64, 64)).save(drawn, "PNG")
    decoder = DecoderProcess()
    try:
        print((await decoder.decode(drawn.getvalue())).startswith(b"\\xff\\xd8"))
    finally:
        await decoder.aclose()

asyncio.run(unpack())
"""


def run(folder: Path, *words: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python command to its end, on its imitation of Windows."""
    done = subprocess.run(
        [sys.executable, *words],
        input=typed,
        cwd=folder,
        env=ENVIRONMENT | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_what_windows_lacks_is_missing_from_our_modules_alone(tmp_path: Path) -> None:
    script = """
import sys
sys.path.insert(0, "")
import bot.probe
"""
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "__init__.py").touch()
    (tmp_path / "bot" / "probe.py").write_text(
        "import asyncio, os, signal, socket, sys\n"
        "print(sys.platform, os.name, *(hasattr(*one) for one in ((os, 'fork'), (os, 'getuid'), (os, 'O_NOFOLLOW'),"
        " (signal, 'SIGHUP'), (signal, 'SIGKILL'), (socket, 'AF_UNIX'), (asyncio, 'start_unix_server'))))\n"
        "print(*(hasattr(*one) for one in ((os, 'replace'), (signal, 'SIGTERM'), (socket, 'AF_INET'))))\n"
        "for name in ('fcntl', 'resource', 'uvloop'):\n"
        "    try:\n        __import__(name, globals())\n        print(name)\n    except ImportError:\n        pass\n",
        "utf-8",
    )
    assert run(tmp_path, "-c", script).stdout == f"win32 nt{' False' * 7}\n{' '.join(['True'] * 3)}\n"


def test_every_module_of_ours_can_be_imported(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", EVERY_MODULE)
    assert int(done.stdout) > 400, done.stderr


def test_a_chat_answers_and_ends(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "bot", "chat", typed="@bot 你好\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bot: ")


def test_the_doctor_reports(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "bot", "doctor", "--json", **SERVING)
    assert done.returncode == 1
    names = {check["check"] for check in json.loads(done.stdout)}
    assert len(names) > 5, done.stdout


def test_a_picture_is_unpacked(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", PICTURE)
    assert done.stdout == "True\n", done.stderr


def test_letters_that_the_output_cannot_show_are_no_error(tmp_path: Path) -> None:
    words = ("-m", "bot", "doctor")
    encoding = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict", "BOT_LANGUAGE": "zh"}
    done = run(tmp_path, *words, **SERVING | {"LLM_MODEL": "霜"}, **encoding)
    assert done.returncode == 1
    assert "?" in done.stdout


def test_a_time_zone_that_does_nothing_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "bot", "chat", TZ="Asia/Shanghai")
    assert "warning: TZ: does nothing on Windows" in done.stderr


def test_setup_writes_a_configuration(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".env.example", tmp_path)
    words = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--owner", "123456", "--no-test")
    done = run(tmp_path, "-m", "bot", "setup", "--non-interactive", *words)
    assert done.returncode == 0, done.stderr
    assert "LLM_MODEL=m\n" in (tmp_path / ".env").read_text("utf-8")


@asynccontextmanager
async def serving(folder: Path, **environment: str) -> AsyncIterator[tuple[Process, str]]:
    """The service on its imitation of Windows, and its port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "run"),
        cwd=folder,
        env=ENVIRONMENT | SERVING | environment,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = told = ""
            while "ready: listening on 127.0.0.1:" not in told:
                line = (await process.stderr.readline()).decode()
                assert line, told
                told += line
        yield process, line.split("127.0.0.1:")[1].split(",")[0]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def end_of(process: Process) -> str:
    """What it told until it ended."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        told = await process.stderr.read()
        assert await process.wait() == 0
    return told.decode()


async def test_the_service_takes_a_onebot_server_and_answers(tmp_path: Path) -> None:
    async with (
        OfflineModel() as model,
        serving(tmp_path, LLM_BASE_URL=model.base_url, LLM_MODEL=model.name) as (process, port),
        Simulator(demo_world(), reconnect=0.05) as simulator,
    ):
        simulator.dial(f"ws://127.0.0.1:{port}/")
        await simulator.wait_connected()
        await simulator.say("@bot hello")
        await simulator.wait_sent(1, timeout=PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert "bot: stopping\n" in await end_of(process)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR2"])  # the last one stands for SIGBREAK
async def test_the_service_ends_properly(tmp_path: Path, name: str) -> None:
    async with serving(tmp_path) as (process, _):
        process.send_signal(getattr(signal, name))
        assert "bot: stopping\n" in await end_of(process)


async def test_commands_reach_a_running_bot_by_a_token_that_only_its_file_has(tmp_path: Path) -> None:
    file = tmp_path / "data/frostagent.db-control"
    async with serving(tmp_path, CONSOLE_PORT="0", CONSOLE_TOKEN="t" * 32) as (process, _):
        shown = await asyncio.to_thread(run, tmp_path, "-m", "bot", "status", "--json")
        assert json.loads(shown.stdout)["pid"] == process.pid
        address = json.loads(file.read_bytes())
        for first in (b"", b"x" * len(address["token"]) + b"\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", address["port"])
            writer.write(first + b'{"command": "stop"}\n')
            assert await reader.read() == b""
            writer.close()
        stopped = await asyncio.to_thread(run, tmp_path, "-m", "bot", "stop")
        assert stopped.stderr.endswith("It has stopped.\n")
        await end_of(process)
    assert not file.exists()
    gone = await asyncio.to_thread(run, tmp_path, "-m", "bot", "status")
    assert "No bot is running here" in gone.stderr
