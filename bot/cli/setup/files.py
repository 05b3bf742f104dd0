"""Several small files, written all together or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
