"""MCP over the standard streams of a program of our own, with a bound on the length of a line.

The SDK's transport gathers a line without any end, so a server that never writes a newline would
take all memory. Here such a server is ended like one that closed the connection, and so is one that
writes a message of so many values that reading it would hold everybody up.

A program does not outlive us, nor do its children, unless they leave its process group: beside it
runs a guard, a shell that kills the group once a pipe to us is closed. The kernel closes it however
we end. Where there is no shell, as on Windows, only what ends with its input ends with us then.
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
GRACE = 2.0  # seconds a program has to end once its input is closed, and again once it is told to
GUARD = 'trap "" HUP INT TERM; read -r _; kill -KILL "-$1"'  # a read ends with its pipe
LOOK = 0.02  # seconds between two looks whether it has ended, or at its error output


@asynccontextmanager
async def open_program(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    complain: Callable[[str], object],
) -> AsyncIterator[tuple[Any, Any]]:
    """Start the program; the streams of messages from it and to it, while the block runs. It gets
    the few variables that the SDK passes on, and `env`. `complain` is told what it writes to its
    error output, a piece of at most STDERR_PIECE each LOOK seconds. At the end it is ended with all
    its children.

    Raises OSError if it cannot be started.
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
            with anyio.CancelScope(shield=True):  # else a cancelled caller would leave it running
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
    """What kills this process group if we are no longer there to do it."""
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
    """The next line, empty at the end, and for one that is too long: then nothing else counts."""
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
    """Close its input, and if that does not end it, tell its whole group to end, then kill it. What
    it has left behind in its group is killed, too.
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
    """Return once it has ended, or has had time enough."""
    with suppress(TimeoutError), anyio.fail_after(GRACE):
        while process.returncode is None:  # noqa: ASYNC110  # `wait` waits for its pipes, too
            await anyio.sleep(LOOK)


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has the one only


def _signal(process: Process, word: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the latter for a zombie on macOS
        if hasattr(os, "killpg"):
            os.killpg(process.pid, word)
        else:
            process.terminate()
