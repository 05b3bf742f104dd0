"""The files that `setup` and `init` write, all together or not at all; and values in the text of a
`.env`, whose comments stay as they are.

What is written there means the same to our own reader, to a shell-like `.env` reader, and to docker
compose, which replaces `$NAME` unless the value stands in single quotes. python-dotenv reads the
lines. Its `set_key` does not write them: it puts one name at a time into a file, drops the blank
lines before it and the remark behind it, and switches nothing on that is commented out.
"""

from __future__ import annotations

import errno
import io
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dotenv.parser import parse_stream

from bot.domain.errors import ConfigError, Problem

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be: its whole text. It holds secrets, so only its owner may read it."""

    path: Path
    text: str


def read_text(path: Path) -> str | None:
    """The text of a file, None where there is none. Raises ConfigError where it cannot be read."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(_problem(path, "read", error)) from None


def write_files(files: Iterable[NewFile]) -> None:
    """Write them, making folders where they are missing; what stops it half-way leaves every old
    file as it was.

    A symbolic link stays one: what it points to is replaced. Raises ConfigError where one cannot be
    written.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for file in files:
            path = file.path.resolve()
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                ready.append((_write_beside(path, file.text), path))
            except OSError as error:
                raise ConfigError(_problem(file.path, "written", error)) from None
        for temporary, path in ready:
            try:
                temporary.replace(path)
            except OSError as error:
                raise ConfigError(_problem(path, "written", error)) from None
    finally:
        for temporary, _ in ready:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _write_beside(path: Path, text: str) -> Path:
    """A private file in the same folder, on the disk before it gets its name."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(PRIVATE)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _problem(path: Path, verb: str, error: OSError | UnicodeDecodeError) -> Problem:
    reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
    mend = "Give this account the right to, or move it away"
    if isinstance(error, OSError) and error.errno == errno.EROFS:  # as the bot's own container
        mend = "Run setup outside of the container (make run ARGS=setup), or edit .env by hand"
    return Problem(str(path), f"cannot be {verb} ({reason})", mend)


# --- the text of a .env ---------------------------------------------------------------------------


UNQUOTED = re.compile(r"[^\s#'\"`$\\]*")
REMARK = re.compile(r"[^\S\r\n]+#[^\r\n'\"]*$")


def fill_env(text: str, values: Mapping[str, str]) -> str:
    """The text with these values, each at the line that sets its name, else at the one that has it
    commented out, else at the end.

    An empty value stays out unless the name is set already. Raises ConfigError for a value no
    `.env` can hold.
    """
    left = dict(values)
    text = _fill_set(text, left)
    text = _fill_commented(text, left)
    added = [_line(name, value) for name, value in left.items() if value]
    if added and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{line}\n" for line in added)


def _fill_set(text: str, left: dict[str, str]) -> str:
    parts = []
    done = set()
    for binding in parse_stream(io.StringIO(text)):
        original = binding.original.string
        if binding.key in left:
            done.add(binding.key)
            before = original[: len(original) - len(original.lstrip())]
            remark = REMARK.search(original.rstrip())
            original = (
                f"{before}{_line(binding.key, left[binding.key])}{remark[0] if remark else ''}\n"
            )
        parts.append(original)
    for name in done:
        del left[name]
    return "".join(parts)


def _fill_commented(text: str, left: dict[str, str]) -> str:
    for name in [name for name, value in left.items() if value]:
        text, changed = re.subn(
            rf"^#[ \t]*{name}=.*$", _line(name, left[name]), text, count=1, flags=re.MULTILINE
        )
        if changed:
            del left[name]
    return text


def can_be_in_env(value: str) -> bool:
    """Whether every reader of a `.env` would read this value the same way."""
    return bool(UNQUOTED.fullmatch(value)) or not set(value) & set("'\\\r\n\0")


def _line(name: str, value: str) -> str:
    if UNQUOTED.fullmatch(value):
        return f"{name}={value}"
    if not can_be_in_env(value):
        what = (
            "has a quote, a backslash or a line break, which no .env holds the same way for "
            "everybody"
        )
        raise ConfigError(Problem(name, what, "Choose another value"))
    return f"{name}='{value}'"
