"""The program that unpacks pictures: what it speaks, and what it may not do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.media.decoder import CPU, MEMORY, serve
from adapters.media.decoder_protocol import ANSWER, HEAD, REFUSED, SHOWN
from tests.adapters.media import hostile

ROOT = Path(__file__).parents[3]
HONEST = hostile.encoded("PNG")


@contextmanager
def started(*, idle: float = 60, parent: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-P", "-m", "adapters.media.decoder", str(idle), str(parent or os.getpid())]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env={"PYTHONPATH": str(ROOT)}, **pipes) as process:  # type: ignore[call-overload]  # two
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[bytes], data: bytes) -> tuple[int, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HEAD.pack(len(data)) + data)
    process.stdin.flush()
    kind, size = ANSWER.unpack(process.stdout.read(ANSWER.size))
    return kind, process.stdout.read(size)


def test_pictures_are_answered_one_after_the_other_until_the_input_ends() -> None:
    with started() as process:
        for _ in range(2):
            kind, jpeg = ask(process, HONEST)
            assert (kind, jpeg[:3]) == (SHOWN, b"\xff\xd8\xff")
            assert ask(process, b"GIF89a") == (REFUSED, b"it cannot be read (UnidentifiedImageError)")
            assert ask(process, b"") == (REFUSED, b"it is no picture")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def test_it_ends_in_the_middle_of_a_picture_that_does_not_come() -> None:
    for piece in (b"", b"\0\0", HEAD.pack(100), HEAD.pack(100) + HONEST[:50]):
        source, into = os.pipe()
        os.write(into, piece)
        os.close(into)
        serve(source, -1, idle=30)
        os.close(source)


def test_it_ends_when_nothing_comes() -> None:
    with started(idle=0.01) as process:
        assert process.wait(30) == 0


def test_it_does_not_begin_for_somebody_who_is_gone() -> None:
    with started(parent=2**22 + 1) as process:
        assert process.wait(30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_has_little_memory_and_time_and_can_write_no_file() -> None:
    with started() as process:
        ask(process, HONEST)
        proc = Path(f"/proc/{process.pid}")
        limits = {line[:25].strip(): line[26:].split()[0] for line in (proc / "limits").read_text().splitlines()}
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines())
        assert limits["Max address space"] == str(MEMORY)
        assert limits["Max file size"] == limits["Max core file size"] == "0"
        assert limits["Max open files"] == "32"
        assert CPU < int(limits["Max cpu time"]) <= CPU + 2
        assert status["NoNewPrivs"] == "1"
        assert (proc / "oom_score_adj").read_text() == "1000\n"
