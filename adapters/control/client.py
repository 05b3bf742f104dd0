"""The command's side of the control socket. Everything here blocks."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapters.control.address import dial

ANSWERED_WITHIN = 15.0  # seconds; a reload may wait for a database
CHUNK = 65_536


class NotRunning(Exception):
    """No bot listens there."""


class NoAnswer(Exception):
    """There is no usable answer; the text says why."""


class Answered:
    """A connection with the answer to a command."""

    def __init__(self, answer: dict[str, Any], connection: socket.socket) -> None:
        self.answer = answer
        self._connection = connection

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until the bot has ended. Returns False after `seconds`."""
        self._connection.settimeout(seconds)
        try:
            return not self._connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True


@contextmanager
def ask_bot(
    path: Path, command: str, *, seconds: float = ANSWERED_WITHIN, **details: int
) -> Iterator[Answered]:
    """Send a command. Yields the answer with the connection. Raises NotRunning and NoAnswer."""
    try:
        connection = dial(path, seconds)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        raise NotRunning from None
    except OSError as error:
        raise NoAnswer(f"{path}: {error.strerror or error}") from None
    with connection:
        question: dict[str, str | int] = {"command": command, **details}
        yield Answered(_exchange(connection, question, seconds), connection)


def _exchange(
    connection: socket.socket, question: Mapping[str, str | int], seconds: float
) -> dict[str, Any]:
    data = b""
    try:
        connection.sendall(json.dumps(question).encode() + b"\n")
        while not data.endswith(b"\n") and (chunk := connection.recv(CHUNK)):
            data += chunk
        answer = json.loads(data)
    except TimeoutError:
        raise NoAnswer(f"it said nothing for {seconds:g} s") from None
    except (OSError, ValueError):
        raise NoAnswer("it ended before it had answered") from None
    if not isinstance(answer, dict):
        raise NoAnswer("it answered something else")
    return answer
