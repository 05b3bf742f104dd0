"""The process that unpacks pictures (`adapters/media/decoder.py`), seen from the bot.

Invariant: the bot's own process reads only the first bytes of a stranger's image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.media.confined_process import IDLE, ConfinedProcess, Work, command_of
from adapters.media.formats import describe, picture_kind
from frostagent.types.errors import MediaError

SECONDS = 5.0  # for one picture
PATIENCE = 10.0  # seconds for one picture with those before it
MAX_ANSWER: Final = 4 * 2**20  # bytes; a JPEG of 1.15 million dots is far smaller

PROGRAM = "adapters.media.decoder"
UNPACKING = Work("unpacks pictures", "unpacked", "unpacking")


class DecoderProcess:
    """Decodes images in another process, started by `command`; the times are in seconds."""

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
            work=UNPACKING,
            seconds=seconds,
            patience=patience,
            max_answer=MAX_ANSWER,
        )

    @property
    def pid(self) -> int | None:
        """The process that is there now, if one is."""
        return self._process.pid

    async def decode(self, data: bytes) -> bytes:
        """Return the image as a JPEG of moderate size. Raises MediaError if that is impossible."""
        if not picture_kind(data):
            raise MediaError(f"it is no picture but {describe(data)}")
        return await self._process.ask(data)

    async def aclose(self) -> None:
        """End the process; the next picture would start another."""
        await self._process.aclose()
