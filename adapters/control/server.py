"""The bot's side of the control socket."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from adapters.control.address import LOOPBACK, LoopbackAddress, address_of, new_socket
from adapters.control.wire import encode
from bot.core.language import CATALOGUE, Phrase

logger = logging.getLogger(__name__)

UNKNOWN = Phrase(
    "没有这个命令；有这些：{commands}", "there is no such command; there are: {commands}"
)
UNREADABLE = Phrase("{command} 不能这样用：{why}", "{command} is not asked for like that: {why}")
FAILED = Phrase(
    "{command} 没能做到（{why}），原因见日志",
    "{command} could not be done ({why}); the log says why",
)
CATALOGUE.register(__name__, globals())

OWNER_ONLY, OWN_FOLDER = 0o600, 0o700
LONGEST_LINE = 4096  # bytes of a command
TOKEN_BYTES = 32
ASKED_WITHIN = 5.0  # seconds from the connection to the command

Answer: TypeAlias = Mapping[str, Any]
Command: TypeAlias = Callable[..., Awaitable[Answer]]
"""Takes a command's details by name. Details not in its annotations are refused."""


class _Question(Struct, frozen=True):
    """Common to all commands."""

    command: str


class ControlServer:
    """Listens at `path` from `listen` until the block of `open` ends; without a path, nowhere.

    If the socket cannot be opened, that is logged, and the bot runs without it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._commands: Mapping[str, tuple[Command, msgspec.json.Decoder[Struct]]] = {}
        self._server: asyncio.Server | None = None
        self._inode = 0
        self._token = ""  # sent first, because a port is open to others

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """At the end of the block, close all connections and remove the socket."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                self._close()
                for task in self._tasks:
                    task.cancel()

    async def listen(self, commands: Mapping[str, Command]) -> None:
        """Answer these commands; an unknown one gets a line that names them."""
        self._commands = {
            name: (command, _details_of(name, command)) for name, command in commands.items()
        }
        if self._path is None or self._group is None:
            return
        try:
            self._server = await self._listen_at(self._path)
        except OSError as error:
            logger.warning(
                "commands (%s) do not reach this bot: %s cannot be listened at (%s)",
                ", ".join(commands),
                self._path,
                error.strerror or error,
            )
        else:
            self._inode = _inode(self._path)

    async def _listen_at(self, path: Path) -> asyncio.Server:
        if sys.platform != "win32":
            bound = _bind(path)
            return await asyncio.start_unix_server(self._accept, sock=bound, limit=LONGEST_LINE)
        path.parent.mkdir(parents=True, exist_ok=True)
        listening = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=LONGEST_LINE)
        self._token = secrets.token_hex(TOKEN_BYTES)
        try:
            LoopbackAddress(listening.sockets[0].getsockname()[1], self._token).write(path)
        except OSError:
            listening.close()
            raise
        return listening

    def _close(self) -> None:
        if self._server is not None and self._path is not None:
            self._server.close()
            if _inode(self._path) == self._inode:  # otherwise another bot's by now
                self._path.unlink(missing_ok=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._group is None:
            writer.close()
        else:
            task = self._group.create_task(self._talk(reader, writer), name="control connection")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ASKED_WITHIN):
                line = await reader.readline()
                if self._token:
                    if not secrets.compare_digest(line, self._token.encode() + b"\n"):
                        return
                    line = await reader.readline()
            writer.write(encode(await self._answer(line)))
            await writer.drain()
            await reader.read()  # a stop command waits here for the bot's end
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: the line is too long
            logger.debug("a control connection was given up: %s", error)
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            name = msgspec.json.decode(line, type=_Question).command
            command, details = self._commands[name]
        except (ValueError, KeyError, RecursionError):
            return {"error": UNKNOWN.fill(commands=", ".join(self._commands))}
        try:
            question = details.decode(line)
        except (ValueError, RecursionError) as error:
            return {"error": UNREADABLE.fill(command=name, why=error)}
        try:
            given = asdict(question)
            del given["command"]
            return await command(**given)
        except Exception as error:
            logger.exception("%s could not be done", name)
            return {"error": FAILED.fill(command=name, why=type(error).__name__)}


def _details_of(name: str, command: Command) -> msgspec.json.Decoder[Struct]:
    """The type of a command, from the function's signature."""
    details = [
        (one.name, one.annotation)
        if one.default is one.empty
        else (one.name, one.annotation, one.default)
        for one in signature(command, eval_str=True).parameters.values()
    ]
    fields = [("command", str), *details]
    return msgspec.json.Decoder(msgspec.defstruct(name, fields, forbid_unknown_fields=True))


def _bind(path: Path) -> socket.socket:
    """Bind a socket that only this account may use, replacing a dead bot's. Raises OSError."""
    bound = new_socket()
    try:
        path.parent.mkdir(mode=OWN_FOLDER, parents=True, exist_ok=True)
        with address_of(path) as address:
            if _is_abandoned(path, address):
                path.unlink()
            bound.bind(address)
            path.chmod(OWNER_ONLY)  # before it listens, so no connection is possible yet
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _is_abandoned(path: Path, address: str) -> bool:
    """Whether there is a socket without a listener. Raises OSError for any other file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(f"{path} is no socket")
    with new_socket() as dialling:
        try:
            dialling.connect(address)
        except OSError:
            return True
    return False  # binding reports that it is taken


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
