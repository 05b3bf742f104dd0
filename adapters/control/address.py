"""The address of the control socket: a Unix socket at a path, which may exceed the system's limit
of 107 bytes.

On Windows it is a port of 127.0.0.1. The file at the path holds the port, and a token that changes
with every start, so access to the file is access to the socket.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

LONGEST = 107 if sys.platform == "linux" else 103  # bytes of a socket's path (unix(7))
LOOPBACK = "127.0.0.1"


class LoopbackAddress(Struct, frozen=True, forbid_unknown_fields=True):
    """The file's content. The token is sent first, as a line."""

    port: int
    token: str

    def write(self, path: Path) -> None:
        """Raises OSError, also if the file holds something else."""
        if path.exists() and self.read(path) is None:
            raise FileExistsError(f"{path} is no address of a bot")
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> LoopbackAddress | None:
        """None if the file holds something else. Raises OSError."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except msgspec.DecodeError:
            return None


def dial(path: Path, seconds: float) -> socket.socket:
    """Connect to the bot at the path; each answer may take `seconds`. Raises OSError."""
    if sys.platform == "win32":
        address = LoopbackAddress.read(path)
        if address is None:
            raise FileNotFoundError(f"{path} is no address of a bot")
        connection = socket.create_connection((LOOPBACK, address.port), seconds)
        connection.sendall(address.token.encode() + b"\n")
        return connection
    connection = new_socket()
    connection.settimeout(seconds)
    try:
        with address_of(path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """The address of this path for `bind` and `connect`, while the block runs. Raises OSError."""
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
    if sys.platform == "win32":
        raise OSError("Windows has no Unix sockets")
    else:  # noqa: RET506  # mypy sees a platform by its branch
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
