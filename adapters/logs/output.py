"""Where log lines go: all to one stream, standard error, once the bot has said how they are to
look.
"""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import TextIO

from adapters.logs.lines import Style, make_formatter
from bot.domain.masking import Mask

logger = logging.getLogger("bot")


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines; one that cannot be written says so in a line of its own, without repeating what
    it was about.

    The standard handler would print the arguments of the broken line, and a secret with them.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the standard library's name
        """Called inside the handling of the exception that was raised."""
        kind = type(sys.exc_info()[1]).__name__
        try:
            self.stream.write(
                f"a line of {record.name} ({record.pathname}:{record.lineno}) was lost: {kind}\n"
            )
        except (OSError, ValueError):
            return  # the stream is gone, and with it whoever read it


def set_up_logs(
    *,
    level: str,
    style: Style,
    mask: Mask,
    stream: TextIO,
    colors: bool = False,
    warnings: TextIO | None = None,
) -> LineHandler:
    """Send all that is logged from `level` on to the stream, in place of what was set up before;
    `warnings` gets those, and errors, as well.

    An exception that nobody catches is logged as well, so that it is masked and has the form of
    everything else.
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
    return handler


def log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Fits `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    else:
        logger.critical(
            "the bot ends after a failure that nobody expected", exc_info=(kind, error, traceback)
        )
