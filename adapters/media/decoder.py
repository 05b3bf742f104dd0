"""The program that pictures of strangers are unpacked by: `python -m adapters.media.decoder`.

A decoder is C that reads whatever anybody sends, so it runs where little can be lost: a process
with no secrets, no files to write, bounded memory and time, killed by `adapters/media/decoding.py`
where it takes too long, dead with the bot however that ends.

On its input come pictures, each behind its length (four bytes, big-endian); on its output goes for
each one an answer: a byte (0 a JPEG, 1 why not), the length, and that. It ends with its input, and
when nothing came for a while.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
from contextlib import suppress
from pathlib import Path

from adapters.media.frames import ANSWER, HEAD, REFUSED, SHOWN
from adapters.media.pictures import write_jpeg
from bot.domain.errors import MediaError

if sys.platform != "win32":
    import resource

MEMORY = (
    448 * 2**20
)  # bytes of address space: 32 million dots take up to 380 MiB (of WebP only 24 million fit)
CPU = 4  # seconds for one picture; one of 32 million dots takes one or two
FILES = 32

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, SIGKILL = 1, 4, 38, 9


def main() -> None:
    """Answer until nothing more comes. Arguments: the seconds after which that is so, and who
    started it.
    """
    idle, parent = float(sys.argv[1]), int(sys.argv[2])
    confine()
    # It was gone before we could ask to go with it. On Windows a launcher stands between us.
    if sys.platform != "win32" and os.getppid() != parent:
        return
    serve(sys.stdin.fileno(), sys.stdout.fileno(), idle=idle)


def serve(source: int, sink: int, *, idle: float) -> None:
    """Answer each picture from one file descriptor on another."""
    while (data := _read_one(source, idle)) is not None:
        _allow_time()
        try:
            kind, answer = SHOWN, write_jpeg(data)
        except MediaError as error:
            kind, answer = REFUSED, str(error).encode()
        _write_all(sink, ANSWER.pack(kind, len(answer)) + answer)


def confine() -> None:
    """Give up what a decoder does not need. On Windows it keeps all of it."""
    if sys.platform == "linux":
        _confine_linux()
    if sys.platform != "win32":
        for what, most in (
            (resource.RLIMIT_AS, MEMORY),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, FILES),
        ):
            _, hard = resource.getrlimit(what)
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (bound, bound))


def _confine_linux() -> None:
    """Die with whoever started us, and first where memory is short; gain no rights."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Where the interpreter may not be read (Dockerfile), the file below would be root's.
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _allow_time() -> None:
    """So many seconds of the processor from now on; then the kernel ends us, whoever else is
    busy.
    """
    if sys.platform != "win32":
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + CPU
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def _read_one(source: int, idle: float) -> bytes | None:
    """The next picture; None where none came in time, or nobody is there any more."""
    # Windows cannot wait for a pipe: there it ends with its input alone.
    if sys.platform != "win32" and not select.select([source], [], [], idle)[0]:
        return None
    head = _read_exactly(source, HEAD.size)
    return None if head is None else _read_exactly(source, HEAD.unpack(head)[0])


def _read_exactly(source: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = os.read(source, min(size - len(data), 2**20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _write_all(sink: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(sink, rest) :]


if __name__ == "__main__":
    main()
