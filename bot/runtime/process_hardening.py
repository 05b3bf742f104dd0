"""Hides this process's memory and environment from others of its account, such as programs that
tools run.

Before the settings are read, all secrets are in the environment, which any process of the same
account could read in /proc and children would inherit.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Iterable, MutableMapping

PR_SET_DUMPABLE = 4  # prctl(2)

logger = logging.getLogger(__name__)


def hide_process() -> None:
    """Disable core dumps, and leave memory and environment in /proc to root. Linux only."""
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
    """Remove these variables from the environment and, on Linux, wipe them from /proc."""
    for name in {*names} & {*environ}:
        if sys.platform == "linux":
            _wipe(name)
        del environ[name]


def _wipe(name: str) -> None:
    """Overwrite the value in the process's initial environment."""
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    place = library.getenv(name.encode())
    if place:
        ctypes.memset(place, 0, len(ctypes.string_at(place)))
