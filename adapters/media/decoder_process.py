"""The bot's side of the image decoder (`adapters/media/decoder.py`): a process started on demand,
for one image at a time, killed if one takes too long. It ends by itself when idle.

Invariant: the bot's own process reads only the first bytes of a stranger's image.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from adapters.media.decoder_protocol import ANSWER, HEAD, MAX_ANSWER, SHOWN
from adapters.media.formats import describe, picture_kind
from frostagent.types.errors import MediaError

logger = logging.getLogger(__name__)

SECONDS = 5.0  # for one image, including the start of the process
PATIENCE = 10.0  # seconds for one image, including its wait for others
IDLE = 60  # seconds after which the process ends, to free about 40 MiB
LAST = 2.0  # seconds for a killed process to be gone

PROGRAM = ("-P", "-m", "adapters.media.decoder")


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
        self._command = command or (sys.executable, *PROGRAM, str(idle), str(os.getpid()))
        self._seconds = seconds
        self._patience = patience
        self._turn = asyncio.Lock()
        self._running: _Running | None = None

    @property
    def pid(self) -> int | None:
        """The id of the running process, if any."""
        running = self._running
        return (
            None
            if running is None or running.is_over or running.transport is None
            else running.transport.get_pid()
        )

    async def decode(self, data: bytes) -> bytes:
        """Return the image as a JPEG of moderate size. Raises MediaError if that is impossible."""
        if not picture_kind(data):
            raise MediaError(f"it is no picture but {describe(data)}")
        try:
            async with asyncio.timeout(self._patience), self._turn:
                return await self._decode(data)
        except TimeoutError:
            raise MediaError(
                f"{self._patience:g} s were not enough for it and those before it"
            ) from None

    async def aclose(self) -> None:
        """End the process; the next image starts another."""
        running, self._running = self._running, None
        if running is not None:
            await running.end()

    async def _decode(self, data: bytes) -> bytes:
        answer = await self._ask(data)
        if answer is None:  # it ended from idleness just then
            answer = await self._ask(data)
        if answer is None:
            raise MediaError("the process that unpacks pictures does not stay")
        kind, body = answer
        if kind != SHOWN:
            raise MediaError(body.decode("utf-8", "replace")[:200])
        return body

    async def _ask(self, data: bytes) -> tuple[int, bytes] | None:
        """Return the process's answer; None if it ended by itself. Raises MediaError."""
        is_well = False
        try:
            async with asyncio.timeout(self._seconds):
                running = await self._started()
                answer = await running.ask(data)
            is_well = answer is not None
        except TimeoutError:
            logger.warning(
                "a picture was not unpacked in %g s: the process at it is ended", self._seconds
            )
            raise MediaError(f"it was not unpacked in {self._seconds:g} s") from None
        except OSError as error:
            raise MediaError(
                f"the process that unpacks pictures cannot be started ({error.strerror})"
            ) from error
        finally:
            if not is_well:  # also if cancelled: its answer would be taken for the next one's
                await self.aclose()
        if answer is None and (code := running.code) != 0:
            logger.warning("the process that unpacks pictures ended over one (%s)", code)
            raise MediaError(f"unpacking it ended the process that did it ({code})")
        return answer

    async def _started(self) -> _Running:
        if self._running is None or self._running.is_over:
            await self.aclose()
            self._running = running = _Running()
            await asyncio.get_running_loop().subprocess_exec(
                lambda: running,
                *self._command,
                stderr=asyncio.subprocess.DEVNULL,
                env=_environment(),
                cwd=os.sep,
                start_new_session=True,  # a Ctrl+C in the terminal is for the bot only
            )
        return self._running


def _environment() -> dict[str, str]:
    """The module path only: no key, no token, no proxy."""
    places = (str(Path(place).absolute()) for place in sys.path)
    needed = {
        "PYTHONPATH": os.pathsep.join(places),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if sys.platform == "win32":  # Python does not start without it
        needed["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "")  # noqa: TID251  # the system's
    return needed


class _Running(asyncio.SubprocessProtocol):
    """A started process. `is_over` once it has ended or stopped listening."""

    def __init__(self) -> None:
        self.is_over = False
        self.transport: asyncio.SubprocessTransport | None = None
        self._is_leaving = False
        self._data = bytearray()
        self._heard = asyncio.Event()
        self._gone = asyncio.Event()

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None if unknown."""
        return None if self.transport is None else self.transport.get_returncode()

    async def ask(self, data: bytes) -> tuple[int, bytes] | None:
        """Return its answer to an image; None if it ended."""
        pipe = cast(
            "asyncio.WriteTransport", self.transport and self.transport.get_pipe_transport(0)
        )
        pipe.writelines((HEAD.pack(len(data)), data))
        while (answer := self._answer()) is None:
            if self.is_over:
                return None
            self._heard.clear()
            await self._heard.wait()
        return answer

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        if self.transport is None:
            return
        # Let it end by itself if it is about to: asyncio's `kill` may reap it and lose its exit
        # code.
        if not (self._is_leaving and await self._is_gone()):
            with suppress(ProcessLookupError):
                self.transport.kill()
            await self._is_gone()
        self.transport.close()

    async def _is_gone(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST):
                await self._gone.wait()
        return self._gone.is_set()

    def _answer(self) -> tuple[int, bytes] | None:
        if len(self._data) < ANSWER.size:
            return None
        kind, size = ANSWER.unpack_from(self._data)
        whole = ANSWER.size + size
        if size > MAX_ANSWER:  # corrupt output
            self.is_over = True
        if self.is_over or len(self._data) < whole:
            return None
        body = bytes(self._data[ANSWER.size : whole])
        del self._data[:whole]
        return kind, body

    # --- asyncio.SubprocessProtocol ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(
            "asyncio.SubprocessTransport", transport
        )  # uvloop's class is no subclass

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        self._data += data
        self._heard.set()

    def pipe_connection_lost(self, _fd: int, _exc: Exception | None) -> None:
        self._over()

    def process_exited(self) -> None:
        self._over()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._over()
        self._gone.set()

    def _over(self) -> None:
        self.is_over = self._is_leaving = True
        self._heard.set()
