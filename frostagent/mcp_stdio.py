"""MCP over the standard streams of a child process, with a limit on line length.

The SDK's transport buffers lines without limit, so a server that never writes a newline could use
all memory. Here such a server is treated as if it had closed the connection, and so is a server
whose message has so many values that parsing it would block the event loop.

A child does not outlive this process, nor do its own children, unless they leave its process group:
a guard, a shell beside it, kills the group once a pipe to this process is closed, which the kernel
does however this process ends. Without a shell, as on Windows, only programs that stop when their
input ends are covered.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

logger = logging.getLogger(__name__)

LONGEST_LINE = 16 * 2**20  # bytes; a result of 5 MB with pictures fits
MOST_VALUES = 100_000  # in a message: those of 100,000 are read in some 60 ms
STRINGS = re.compile(rb'"(?:[^"\\]+|\\.?)*+(?:"|\Z)', re.DOTALL)  # it goes back nowhere
STDERR_PIECE = 2**16  # bytes of error output that are read at once
GRACE = 2.0  # seconds to exit after its input is closed, and again after SIGTERM
GUARD = 'trap "" HUP INT TERM; read -r _; kill -KILL "-$1"'  # the read ends when the pipe closes
LOOK = 0.02  # seconds between two checks whether it has exited, or of its error output


@asynccontextmanager
async def open_program(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    complain: Callable[[str], object],
) -> AsyncIterator[tuple[Any, Any]]:
    """Start the program, and yield the message streams from it and to it. It gets the few variables
    that the SDK passes on, and `env`. `complain` receives its stderr, at most STDERR_PIECE bytes
    every LOOK seconds. At the end of the block it is stopped with all its children. Raises OSError
    if it cannot be started.
    """
    environment = {**get_default_environment(), **env}
    process = await asyncio.create_subprocess_exec(
        *(shutil.which(command, path=environment.get("PATH")) or command, *args),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment,
        cwd=cwd or None,
        limit=LONGEST_LINE,
        start_new_session=True,
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise OSError(f"{command} has no standard streams")
    try:
        guard = await _start_guard(process.pid)
    except BaseException:  # a cancellation too: nothing else would end it
        _signal(process, KILL)
        _close_pipes(process)
        raise
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, stdout, to_session)
        group.start_soon(_write, stdin, from_session)
        group.start_soon(_read_errors, stderr, complain)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):  # a cancelled caller must not leave it running
                outgoing.close()
                incoming.close()
                try:
                    await _end(process)
                finally:
                    if guard is not None:  # later it would kill a group that is not ours
                        guard.kill()
                        await guard.wait()
            group.cancel_scope.cancel()


async def _start_guard(group: int) -> Process | None:
    """Start the process that kills this group if we die. None without a shell."""
    if os.name != "posix":
        return None
    try:
        return await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", GUARD, "sh", str(group)),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        logger.warning("MCP servers may outlive a bot that is killed: no shell (%s)", error)
        return None


async def _read(stdout: asyncio.StreamReader, to_session: Any) -> None:
    async with to_session:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            while line := await _read_line(stdout):
                if has_too_many_values(line):
                    logger.warning(
                        "an MCP server wrote more than %d values at once: it is ended", MOST_VALUES
                    )
                    return
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await to_session.send(error)
                else:
                    await to_session.send(SessionMessage(message))


async def _read_line(stream: asyncio.StreamReader) -> bytes:
    """The next line. Empty at the end and for a line that is too long."""
    try:
        return await stream.readline()
    except ValueError:
        logger.warning("an MCP server wrote a line beyond %d bytes: it is ended", LONGEST_LINE)
        return b""


def has_too_many_values(message: bytes | bytearray) -> bool:
    """Whether reading this JSON would take too long."""
    if len(message) < MOST_VALUES:
        return False
    if message.count(b'"') - message.count(b'\\"') > 4 * MOST_VALUES:
        return True
    bones = STRINGS.sub(b"", message)
    return sum(map(bones.count, (b",", b"[", b"{"))) > MOST_VALUES


async def _write(stdin: asyncio.StreamWriter, from_session: Any) -> None:
    async with from_session:
        with suppress(ConnectionError):
            async for sent in from_session:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(line.encode() + b"\n")
                await stdin.drain()


async def _read_errors(stderr: asyncio.StreamReader, complain: Callable[[str], object]) -> None:
    with suppress(ConnectionError):
        while chunk := await stderr.read(STDERR_PIECE):
            complain(chunk.decode(errors="replace"))
            await anyio.sleep(LOOK)  # else one that never stops would leave no time to others


async def _end(process: Process) -> None:
    """Close its input, then send SIGTERM and SIGKILL to its group, with GRACE in between. Remaining
    processes of the group are killed, too.
    """
    if process.stdin is not None:
        process.stdin.close()
    try:
        await _wait_for(process)
        if process.returncode is None:
            _signal(process, signal.SIGTERM)
            await _wait_for(process)
    finally:  # if this is cancelled a second time, there is no more patience
        _signal(process, KILL)
        try:
            await _wait_for(process)
        finally:
            _close_pipes(process)


def _close_pipes(process: Process) -> None:
    """Close our ends of its pipes; a child of it may still hold the others."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _wait_for(process: Process) -> None:
    """Return once it has exited, or after GRACE seconds."""
    with suppress(TimeoutError), anyio.fail_after(GRACE):
        while process.returncode is None:  # noqa: ASYNC110  # `wait` also waits for its pipes
            await anyio.sleep(LOOK)


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only SIGTERM


def _signal(process: Process, word: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # PermissionError: a zombie on macOS
        if hasattr(os, "killpg"):
            os.killpg(process.pid, word)
        else:
            process.terminate()
