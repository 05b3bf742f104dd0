"""The life of a program that takes strangers' bytes apart: C, or a format made to trick, so it runs
where little can be lost: a process with no secrets, no files but its libraries, no network and no
other processes (as far as the system can), bounded memory and time. The
bot's side of it, `adapters/media/confined_process.py`, kills it when it takes too long; it dies
with the bot.

On its input comes work, each piece behind its length (four bytes, big-endian); on its output goes
for each one an answer: a byte (0 done, 1 why not), the length, and that. It ends with its input,
and when nothing came for a while.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from adapters.media.confined_protocol import ANSWER, DONE, HEAD, REFUSED, write_refusal
from adapters.media.landlock import restrict_process
from frostagent.types.errors import MediaError

if sys.platform != "win32":
    import resource

FILES = 32

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, SIGKILL = 1, 4, 38, 9

Do: TypeAlias = Callable[[bytes], bytes]
"""Does one piece of work. Raises MediaError."""


def main(do: Do, *, memory: int, cpu: int) -> None:
    """Answer until nothing more comes, with so many bytes of address space and so many seconds of
    the processor for one piece. Arguments: the seconds after which that is so, and who started it.
    """
    idle, parent = float(sys.argv[1]), int(sys.argv[2])
    confine(memory)
    # It was gone before we could ask to go with it. On Windows a launcher stands between us.
    if sys.platform != "win32" and os.getppid() != parent:
        return
    serve(sys.stdin.fileno(), sys.stdout.fileno(), do=do, cpu=cpu, idle=idle)


def serve(source: int, sink: int, *, do: Do, cpu: int, idle: float) -> None:
    """Answer each piece of work from one file descriptor on another."""
    while (data := _read_one(source, idle)) is not None:
        _allow_time(cpu)
        try:
            kind, answer = DONE, do(data)
        except MediaError as error:
            kind, answer = REFUSED, write_refusal(error)
        _write_all(sink, ANSWER.pack(kind, len(answer)) + answer)


def confine(memory: int) -> None:
    """Give up what such a program does not need. On Windows it keeps all of it."""
    if sys.platform == "linux":
        _confine_linux()
    if sys.platform != "win32":
        for what, most in (
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NPROC, 0),  # no other process beside it; root may all the same
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
    restrict_process(_libraries())


SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
PACKAGES = ("site-packages", "dist-packages")


def _libraries() -> list[Path]:
    """Where what is imported later is, and nothing else: our own packages stand beside `.env`."""
    ours = {name for name, _, below in (one.partition(".") for one in sys.modules) if below}
    own = [Path(place) for name in ours for place in getattr(sys.modules[name], "__path__", ())]
    others = [Path(place) for place in sys.path if Path(place).name in PACKAGES]
    return [*map(Path, SYSTEM), Path(os.__file__).parent, *others, *own]


def _allow_time(cpu: int) -> None:
    """So many seconds of the processor from now on; then the kernel ends us, whoever else is
    busy.
    """
    if sys.platform != "win32":
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + cpu
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def _read_one(source: int, idle: float) -> bytes | None:
    """The next piece of work; None where none came in time, or nobody is there any more."""
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
