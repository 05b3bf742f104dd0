"""Tools that run programs: an argv list with placeholders, run without a shell in a clean
environment.

    find_notes = command_tool(
        "find_notes",
        "Looks a word up in the notes. Gives the lines that have it.",
        ["grep", "-rn", "{word}", "/srv/notes"],
        {"properties": {"word": {"type": "string", "description": "The word."}}},
        side_effects="read", idempotent=True, ok_exit_codes=(0, 1),
    )

A placeholder in braces takes the argument of that name. A list becomes several words; a word whose
argument is missing is dropped. Nothing is split, globbed or expanded. The program sees PATH, LANG,
a temporary HOME (its working directory) and the variables in `environment`, never our keys. When
the call ends, its process group is killed; only a process in a session of its own (`setsid`, a
daemon) survives.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace
from typing_extensions import Unpack

from frostagent.cancellation import last_moments
from frostagent.engine.external_tools import foreign_tool
from frostagent.types.errors import InvalidArguments, ToolFailed, ToolUnavailable
from frostagent.types.results import ToolResult, render_result
from frostagent.types.tools import Declarations, Tool, ToolContext
from frostagent.types.traits import ToolType

# Bytes of output that are kept: three quarters from the start, the rest from the end. With the
# surrounding text they stay below the limit for any result (8000 characters), which would cut the
# note on how much was cut.
MAX_OUTPUT = 7500
FLOOD = 16 * 2**20  # bytes of output after which a program is killed
LAST_OUTPUT = 1.0  # seconds to read the remaining output once all processes of the call are dead
LANGUAGE = "C.UTF-8"
NEVER_PASSED = re.compile("[\0\ud800-\udfff]")


def command_tool(
    name: str,
    description: str,
    argv: Sequence[str],
    parameters: Mapping[str, Any] | None = None,
    *,
    ok_exit_codes: Collection[int] = (0,),
    allow_dash: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    max_output: int = MAX_OUTPUT,
    **declared: Unpack[Declarations],
) -> Tool:
    """A tool that runs a program; its type is `cli`. `parameters` is a JSON schema: without
    `required`, all parameters without a default are required.

    `allow_dash` names arguments that may begin with "-". Other values that do are refused, because
    a program would take them for options. `cwd` is the working directory, by default a temporary
    one. `max_output` is in bytes. `declared` is as in `@tool`. The module's docstring has an
    example. Raises ValueError for an argv that is invalid or does not match the parameters.
    """
    schema = _schema_for(argv, parameters)
    program = Program(
        name=name,
        words=tuple(map(_read_word, argv)),
        ok_exit_codes=frozenset(ok_exit_codes),
        allow_dash=frozenset(allow_dash),
        environment=dict(environment or {}),
        cwd=cwd,
        max_output=max_output,
    )
    program.verify(schema["properties"])
    declared.setdefault("available", program.why_not)
    tool = foreign_tool(name, description, schema, program.run, raw_input=False, **declared)
    return replace(tool, type=ToolType.CLI, guards=(program.guard, *tool.guards))


def _schema_for(argv: Sequence[str], parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    if isinstance(argv, str) or not argv:
        raise ValueError(
            "argv is a list of words, the program first; nothing splits a text into them"
        )
    schema: dict[str, Any] = {"properties": {}, "additionalProperties": False, **(parameters or {})}
    schema.setdefault(
        "required", [name for name, kind in schema["properties"].items() if "default" not in kind]
    )
    return schema


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an argument in argv."""

    name: str


def _read_word(word: str) -> tuple[str | Place, ...]:
    """Parse `--max={count}` into a text and a place; `{{` is a brace. Raises ValueError."""
    parts: list[str | Place] = []
    for text, name, form, conversion in Formatter().parse(word):
        if text:
            parts.append(text)
        if name is not None:
            if form or conversion or not name.isidentifier():
                raise ValueError(
                    f"a place is written as {{name}}, nothing else; a brace as {{{{: {word!r}"
                )
            parts.append(Place(name))
    return tuple(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command. `words` is its argv, each word as a list of parts."""

    name: str
    words: tuple[tuple[str | Place, ...], ...]
    ok_exit_codes: frozenset[int] = frozenset({0})
    allow_dash: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | Path | None = None
    max_output: int = MAX_OUTPUT

    @property
    def file(self) -> str:
        """The program as named: a name to look up in PATH, or an absolute path."""
        return "".join(map(str, self.words[0]))

    def verify(self, properties: Mapping[str, Any]) -> None:
        """Raises ValueError if argv and parameters differ, or the program is a placeholder."""
        if not self.words[0] or any(isinstance(part, Place) for part in self.words[0]):
            raise ValueError("the program itself is never an argument")
        if os.sep in self.file and not Path(self.file).is_absolute():
            raise ValueError(f"{self.file}: name a program in PATH, or give its absolute path")
        named = {part.name for word in self.words for part in word if isinstance(part, Place)}
        if strangers := sorted(named.symmetric_difference(properties)):
            raise ValueError(
                f"{', '.join(strangers)}: stands in argv or in the parameters, but not in both"
            )
        if strangers := sorted(self.allow_dash.difference(properties)):
            raise ValueError(f"{', '.join(strangers)}: is allowed a dash, but is no parameter")

    def find(self) -> str | None:
        """The absolute path of the program; None if it is not found."""
        found = shutil.which(self.file)
        return None if found is None else str(Path(found).absolute())

    def why_not(self) -> str:
        """The missing program or folder, as a reason; empty if both exist."""
        if self.find() is None:
            where = (
                "which is not there" if Path(self.file).is_absolute() else "which is not in PATH"
            )
            return f"needs the program {self.file}, {where}"
        there = self.cwd is None or Path(self.cwd).is_dir()
        return "" if there else f"needs the folder {self.cwd}, which is not there"

    # --- arguments --------------------------------------------------------------------------------

    def guard(self, _context: ToolContext, arguments: Mapping[str, Any]) -> None:
        """Refuse values that a program would misread. Raises InvalidArguments."""
        problems = [
            f"{name}: {problem}"
            for name, value in arguments.items()
            for problem in dict.fromkeys(
                filter(None, (self._wrong_with(name, text) for text in _texts(value)))
            )
        ]
        if problems:
            raise InvalidArguments("; ".join(problems), fields=tuple(problems))

    def _wrong_with(self, name: str, text: str) -> str:
        if NEVER_PASSED.search(text):
            return "must not hold a NUL or half a character"
        return (
            "must not begin with -" if text.startswith("-") and name not in self.allow_dash else ""
        )

    def argv(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The words after the program, with arguments filled in."""
        return tuple(text for word in self.words[1:] for text in _fill(word, arguments))

    # --- execution --------------------------------------------------------------------------------

    async def run(self, **arguments: Any) -> ToolResult:
        """Run it to its end. If cancelled, as by a deadline, its process group is killed. Raises
        ToolUnavailable if the program or its folder is missing, ToolFailed if it cannot start.
        """
        path, missing = self.find(), self.why_not()
        if path is None or missing:
            raise ToolUnavailable(f"{self.name} cannot run: it {missing}. Do without it.")
        with TemporaryDirectory(prefix="frostagent-", ignore_cleanup_errors=True) as home:
            running = Running(self.max_output)
            try:
                transport, _ = await asyncio.get_running_loop().subprocess_exec(
                    lambda: running,
                    path,
                    *self.argv(arguments),
                    stdin=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.STDOUT,
                    env=self._environment(home),
                    cwd=self.cwd or home,
                    start_new_session=True,
                )
            except OSError as error:
                raise ToolFailed(
                    f"{self.file} could not be started ({error.strerror}). Do without it."
                ) from error
            try:
                await running.over.wait()
            finally:
                kill_group(transport.get_pid())
                try:
                    with suppress(TimeoutError):
                        async with last_moments(LAST_OUTPUT):
                            await running.gone.wait()
                finally:  # a cancelled call does not wait that long
                    code = transport.get_returncode()
                    transport.close()
        return self._result(running, code)

    def _environment(self, home: str) -> dict[str, str]:
        path = os.pathsep.join(os.get_exec_path())
        usual = {"PATH": path, "LANG": LANGUAGE, "HOME": home}
        if sys.platform == "win32":  # programs need it for network access
            usual["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "")  # noqa: TID251  # the system's
        return {**usual, **self.environment}

    def _result(self, running: Running, code: int | None) -> ToolResult:
        if running.is_flood:
            ended = f"{self.file} wrote more than {FLOOD // 2**20} MiB and was ended. Ask for less."
            text = f"{ended}\n{running.text}"
            return ToolResult(text, details={"exit_code": code}, is_error=True)
        if code in self.ok_exit_codes:
            return ToolResult(render_result(running.text), details={"exit_code": code})
        ended = (
            f"ended with exit code {code}"
            if code is None or code >= 0
            else f"was ended by {_signal(-code)}"
        )
        return ToolResult(
            f"{self.file} {ended}\n{running.text}".rstrip(),
            details={"exit_code": code},
            is_error=True,
        )


class Running(asyncio.SubprocessProtocol):
    """A running program: keeps the head and tail of its output, and counts the rest.

    `over` is set when it has exited or must be killed, `gone` when its output is closed.
    """

    def __init__(self, limit: int) -> None:
        self.over = asyncio.Event()
        self.gone = asyncio.Event()
        self._head, self._tail = bytearray(), bytearray()
        self._tail_limit = limit // 4
        self._head_limit = limit - self._tail_limit
        self._total = 0

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: len(self._tail) - self._tail_limit]
        if self.is_flood:
            self.over.set()

    def process_exited(self) -> None:
        """The program has exited; its children may still write."""
        self.over.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The program has exited, and all its output was read."""
        self.gone.set()

    @property
    def is_flood(self) -> bool:
        return self._total > FLOOD

    @property
    def text(self) -> str:
        """The output; bytes that are not UTF-8 are marked."""
        cut = self._total - len(self._head) - len(self._tail)
        gap = f"\n[... {cut} bytes cut ...]\n".encode() if cut else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "replace")


def kill_group(pid: int) -> None:
    """Kill a process and its group. Processes that left the group survive."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)  # on Windows this kills, too
        else:
            os.killpg(pid, signal.SIGKILL)


def _texts(value: object) -> Iterator[str]:
    """The words for a value: one for each item of a list, none for None."""
    match value:
        case None:
            return
        case str():
            yield value
        case list() | tuple():
            for item in value:
                yield from _texts(item)
        case _:
            yield json.dumps(value, ensure_ascii=False)


def _fill(word: tuple[str | Place, ...], arguments: Mapping[str, Any]) -> Iterator[str]:
    """The words for one word of argv: none, one, or one for each item of a list."""
    filled = [""]
    for part in word:
        texts = [part] if isinstance(part, str) else list(_texts(arguments.get(part.name)))
        filled = [before + text for before in filled for text in texts]
    yield from filled


def _signal(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
