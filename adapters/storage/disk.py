"""How much room there is on a disk."""

from __future__ import annotations

import asyncio
import shutil
import threading
from concurrent.futures import Future
from pathlib import Path

from bot.domain.cancellation import BROKEN

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
