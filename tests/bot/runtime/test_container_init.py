"""The first process of a container: real processes, the first one made what orphans fall to."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys

import pytest

from bot.runtime import container_init
from tests.bot.cli.commands import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers are Linux's")

SCRIPT = """
import ctypes, os, signal, subprocess
from bot.runtime import container_init
system = ctypes.CDLL(None)
system.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: as if this were the first process
container_init.run_as_init()
signal.alarm(30)  # nothing of a test that failed goes on
orphan = subprocess.run(["sh", "-c", "true & echo $!"], stdout=subprocess.PIPE, text=True).stdout.strip()
while os.path.exists(f"/proc/{orphan}"):
    pass
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
print("hidden" if system.prctl(3, 0, 0, 0, 0) == 0 else "open", os.getpid(), flush=True)
signal.pause()
"""


@pytest.mark.parametrize(("name", "code"), [(signal.SIGTERM, 7), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_it_buries_orphans_hides_passes_signals_on_and_ends_as_the_bot_does(name: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            state, child = process.stdout.readline().split()
            assert (state, int(child) != process.pid) == ("hidden", True)
            process.send_signal(name)
            assert process.wait(timeout=20) == code
        finally:
            process.kill()


class Attended(Exception):
    """It was asked to attend."""


def test_the_bot_is_not_the_first_process_of_its_container(monkeypatch: pytest.MonkeyPatch) -> None:
    def attend() -> None:
        raise Attended

    monkeypatch.setattr(container_init, "run_as_init", attend)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(Attended):
        runpy.run_module("bot", run_name="__main__")
