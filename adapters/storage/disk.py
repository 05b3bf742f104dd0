"""How much room there is on a disk."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

WITHIN = 5.0  # seconds

# A disk that hangs keeps one thread and nobody longer than that, whoever asks meanwhile.
_looks: dict[Path, tuple[asyncio.Future[int | None], float]] = {}


async def free_at(folder: Path) -> int | None:
    """The bytes that are free where that folder is, or will be made; None where nobody knows.
    Whoever asks during a look gets what it finds.
    """
    loop = asyncio.get_running_loop()
    found = _looks.get(folder)
    if found is None:
        try:
            look = loop.run_in_executor(None, _look, folder)
        except RuntimeError:  # there are no threads any more
            return None
        look.add_done_callback(lambda _: _looks.pop(folder))  # however it ends
        found = _looks[folder] = look, loop.time() + WITHIN
    look, until = found
    await asyncio.wait([look], timeout=until - loop.time())
    return look.result() if look.done() and not look.cancelled() else None


def _look(folder: Path) -> int | None:
    here = folder.absolute()
    try:
        there = next((one for one in (here, *here.parents) if one.exists()), here)
        return shutil.disk_usage(there).free
    except OSError:
        return None
