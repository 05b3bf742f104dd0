"""The journal on disk: files that only their owner can read, and how much room is left."""

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
"""How the names of the files end that belong to an SQLite journal: its log, the index of that, and
the lines of entries that are not in its tables yet (`ahead.py`).
"""
TRIES: Final = 50  # at reading lines while another process empties the file

logger = logging.getLogger(__name__)


def make_folder(folder: Path) -> None:
    """Make it where it is missing, with what leads to it; one that is there stays as it is. Raises
    OSError.
    """
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # says what is wrong


def make_file(file: Path) -> None:
    """Make it, empty, where it is missing: SQLite takes an empty file for a new one, and what it
    puts beside it gets the same mode. Raises OSError."""
    if not file.exists():
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, FILE_MODE))


def make_private(files: Iterable[Path]) -> list[Path]:
    """Take the rights of all others on the files that are there; those that had to be changed."""
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
    """The lines of a file as it stood at one moment, while another process adds lines to it, or
    empties it once all of them are in the journal. Half a line at the end is left out.
    """
    for _ in range(TRIES):
        try:
            first, second = file.read_bytes(), file.read_bytes()
        except FileNotFoundError:
            return b""
        if second.startswith(first):
            return first[: first.rfind(b"\n") + 1]
    return b""  # emptied again and again: what it had is applied, or of this very moment


WITHIN = 5.0  # seconds

# A disk that hangs keeps one thread and nobody longer than that, whoever asks meanwhile. A look is
# no loop's own: its loop may end before it does.
_looks: dict[Path, tuple[Future[int | None], float]] = {}


async def free_at(folder: Path) -> int | None:
    """The bytes that are free where that folder is, or will be made; None where nobody knows.
    Whoever asks during a look gets what it finds.
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
    look.set_running_or_notify_cancel()  # who waits for it no more ends it for nobody
    begun = _looks[folder] = look, until
    look.add_done_callback(lambda _: _looks.pop(folder))
    try:
        threading.Thread(target=_look, args=(folder, look), daemon=True).start()
    except RuntimeError:  # there are no threads any more
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
