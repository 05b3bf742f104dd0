"""A process on a terminal of its own, as a person has it before them."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

TAKE_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Without it Ctrl-C would be a letter like any other."""


class Screen:
    """What the process shows, and the keys typed there."""

    def __init__(self, terminal: int, process: Popen[bytes]) -> None:
        self._terminal = terminal
        self._process = process
        self.shown = ""

    def wait_for(self, text: str, *, seconds: float = 30) -> None:
        """Until the text is on the screen."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} is not in {self.shown!r}"
            if select.select([self._terminal], [], [], left)[0]:
                self.shown += os.read(self._terminal, 4096).decode("utf-8", "replace")

    def type(self, text: str) -> None:
        """Press keys; "\\x03" is Ctrl-C."""
        os.write(self._terminal, text.encode())

    def wait(self) -> int:
        """The exit code, once the process has ended."""
        return self._process.wait(timeout=30)


@contextmanager
def on_a_terminal(words: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> Iterator[Screen]:
    """Start a process on a new terminal; it does not outlive the block."""
    ours, theirs = pty.openpty()

    with Popen(
        [sys.executable, "-c", TAKE_THE_TERMINAL, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            yield Screen(ours, process)
        finally:
            process.kill()
            os.close(ours)
