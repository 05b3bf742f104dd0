"""Media of drafts that are too large for the journal: a file each, in a folder of the media folder
that no model can name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path

from bot.domain.shares import WHOLE, Share

FOLDER = ".drafts"
MOST = 256 * 1024 * 1024  # bytes of all of them
OWN_FOLDER, OWN_FILE = 0o700, 0o600
UNDONE = ".part"

logger = logging.getLogger(__name__)


class DraftFiles:
    """Fits `Shelf`: files below `root`, no more than `most` bytes of a `share`'s; what cannot be
    written is not kept, and the log says so.
    """

    def __init__(self, root: Path, share: Share = WHOLE, *, most: int = MOST) -> None:
        # Each share deletes what it does not know.
        self._folder = root / (FOLDER if share == WHOLE else f"{FOLDER}-{share.partition}")
        self._most = most

    async def keep(self, name: str, content: bytes) -> None:
        """Write it."""
        await asyncio.to_thread(self._keep, name, content)

    async def find(self, name: str) -> bytes:
        """It; empty where it is not there, or cannot be read."""
        return await asyncio.to_thread(self._find, name)

    async def keep_only(self, names: Collection[str]) -> None:
        """Delete all others."""
        await asyncio.to_thread(self._keep_only, names)

    def _keep(self, name: str, content: bytes) -> None:
        file, part = self._folder / name, self._folder / f"{name}{UNDONE}"
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(mode=OWN_FOLDER, parents=True)
            there = sum(one.stat().st_size for one in self._folder.iterdir())
            if there + len(content) > self._most:
                logger.warning("the media of draft %s are not kept: there are too many", name)
                return
            part.touch(OWN_FILE)
            part.write_bytes(content)
            part.replace(file)
        except OSError as error:
            logger.warning("the media of draft %s are not kept (%s)", name, error.strerror)

    def _find(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            logger.warning("the media of draft %s cannot be read (%s)", name, error.strerror)
            return b""

    def _keep_only(self, names: Collection[str]) -> None:
        try:
            files = list(self._folder.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            logger.warning("media of drafts cannot be deleted (%s)", error.strerror)
            return
        for file in files:
            if file.name not in names:
                _delete(file)


def delete_lost(root: Path, is_known: Callable[[str], bool]) -> None:
    """Delete the media of drafts whose turns the journal does not know, of every share. Blocks."""
    for file in root.glob(f"{FOLDER}*/*"):
        if not is_known(file.name.removesuffix(UNDONE).partition("-")[2]):
            _delete(file)


def _delete(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s cannot be deleted (%s)", file, error.strerror)
