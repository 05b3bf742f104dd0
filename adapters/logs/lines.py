"""Log records -> lines of text, for people (console) or for machines (JSON), with the run they
belong to.

No line shows a secret, not even inside a traceback, and one record without an exception is one
line: a nickname with a line break in it cannot fake a line of the log, nor one with an escape
sequence recolour the terminal.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeAlias

from structlog.dev import Column, ConsoleRenderer, KeyValueColumnFormatter, LogLevelColumnFormatter
from structlog.processors import JSONRenderer, format_exc_info
from structlog.stdlib import ExtraAdder, ProcessorFormatter
from structlog.typing import EventDict, Processor

from bot.domain.masking import Mask
from bot.domain.trace import current_run

Style: TypeAlias = Literal["console", "json"]

# What a terminal obeys: control characters, line separators, and what turns the direction of the
# text around.
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


def make_formatter(style: Style, *, mask: Mask, colors: bool = False) -> logging.Formatter:
    """A formatter of records; `colors` are for a terminal, and for the console style
    only.
    """
    match style:
        case "console":
            return _Formatter(mask, _describe, _escape, _console(colors=colors))
        case "json":
            return _Formatter(mask, _describe_in_utc, _json())


class _Formatter(ProcessorFormatter):
    """Masks what goes into the line, and the line: a secret inside quoted JSON is spelt in yet
    another way there.
    """

    def __init__(self, mask: Mask, describe: Processor, *processors: Processor) -> None:
        meta = ProcessorFormatter.remove_processors_meta
        super().__init__(
            processors=[describe, meta, format_exc_info, self._mask_texts, *processors]
        )
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(super().format(record))

    def _mask_texts(self, _logger: Any, _name: str, event: EventDict) -> EventDict:
        return {
            key: self._mask(value) if isinstance(value, str) else value
            for key, value in event.items()
        }


# --- what a line holds ----------------------------------------------------------------------------

_add_extra = ExtraAdder()


def _describe(_logger: Any, _name: str, event: EventDict) -> EventDict:
    """The time here, the level, the logger and the run; then the message and what else it was
    logged with.
    """
    record: logging.LogRecord = event["_record"]
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
    return _with(event, record, local)


def _describe_in_utc(_logger: Any, _name: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    utc = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return _with(event, record, utc.replace("+00:00", "Z"))


def _with(event: EventDict, record: logging.LogRecord, timestamp: str) -> EventDict:
    about: dict[str, Any] = {
        "timestamp": timestamp,
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": event.pop("event"),
    }
    if run := current_run.get():
        about["run"] = run
    return _add_extra(logging.root, "", about | dict(event))


def _escape(_logger: Any, _name: str, event: EventDict) -> EventDict:
    """Texts without what a terminal obeys; a traceback keeps its lines."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = value.translate(UNSAFE_IN_TRACEBACKS if key == "exception" else UNSAFE)
    return event


# --- how it is written ----------------------------------------------------------------------------


def _json() -> Processor:
    return JSONRenderer(
        partial(json.dumps, ensure_ascii=False, separators=(",", ":"), skipkeys=True)
    )


def _console(*, colors: bool) -> Processor:
    """`2026-01-31 20:15:00 [info] bot.turn: what happened key=value`."""
    styles = ConsoleRenderer.get_default_column_styles(colors)
    levels: Mapping[str, str] = ConsoleRenderer.get_default_level_styles(colors)
    plain = partial(
        KeyValueColumnFormatter, key_style=None, reset_style=styles.reset, value_repr=str
    )
    return ConsoleRenderer(
        columns=[
            Column("timestamp", plain(value_style=styles.timestamp)),
            Column(
                "level", LogLevelColumnFormatter(dict(levels), reset_style=styles.reset, width=0)
            ),
            Column("logger", plain(value_style=styles.logger_name, postfix=":")),
            Column("event", plain(value_style="")),
            Column(
                "",
                KeyValueColumnFormatter(
                    styles.kv_key, styles.kv_value, styles.reset, value_repr=str
                ),
            ),
        ],
        sort_keys=False,
    )
