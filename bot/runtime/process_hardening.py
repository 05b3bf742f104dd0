"""Hiding a process from the others of its account, as from programs that tools run: memory,
environment.

The settings hold every secret once they are read. Until then all of it lies in the environment,
which any process of the same account could read in /proc, and which children would inherit.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Iterable, MutableMapping

PR_SET_DUMPABLE = 4  # prctl(2)

logger = logging.getLogger(__name__)


def hide_process() -> None:
    """No core dumps, and nobody but root reads our memory and environment in /proc. Linux only."""
    if sys.platform != "linux":
        return
    try:
        refused = ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        refused = True
    if refused:
        logger.info(
            "programs of this account can read the bot's memory: "
            "the system does not let it be hidden"
        )


def forget_secrets(environ: MutableMapping[str, str], names: Iterable[str]) -> None:
    """Take these variables out of the environment, and out of the memory they came in (what /proc
    shows).
    """
    for name in {*names} & {*environ}:
        if sys.platform == "linux":
            _wipe(name)
        del environ[name]


def _wipe(name: str) -> None:
    """Overwrite the value where the system put it at the start."""
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    place = library.getenv(name.encode())
    if place:
        ctypes.memset(place, 0, len(ctypes.string_at(place)))
