"""How much room there is on a disk."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

WITHIN = 5.0  # seconds

# A disk that hangs keeps one thread and nobody longer than that, whoever asks meanwhile.
_looks: dict[Path, tuple[Future[int], float]] = {}


async def free_at(folder: Path) -> int | None:
    """The bytes that are free where that folder is, or will be made; None where nobody knows.
    Whoever asks during a look gets what it finds.
    """
    loop = asyncio.get_running_loop()
    found = _looks.get(folder)
    if found is None:
        found = _looks[folder] = Future(), loop.time() + WITHIN
        loop.run_in_executor(None, _look, folder, found[0])
    look, until = found
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout_at(until):
            return await asyncio.shield(asyncio.wrap_future(look))
    return None


def _look(folder: Path, look: Future[int]) -> None:
    try:
        here = folder.absolute()
        there = next(one for one in (here, *here.parents) if one.exists())
        look.set_result(shutil.disk_usage(there).free)
    except OSError as error:
        look.set_exception(error)
    finally:
        del _looks[folder]
