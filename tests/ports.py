"""Ports for servers that tests start, which must know them before."""

from __future__ import annotations

import errno
import random
import socket

# Below those that a system gives to whoever connects or asks for any: such a port would be somebody else's
# before its server is up, where many tests run at once. RFC 6335, section 6, begins them at 49152, Linux at 32768.
LOW, HIGH = 15_000, 30_000
DRAW = random.SystemRandom()  # not the shared one, which Hypothesis seeds alike in every process


def free_port() -> int:
    """A port of this computer that nobody listens on."""
    return free_ports(1)[0]


def free_ports(number: int) -> list[int]:
    """So many of them."""
    held: dict[int, socket.socket] = {}
    try:
        while len(held) < number:
            port = DRAW.randrange(LOW, HIGH)
            if port not in held:
                try:
                    held[port] = socket.create_server(("127.0.0.1", port))
                except OSError as error:
                    if error.errno != errno.EADDRINUSE:
                        raise
        return list(held)
    finally:
        for one in held.values():
            one.close()
