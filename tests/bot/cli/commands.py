"""The commands as a person types them: processes of their own, for the tests of several modules.

Most of what a command costs is loading its libraries. So a process that has loaded them forks for each: what the
child reads, writes, is sent and ends with is its own. That `python -m bot` itself does the same is for the tests
that start it by `command`.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[3]
WAITLESS = {"BOT_DEBOUNCE": "0", "BOT_PACE": "0"}
"""Settings without which the bot does not wait as among people."""
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(
        ("BOT_", "LLM_", "ONEBOT_", "TOOLS_", "CODER_", "MEDIA_", "STORE_", "LOG_", "UPSTREAM_", "SYSTEM_")
    )
}
SERVING = {
    "LLM_BASE_URL": "http://127.0.0.1:9/v1",
    "LLM_MODEL": "m",
    "ONEBOT_HOST": "127.0.0.1",
    "ONEBOT_PORT": "0",
}
LOADED = ["tests.bot.cli.commands", "bot.cli.cli", "bot.app", "bot.cli.chat", "bot.cli.doctor.run"]
PATIENCE = 50.0
"""Seconds for a command to end; the machine may be busy."""


def command(folder: Path, *words: str, **environment: str) -> tuple[list[str], dict[str, str], Path]:
    """A command for `subprocess`: its words, its environment and its folder."""
    return (
        [sys.executable, "-m", "bot", *words],
        CLEAN | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8", **WAITLESS} | environment,
        folder,
    )


@cache
def loaded() -> ForkServerContext:
    """Who forks for each command."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return context


def become(words: list[str], environment: dict[str, str], folder: Path, streams: list[str | Connection]) -> None:
    """In the child: `python -m bot`, with these as its standard input, output and error."""
    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_RDWR) if isinstance(stream, str) else stream.fileno()
        os.dup2(opened, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1, encoding="utf-8", closefd=False) for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = ["bot", *words]
    runpy.run_module("bot", run_name="__main__")


def run(folder: Path, *words: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command wrote, and the code it ended with."""
    arguments, env, cwd = command(folder, *words, **environment)
    with tempfile.TemporaryDirectory() as kept:
        streams = [Path(kept, name) for name in ("typed", "said", "told")]
        for stream, text in zip(streams, (typed, "", ""), strict=True):
            stream.write_text(text, encoding="utf-8")
        process = loaded().Process(target=become, args=(list(words), env, cwd, [str(stream) for stream in streams]))
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(arguments, PATIENCE)
        said, told = (stream.read_text(encoding="utf-8") for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, process.exitcode, said, told)


def until_ready(stderr: IO[str]) -> str:
    """The port at which the service that writes there listens."""
    for line in stderr:
        if "ready: listening on 127.0.0.1:" in line:
            return line.split("127.0.0.1:")[1].split(",")[0]
    raise AssertionError("the service ended before it was ready")


@dataclass(frozen=True)
class Served:
    """The service as a process."""

    process: BaseProcess
    stderr: IO[str]

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def is_alive(self) -> bool:
        return self.process.is_alive()

    def wait(self, timeout: float) -> int:
        self.process.join(timeout)
        assert self.process.exitcode is not None, f"no end within {timeout} s"
        return self.process.exitcode


@contextmanager
def serving(folder: Path, **more: str) -> Iterator[tuple[Served, str]]:
    """The service and its port, until the block ends."""
    _, env, cwd = command(folder, **SERVING, **more)
    told, tells = loaded().Pipe(duplex=False)
    process = loaded().Process(target=become, args=(["run"], env, cwd, [os.devnull, os.devnull, tells]))
    process.start()
    tells.close()
    with told, os.fdopen(os.dup(told.fileno()), encoding="utf-8") as stderr:
        served = Served(process, stderr)
        try:
            yield served, until_ready(stderr)
        finally:
            process.kill()
            process.join(PATIENCE)
