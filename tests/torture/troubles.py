"""What can be wrong with a journal while the service starts: on the disk, as it happens to people."""

from __future__ import annotations

import ctypes
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.moments import Kind

DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2  # what lets root pass by the bits of a file; linux/capability.h
VERSION = 0x20080522  # of the capabilities' form: three words for each of two halves
GARBAGE = b"not a database at all " * 1000


@contextmanager
def trouble(kind: Kind, journal: Path) -> Iterator[None]:
    """The journal has this trouble within the block; no process may have it at its beginning."""
    folder = journal.parent
    match kind:
        case Kind.AWAY:
            elsewhere = folder.with_name("elsewhere")
            folder.rename(elsewhere)
            folder.touch()
            yield
            folder.unlink()
            elsewhere.rename(folder)
        case Kind.UNREADABLE:
            folder.chmod(0)
            yield
            folder.chmod(0o700)
        case Kind.READ_ONLY:
            files = [folder, *folder.iterdir()]
            before = [file.stat().st_mode for file in files]
            for file, mode in zip(files, before, strict=True):
                file.chmod(mode & ~0o222)
            yield
            for file, mode in zip(files, before, strict=True):
                file.chmod(mode)
        case Kind.LOCKED:
            other = sqlite3.connect(journal, isolation_level=None)
            other.execute("PRAGMA locking_mode=EXCLUSIVE").close()
            other.execute("BEGIN EXCLUSIVE").close()
            yield
            other.close()
        case Kind.SET_ASIDE | Kind.GONE:
            for file in folder.iterdir():
                file.unlink()
            if kind is Kind.SET_ASIDE:
                journal.write_bytes(GARBAGE)
            yield
        case Kind.KILL | Kind.STOP | Kind.RECOVERY | Kind.TWO | Kind.KEEPING | Kind.DRAFTING | Kind.UNLIMITED:
            yield
        case Kind.REMINDING | Kind.REFUSED | Kind.RENUMBERED | Kind.DEAF | Kind.RECALLED | Kind.FORWARDED:
            yield


def be_ordinary() -> None:
    """From here on the bits of files hold for this process as well, though it be root's."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, halves = (ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, halves):
        raise OSError(ctypes.get_errno(), "capget")
    halves[0] &= ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    if libc.capset(header, halves):
        raise OSError(ctypes.get_errno(), "capset")
