"""A process on a terminal of its own, as a person has it before them."""

from __future__ import annotations

import codecs
import errno
import os
import pty
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import psutil

CTRL_C = "\x03"
TAKE_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Without it Ctrl-C would be a letter like any other."""


BLINK = 0.005  # seconds between two looks at what cannot be waited for


class Screen:
    """What the process shows, and the keys typed there."""

    def __init__(self, terminal: int, process: Popen[bytes]) -> None:
        self._terminal = terminal
        self._process = process
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a letter may come in two pieces
        self.shown = ""

    def wait_for(self, text: str, *, seconds: float = 30) -> None:
        """Until the text is on the screen."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} is not in {self.shown!r}"
            assert self._look(left), f"the process ended, and {text!r} is not in {self.shown!r}"

    def type(self, text: str) -> None:
        """Press keys; "\\x03" is Ctrl-C, which is pressed once the process waits for keys."""
        if CTRL_C in text:
            self._wait_until_it_reads()
        os.write(self._terminal, text.encode())

    def _wait_until_it_reads(self, *, seconds: float = 30) -> None:
        """Until the process sleeps, which behind a prompt it does in read(2).

        A signal between Python's last look for one and that call is noticed only when the call returns, and nobody
        presses another key here.
        """
        process, end = psutil.Process(self._process.pid), time.monotonic() + seconds
        while process.status() != psutil.STATUS_SLEEPING:
            assert time.monotonic() < end, f"it never waits for keys: {self.shown!r}"
            self._look(BLINK)

    def _look(self, seconds: float) -> bool:
        """Take what comes onto the screen within so many seconds; False where nothing more can come."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        try:
            self.shown += self._decoder.decode(os.read(self._terminal, 4096))
        except OSError as error:
            if error.errno != errno.EIO:  # what Linux says of a terminal that nobody has open any more
                raise
            return False
        return True

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
