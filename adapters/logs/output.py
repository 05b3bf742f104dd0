"""Formats log records as text or JSON lines, with the run they belong to, on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings as python_warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Literal, TextIO, TypeAlias

from bot.core.task_context import current_run, is_trial
from frostagent.text.masking import Mask

Style: TypeAlias = Literal["console", "json"]

# What a terminal interprets: control characters, line separators, and bidirectional controls.
_UNSAFE = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x2028,
    0x2029,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
UNSAFE = {code: repr(chr(code))[1:-1] for code in _UNSAFE}
UNSAFE_IN_TRACEBACKS = {code: shown for code, shown in UNSAFE.items() if chr(code) not in "\n\t"}

# Attributes of every record, and those added by other formatters; the rest are the record's extras.
USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime"}

DIM, BLUE, MAGENTA, CYAN = "2", "34", "35", "36"  # terminal colour codes
LEVELS = {"debug": "32", "info": "32", "warning": "33", "error": "31", "critical": "31"}


def make_formatter(style: Style, *, mask: Mask, colors: bool = False) -> logging.Formatter:
    """A formatter of records; `colors` are for a terminal, and the console style only."""
    match style:
        case "console":
            return _Formatter(mask, _local, partial(_for_people, _colored if colors else _plain))
        case "json":
            return _Formatter(mask, _utc, _for_machines)


class _Formatter(logging.Formatter):
    """Masks the values and the whole line: inside quoted JSON a secret is escaped differently."""

    def __init__(
        self, mask: Mask, moment: Callable[[float], str], write: Callable[[dict[str, object]], str]
    ) -> None:
        super().__init__()
        self._mask = mask
        self._moment = moment
        self._write = write

    def format(self, record: logging.LogRecord) -> str:
        told = {
            key: self._mask(value) if isinstance(value, str) else value
            for key, value in self._describe(record).items()
        }
        return self._mask(self._write(told))

    def _describe(self, record: logging.LogRecord) -> Mapping[str, object]:
        """Time, level, logger, message, run, and whether it is a trial; then the extras."""
        told: dict[str, object] = {
            "timestamp": self._moment(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if run := current_run.get():
            told["run"] = run
        if is_trial.get():
            told["tried"] = True
        if record.stack_info:
            told["stack_info"] = record.stack_info
        told |= {key: value for key, value in vars(record).items() if key not in USUAL}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return told


# --- forms --------------------------------------------------------------------------------------


def _utc(created: float) -> str:
    utc = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")
    return utc.replace("+00:00", "Z")


def _for_machines(told: dict[str, object]) -> str:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"), skipkeys=True, default=repr)


def _local(created: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(created))


def _for_people(paint: Callable[[str, str], str], told: dict[str, object]) -> str:
    """`2026-01-31 20:15:00 [info] bot.turn: what happened key=value`, without terminal controls; a
    traceback keeps its lines.
    """
    traceback = told.pop("exception", None)
    shown = {key: str(value).translate(UNSAFE) for key, value in told.items()}
    moment, level, logger, event = map(shown.pop, ("timestamp", "level", "logger", "event"))
    level = paint(LEVELS.get(level, DIM), level)
    line = f"{paint(DIM, moment)} [{level}] {paint(BLUE, logger)}: {event}"
    for key, value in shown.items():
        line += f" {paint(CYAN, key)}={paint(MAGENTA, value)}"
    if traceback is not None:
        line += "\n" + str(traceback).translate(UNSAFE_IN_TRACEBACKS)
    return line


def _plain(_color: str, text: str) -> str:
    return text


def _colored(color: str, text: str) -> str:
    return f"\x1b[{color}m{text}\x1b[0m"


logger = logging.getLogger("bot")


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines. A line that fails is reported by a line of its own, without its content.

    The standard handler would print the failed line's arguments, and secrets in them.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the standard library's name
        """Called while the exception is being handled."""
        kind = type(sys.exc_info()[1]).__name__
        try:
            self.stream.write(
                f"a line of {record.name} ({record.pathname}:{record.lineno}) was lost: {kind}\n"
            )
        except (OSError, ValueError):
            return  # the stream is closed


def set_up_logs(
    *,
    level: str,
    style: Style,
    mask: Mask,
    stream: TextIO,
    colors: bool = False,
    warnings: TextIO | None = None,
) -> LineHandler:
    """Send log records from `level` up to the stream, replacing earlier handlers; `warnings` also
    receives warnings and errors.

    Uncaught exceptions and Python's warnings are logged too, so that they are masked and formatted
    alike.
    """
    handler = LineHandler(stream)
    handler.setFormatter(make_formatter(style, mask=mask, colors=colors))
    root = logging.getLogger()
    for other in root.handlers[:]:
        root.removeHandler(other)
    root.addHandler(handler)
    if warnings is not None:
        urgent = LineHandler(warnings)
        urgent.setFormatter(handler.formatter)
        urgent.setLevel(logging.WARNING)
        root.addHandler(urgent)
    root.setLevel(level)
    sys.excepthook = log_uncaught
    python_warnings.showwarning = log_warning
    return handler


def log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """A `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    else:
        logger.critical(
            "the bot ends after a failure that nobody expected", exc_info=(kind, error, traceback)
        )


def log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A `warnings.showwarning`."""
    del category, file, line  # the message is enough
    logger.warning("%s:%d: %s", filename, lineno, message)
