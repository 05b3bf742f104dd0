"""The bot's side of a program that parses untrusted files (`adapters/media/confined.py`). It is
started when first needed, does one piece of work at a time, is killed if one takes too long, and
exits when it is idle; the next piece of work starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from adapters.media.confined_protocol import ANSWER, DONE, HEAD, read_refusal
from frostagent.types.errors import MediaError

logger = logging.getLogger(__name__)

IDLE = 60  # seconds after which the process exits; it takes about 40 MiB
LAST = 2.0  # seconds to wait for a killed process


@dataclass(frozen=True, slots=True)
class Work:
    """The wording of errors: `unpacks pictures`, `unpacked`, `unpacking`."""

    does: str
    done: str
    doing: str


class ConfinedProcess:
    """Does work in a child process, which `command` starts. `seconds` is the limit for one piece of
    work including the start of the process, `patience` that including the wait for earlier ones. An
    answer has at most `max_answer` bytes.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        work: Work,
        seconds: float,
        patience: float,
        max_answer: int,
    ) -> None:
        self._command = command
        self._work = work
        self._seconds = seconds
        self._patience = patience
        self._max_answer = max_answer
        self._turn = asyncio.Lock()
        self._running: _Running | None = None

    @property
    def pid(self) -> int | None:
        """The running process's ID, if there is one."""
        running = self._running
        return (
            None
            if running is None or running.is_over or running.transport is None
            else running.transport.get_pid()
        )

    async def ask(self, data: bytes) -> bytes:
        """The program's answer to these bytes. Raises MediaError if it refuses them or takes too
        long.
        """
        try:
            async with asyncio.timeout(self._patience), self._turn:
                return await self._answer(data)
        except TimeoutError:
            raise MediaError(
                f"{self._patience:g} s were not enough for it and those before it"
            ) from None

    async def aclose(self) -> None:
        """End the process; the next piece of work would start another."""
        running, self._running = self._running, None
        if running is not None:
            await running.end()

    async def _answer(self, data: bytes) -> bytes:
        answer = await self._ask(data)
        if answer is None:  # it was idle and exited just now
            answer = await self._ask(data)
        if answer is None:
            raise MediaError(f"the process that {self._work.does} does not stay")
        kind, body = answer
        if kind != DONE:
            raise read_refusal(body)
        return body

    async def _ask(self, data: bytes) -> tuple[int, bytes] | None:
        """The process's answer; None if it exited normally instead. Raises MediaError if it crashed
        or took too long.
        """
        is_well = False
        try:
            async with asyncio.timeout(self._seconds):
                running = await self._started()
                answer = await running.ask(data)
            is_well = answer is not None
        except TimeoutError:
            what, seconds = self._work, self._seconds
            logger.warning("what %s was not %s in %g s: it is ended", what.does, what.done, seconds)
            raise MediaError(f"it was not {what.done} in {seconds:g} s") from None
        except OSError as error:
            raise MediaError(
                f"the process that {self._work.does} cannot be started ({error.strerror})"
            ) from error
        finally:
            if not is_well:  # also if cancelled: its late answer would be taken for the next one
                await self.aclose()
        if answer is None and (code := running.code) != 0:
            logger.warning("the process that %s ended over one (%s)", self._work.does, code)
            raise MediaError(f"{self._work.doing} it ended the process that did it ({code})")
        return answer

    async def _started(self) -> _Running:
        if self._running is None or self._running.is_over:
            await self.aclose()
            self._running = running = _Running(self._max_answer)
            await asyncio.get_running_loop().subprocess_exec(
                lambda: running,
                *self._command,
                stderr=asyncio.subprocess.DEVNULL,
                env=_environment(),
                cwd=os.sep,
                start_new_session=True,  # Ctrl+C in the terminal is for the bot only
            )
        return self._running


def command_of(module: str, *, idle: float) -> tuple[str, ...]:
    """The command that starts one of our programs. It exits after `idle` seconds without work."""
    return (sys.executable, "-P", "-m", module, str(idle), str(os.getpid()))


def _environment() -> dict[str, str]:
    """The path of our modules and nothing else: no key, no token, no proxy."""
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
    """A started process. `is_over` becomes true once it exits, closes a pipe or breaks the
    protocol.
    """

    def __init__(self, max_answer: int) -> None:
        self.is_over = False
        self._max_answer = max_answer
        self.transport: asyncio.SubprocessTransport | None = None
        self._is_leaving = self._is_asked = False
        self._data = bytearray()
        self._heard = asyncio.Event()
        self._gone = asyncio.Event()

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None if unknown."""
        return None if self.transport is None else self.transport.get_returncode()

    async def ask(self, data: bytes) -> tuple[int, bytes] | None:
        """The answer to these bytes; None if the process ended instead."""
        pipe = cast(
            "asyncio.WriteTransport", self.transport and self.transport.get_pipe_transport(0)
        )
        self._is_asked = True
        pipe.writelines((HEAD.pack(len(data)), data))
        while (answer := self._answer()) is None:
            if self.is_over:
                return None
            self._heard.clear()
            await self._heard.wait()
        self._is_asked = False
        self.is_over = self.is_over or bool(self._data)
        return answer

    async def end(self) -> None:
        """Kill the process and wait up to LAST seconds for its end."""
        if self.transport is None:
            return
        # A process that is exiting is left alone: asyncio's `kill` may reap it, and its exit code
        # would be lost.
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
        if size > self._max_answer:  # the process no longer follows the protocol
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
        )  # uvloop's class is not a subclass

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        self._data += data
        # Unasked it would fill our memory, or answer the next document before it is read.
        if not self._is_asked or len(self._data) > self._max_answer + ANSWER.size:
            self._data.clear()
            self.is_over = True
            if self.transport is not None:
                with suppress(ProcessLookupError):
                    self.transport.kill()
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
