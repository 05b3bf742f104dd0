"""How a command runs and ends: real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bot.cli.process import run_until_stopped
from tests.bot.cli.commands import SERVING, command, serving, until_ready


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_properly(tmp_path: Path, name: signal.Signals) -> None:
    with serving(tmp_path) as (process, _):
        process.send_signal(name)
        assert process.wait(timeout=10) == 0
        assert "bot: stopping\n" in process.stderr.read()


WORK = """
import asyncio, threading
from bot.cli import process

class NoSignals(asyncio.SelectorEventLoop):
    def add_signal_handler(self, *arguments):
        raise NotImplementedError  # as on Windows

async def work():
    if {hangs}:
        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)  # a look-up that never ends
    try:
        print("working", flush=True)
        await asyncio.Event().wait()
    finally:
        print("ended")

process.LINGER = 0.2
process.fast_loop = lambda: {loop}
process.run_until_stopped(work)
"""


@pytest.mark.parametrize("loop", ["None", "NoSignals"])
@pytest.mark.parametrize("hangs", [False, True])
def test_ctrl_c_ends_the_work_properly_on_any_loop_and_with_a_thread_that_hangs(
    tmp_path: Path, loop: str, hangs: bool
) -> None:
    script = [sys.executable, "-c", WORK.format(loop=loop, hangs=hangs)]
    _, env, cwd = command(tmp_path)
    with subprocess.Popen(
        script, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "working\n"
            process.send_signal(signal.SIGINT)
            said, told = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, said, told) == (0, "ended\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no terminals to open")
@pytest.mark.parametrize(("name", "offered"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_second_ctrl_c_is_offered_to_whoever_typed_the_first_at_a_terminal(
    tmp_path: Path, name: signal.Signals, *, offered: bool
) -> None:
    script = "import logging\nlogging.basicConfig(level=20)" + WORK.format(loop="None", hangs=False)
    _, env, cwd = command(tmp_path)
    ours, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", script], env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=terminal
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(name)
        assert process.wait(timeout=10) == 0
    told = os.read(ours, 4096)
    assert b"stopping" in told
    assert (b"Ctrl-C ends it at once" in told) is offered
    os.close(ours)
    os.close(terminal)


def test_it_can_run_in_a_thread_which_gets_no_signals() -> None:
    done: list[bool] = []

    async def work() -> None:
        done.append(True)

    thread = threading.Thread(target=run_until_stopped, args=(work,))
    thread.start()
    thread.join(timeout=10)
    assert done == [True]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_running_bot_has_no_secret_where_others_could_read_it_and_keeps_what_it_makes_to_itself(
    tmp_path: Path,
) -> None:
    secrets = {"LLM_API_KEY": "sk-planted-key", "ONEBOT_ACCESS_TOKEN": "planted-token-1", "AMAP_KEY": "planted-amap"}
    arguments, env, cwd = command(tmp_path, "run", **SERVING, **secrets, LOG_RUNS="runs.jsonl")
    with subprocess.Popen(arguments, env=env, cwd=cwd, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stderr is not None
        until_ready(process.stderr)
        environ = Path(f"/proc/{process.pid}/environ")
        seen, owner = environ.read_bytes(), environ.stat().st_uid
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
    assert b"planted" not in seen
    assert b"LLM_MODEL=m" in seen
    assert "Umask:\t0077" in status
    assert owner == 0  # as of every process that hides
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "data", *(tmp_path / "data").iterdir())} == {0}
