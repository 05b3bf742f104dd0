"""How much room there is on a disk."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

WITHIN = 5.0  # seconds


_asked = set[Path]()  # a disk that hangs keeps one thread, not one for each who asks


async def free_at(folder: Path) -> int | None:
    """The bytes that are free where that folder is, or will be made; None where nobody knows, also
    while an earlier look has no answer.
    """
    if folder in _asked:
        return None
    _asked.add(folder)
    look = asyncio.get_running_loop().run_in_executor(None, _free, folder)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(WITHIN):
            return await asyncio.shield(look)
    return None


def _free(folder: Path) -> int:
    try:
        here = folder.absolute()
        there = next(one for one in (here, *here.parents) if one.exists())
        return shutil.disk_usage(there).free
    finally:
        _asked.discard(folder)
