"""Landlock: a Linux process restricts itself without any privilege (kernel 5.13; TCP from 6.7,
signals from 6.12).

Source: docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
VERSION = 1  # asks CREATE_RULESET for the version it is
PATH_BENEATH = 1
READ_FILE, READ_DIR = 1 << 2, 1 << 3
SINCE = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 5: 1 << 16}  # version -> the first right it lacks
TCP = 0b11  # bind, connect
OUTSIDE = 0b11  # abstract sockets and signals of others


def landlock_version() -> int:
    """The version of the kernel's interface; 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(CREATE_RULESET, None, 0, VERSION))


def restrict_process(readable: Iterable[Path]) -> bool:
    """Restrict this process for good: it can only read, and only below these directories; it cannot
    run programs, use TCP or signal other processes, as far as the kernel supports it. Files that
    are open stay open. Returns False without Landlock. `NO_NEW_PRIVS` must be set before.
    """
    version = landlock_version()
    if not version:
        return False
    rights = SINCE[max(since for since in SINCE if since <= version)] - 1
    rules = struct.pack("=Q", rights)
    rules += struct.pack("=Q", TCP) if version >= 4 else b""
    rules += struct.pack("=Q", OUTSIDE) if version >= 6 else b""
    ruleset = _call(CREATE_RULESET, rules, len(rules), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            with suppress(OSError):
                _allow_reading(ruleset, path)
        return _call(RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow_reading(ruleset: int, path: Path) -> None:
    if sys.platform != "linux":
        return
    place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        _call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", READ_FILE | READ_DIR, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: int | bytes | None) -> int:
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *wide))
