"""How much room there is on a disk."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

WITHIN = 5.0  # seconds


async def free_at(folder: Path) -> int | None:
    """The bytes that are free where that folder is, or will be made; None where nobody knows."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(WITHIN):
            return await asyncio.to_thread(_free, folder)
    return None


def _free(folder: Path) -> int:
    folder = folder.absolute()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return shutil.disk_usage(there).free
