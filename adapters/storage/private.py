"""Files that only their owner reads: the journal has what people said."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

FILE, FOLDER = 0o600, 0o700
OTHERS = 0o077

logger = logging.getLogger(__name__)


def make_folder(folder: Path) -> None:
    """Make it where it is missing, with what leads to it; one that is there stays as it is. Raises
    OSError.
    """
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=FOLDER, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # says what is wrong


def make_file(file: Path) -> None:
    """Make it, empty, where it is missing: SQLite takes an empty file for a new one, and what it
    puts beside it gets the same mode. Raises OSError."""
    if not file.exists():
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, FILE))


def make_private(files: Iterable[Path]) -> list[Path]:
    """Take the rights of all others on the files that are there; those that had to be changed."""
    changed = []
    for file in files:
        try:
            mode = file.lstat().st_mode
            if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
                file.chmod(FILE)
                changed.append(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning(
                "others can read %s, and that cannot be changed (%s)", file, error.strerror
            )
    return changed
