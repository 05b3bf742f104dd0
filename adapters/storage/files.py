"""The journal's files, readable by their owner only, and the free space on the disk."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from frostagent.cancellation import BROKEN

FILE_MODE, FOLDER_MODE = 0o600, 0o700
OTHERS = 0o077

LINES: Final = "-ahead"
BESIDE: Final = ("-wal", "-shm", LINES)
"""The suffixes of the files of an SQLite journal: its log, the log's index, and the entries written
ahead (`ahead.py`).
"""
TRIES: Final = 50  # to read lines while another process empties the file

logger = logging.getLogger(__name__)


def make_folder(folder: Path) -> None:
    """Create the folder and its parents; existing ones stay unchanged. Raises OSError."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # raises an error that names the cause


def make_file(file: Path) -> None:
    """Create an empty file if missing: SQLite takes it for a new database, and creates the files
    beside it with the same mode. Raises OSError.
    """
    if not file.exists():
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, FILE_MODE))


def make_private(files: Iterable[Path]) -> list[Path]:
    """Remove the rights of others on the files that exist. Returns those that were changed."""
    changed = []
    for file in files:
        try:
            mode = file.lstat().st_mode
            if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
                file.chmod(FILE_MODE)
                changed.append(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning(
                "others can read %s, and that cannot be changed (%s)", file, error.strerror
            )
    return changed


def read_whole_lines(file: Path) -> bytes:
    """Return the lines of a file at one moment, while another process appends lines or empties it
    once they are in the journal. Half a line at the end is left out.
    """
    for _ in range(TRIES):
        try:
            first, second = file.read_bytes(), file.read_bytes()
        except FileNotFoundError:
            return b""
        if second.startswith(first):
            return first[: first.rfind(b"\n") + 1]
    return b""  # emptied each time: its lines are applied, or brand-new


WITHIN = 5.0  # seconds

# A disk that hangs blocks one thread, and callers for at most WITHIN, however many there are. A
# look does not belong to an event loop, which may end first.
_looks: dict[Path, tuple[Future[int | None], float]] = {}


async def free_at(folder: Path) -> int | None:
    """Return the free bytes at this folder, existing or not; None if unknown. Concurrent callers
    share one look.
    """
    now = asyncio.get_running_loop().time()
    look, until = _looks.get(folder) or _begun(folder, now + WITHIN)
    if until <= now:
        return None
    try:
        async with asyncio.timeout_at(until):
            return await asyncio.wrap_future(look)
    except TimeoutError:
        return None


def _begun(folder: Path, until: float) -> tuple[Future[int | None], float]:
    look = Future[int | None]()
    look.set_running_or_notify_cancel()  # a caller that gives up does not cancel it for others
    begun = _looks[folder] = look, until
    look.add_done_callback(lambda _: _looks.pop(folder))
    try:
        threading.Thread(target=_look, args=(folder, look), daemon=True).start()
    except RuntimeError:  # no more threads can be started
        look.set_result(None)
    return begun


def _look(folder: Path, look: Future[int | None]) -> None:
    try:
        look.set_result(_free(folder))
    except BROKEN as error:
        look.set_exception(error)


def _free(folder: Path) -> int | None:
    here = folder.absolute()
    try:
        there = next((one for one in (here, *here.parents) if one.exists()), here)
        return shutil.disk_usage(there).free
    except OSError:
        return None
