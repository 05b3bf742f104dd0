"""Binding and dialling a Unix socket at any path: the system itself takes 107 bytes."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 107 if sys.platform == "linux" else 103  # bytes of a socket's path (unix(7))


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """The address for `bind` and `connect` of this path while the block runs. Raises OSError."""
    name = str(path)
    if len(os.fsencode(name)) <= LONGEST or sys.platform != "linux":
        yield name
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def new_socket() -> socket.socket:
    """Raises OSError where there are no such sockets, as on Windows."""
    if sys.platform == "win32":
        raise OSError("this system has no Unix sockets")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
