"""Tools that are programs: an argv list with places for arguments, run without a shell, in a world
of its own.

    find_notes = command_tool(
        "find_notes",
        "Looks a word up in the notes. Gives the lines that have it.",
        ["grep", "-rn", "{word}", "/srv/notes"],
        {"properties": {"word": {"type": "string", "description": "The word."}}},
        side_effects="read", idempotent=True, ok_exit_codes=(0, 1),
    )

A place in braces takes the argument of that name; a list becomes several words, and a word whose
argument was left out is left out. Nothing is ever split, globbed or expanded. The program sees
PATH, LANG, a temporary HOME (where it starts) and what `environment` names; never a key of ours.
When the call is over, so is its process group; only what makes a session of its own (`setsid`, a
daemon) goes on.
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

# Bytes of what a program writes that are kept: the first three quarters of them, and the last. With
# the words around them they stay below what is kept of any result (8000 characters), which would
# cut what says how much was cut.
MAX_OUTPUT = 7500
FLOOD = 16 * 2**20  # bytes after which a program is ended that writes and writes
LAST_OUTPUT = 1.0  # seconds until what was written is read, once all processes of the call are dead
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
    """A tool of the type `cli`. `parameters` is a JSON schema; what it does not say is required has
    a default, or is.

    `allow_dash` names the arguments that may begin with "-"; of all others such a value is refused,
    since a program would take it for an option. `cwd` is where it runs, a folder of its own if left
    out; `max_output` is in bytes; `declared` is as in `@tool`. Raises ValueError for an argv that
    is none or does not fit the parameters.
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
    """Where an argument goes."""

    name: str


def _read_word(word: str) -> tuple[str | Place, ...]:
    """`--max={count}` is the text `--max=` and a place; `{{` is a brace. Raises ValueError."""
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
    """The command to run; `words` are those of its argv, each in its parts."""

    name: str
    words: tuple[tuple[str | Place, ...], ...]
    ok_exit_codes: frozenset[int] = frozenset({0})
    allow_dash: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | Path | None = None
    max_output: int = MAX_OUTPUT

    @property
    def file(self) -> str:
        """The program as it was named: a name that is looked up in PATH, or an absolute path."""
        return "".join(map(str, self.words[0]))

    def verify(self, properties: Mapping[str, Any]) -> None:
        """Raises ValueError where argv and parameters do not fit each other, or the program is not
        said outright.
        """
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
        """Where the program is: an absolute path."""
        found = shutil.which(self.file)
        return None if found is None else str(Path(found).absolute())

    def why_not(self) -> str:
        """Empty where the program is there, and the folder it runs in."""
        if self.find() is None:
            where = (
                "which is not there" if Path(self.file).is_absolute() else "which is not in PATH"
            )
            return f"needs the program {self.file}, {where}"
        there = self.cwd is None or Path(self.cwd).is_dir()
        return "" if there else f"needs the folder {self.cwd}, which is not there"

    # --- arguments --------------------------------------------------------------------------------

    def guard(self, _context: ToolContext, arguments: Mapping[str, Any]) -> None:
        """Refuse what a program would take for something else. Raises InvalidArguments, a line for
        each.
        """
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
        """The words after the program, with these arguments in their places."""
        return tuple(text for word in self.words[1:] for text in _fill(word, arguments))

    # --- the run ----------------------------------------------------------------------------------

    async def run(self, **arguments: Any) -> ToolResult:
        """Run it to its end; cancelled, as by a deadline, it is killed with its process group.

        Raises ToolUnavailable where it or its folder is not there, ToolFailed where it cannot
        start.
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
                finally:  # a stop does not wait so long
                    code = transport.get_returncode()
                    transport.close()
        return self._result(running, code)

    def _environment(self, home: str) -> dict[str, str]:
        path = os.pathsep.join(os.get_exec_path())
        usual = {"PATH": path, "LANG": LANGUAGE, "HOME": home}
        if sys.platform == "win32":  # without it programs have no network
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
    """A program under way: keeps the head and the tail of what it writes, and counts the rest.

    `over` is set when it has ended or is to be ended, `gone` when nobody holds its output any more.
    """

    def __init__(self, limit: int) -> None:
        self.over = asyncio.Event()
        self.gone = asyncio.Event()
        self._head, self._tail = bytearray(), bytearray()
        self._tail_limit = limit // 4
        self._head_limit = limit - self._tail_limit
        self._total = 0

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        """Take what was written."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: len(self._tail) - self._tail_limit]
        if self.is_flood:
            self.over.set()

    def process_exited(self) -> None:
        """The program itself has ended; its children may still write."""
        self.over.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        """It has ended, and all it wrote was read."""
        self.gone.set()

    @property
    def is_flood(self) -> bool:
        """Whether it writes more than anybody could want."""
        return self._total > FLOOD

    @property
    def text(self) -> str:
        """Its output; bytes that are no UTF-8 are marked."""
        cut = self._total - len(self._head) - len(self._tail)
        gap = f"\n[... {cut} bytes cut ...]\n".encode() if cut else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "replace")


def kill_group(pid: int) -> None:
    """End a process and its group, which lasts as long as one of them; what left the group goes
    on.
    """
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)  # there this is a kill, too
        else:
            os.killpg(pid, signal.SIGKILL)


def _texts(value: object) -> Iterator[str]:
    """The words a value stands for: a list has several, nothing has none."""
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
    """The words that a word of the argv becomes: none, one, or one for each item of a list."""
    filled = [""]
    for part in word:
        texts = [part] if isinstance(part, str) else list(_texts(arguments.get(part.name)))
        filled = [before + text for before in filled for text in texts]
    yield from filled


def _signal(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
