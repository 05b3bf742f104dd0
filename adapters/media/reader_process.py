"""The bot's side of the process that parses documents (`adapters/media/reader.py`).

Invariant: the bot's own process never parses an untrusted document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import DecodeError, json

from adapters.media.confined_process import IDLE, ConfinedProcess, Work, command_of
from bot.core.documents import Document, UnreadableDocument
from frostagent.types.errors import Lack, MediaError

SECONDS: Final = 8.0  # for one document
PATIENCE: Final = 20.0  # seconds for one document, including the wait for earlier ones
MAX_ANSWER: Final = 4 * 2**20  # bytes: 200,000 characters as JSON, with a margin

PROGRAM = "adapters.media.reader"
READING = Work("reads documents", "read", "reading")


class ReaderProcess:
    """Fits `bot.core.ports.Documents`. `command` starts the process; the times are in seconds."""

    def __init__(
        self,
        *,
        command: Sequence[str] | None = None,
        seconds: float = SECONDS,
        patience: float = PATIENCE,
        idle: float = IDLE,
    ) -> None:
        self._process = ConfinedProcess(
            command or command_of(PROGRAM, idle=idle),
            work=READING,
            seconds=seconds,
            patience=patience,
            max_answer=MAX_ANSWER,
        )

    @property
    def pid(self) -> int | None:
        """The running process's ID, if there is one."""
        return self._process.pid

    async def read(self, data: bytes, *, told: str = "") -> Document:
        """See `Documents.read`. Raises UnreadableDocument."""
        line = " ".join(told.split()).encode("ascii", "replace")[:200]
        try:
            answer = await self._process.ask(line + b"\n" + data)
            return json.decode(answer, type=Document)
        except MediaError as error:
            raise UnreadableDocument(str(error), error.lack) from error
        except DecodeError as error:
            why = "the process that reads documents answered something else"
            raise UnreadableDocument(why, Lack.UNREADABLE) from error

    async def aclose(self) -> None:
        """End the process; the next document would start another."""
        await self._process.aclose()
