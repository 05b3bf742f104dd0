from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator

import pytest

from adapters.logs.output import log_uncaught, set_up_logs
from frostagent.text.masking import MASK, Mask

SECRET = "sk-1234567890"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A stream that gets all logs of the process; at its end everything is set up as before."""
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, sys.excepthook
    yield io.StringIO()
    root.handlers[:], sys.excepthook = handlers, hook
    root.setLevel(level)


def test_everybody_s_lines_go_to_the_stream_from_the_level_on(stream: io.StringIO) -> None:
    set_up_logs(level="INFO", style="console", mask=Mask([SECRET]), stream=stream)
    logging.getLogger("adapters.onebot.connection").info("account %d is connected", 10001)
    logging.getLogger("asyncio").warning("slow with %s", SECRET)
    logging.getLogger("bot.chat.dispatcher").debug("never seen")
    first, second = stream.getvalue().splitlines()
    assert first.endswith("[info] adapters.onebot.connection: account 10001 is connected")
    assert second.endswith(f"[warning] asyncio: slow with {MASK}")


def test_setting_up_again_replaces_what_was_there(stream: io.StringIO) -> None:
    set_up_logs(level="INFO", style="json", mask=Mask(), stream=io.StringIO())
    set_up_logs(level="ERROR", style="json", mask=Mask(), stream=stream)
    logging.getLogger("bot").warning("too quiet")
    logging.getLogger("bot").error("heard once")
    assert stream.getvalue().count('"event":"heard once"') == 1
    assert "quiet" not in stream.getvalue()


def test_a_line_that_cannot_be_written_shows_none_of_its_arguments(
    stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs(level="INFO", style="console", mask=Mask([SECRET]), stream=stream)
    logging.getLogger("bot").info("%d", SECRET)  # the mistake somebody will make
    assert "a line of bot (" in stream.getvalue()
    assert stream.getvalue().endswith(") was lost: TypeError\n")
    assert SECRET not in stream.getvalue() + "".join(capsys.readouterr())


def test_a_stream_that_is_gone_breaks_nobody(stream: io.StringIO) -> None:
    set_up_logs(level="INFO", style="console", mask=Mask(), stream=stream)
    stream.close()
    logging.getLogger("bot").info("into the void")


def test_what_nobody_catches_is_logged_without_secrets(stream: io.StringIO) -> None:
    set_up_logs(level="INFO", style="console", mask=Mask([SECRET]), stream=stream)
    assert sys.excepthook is log_uncaught
    try:
        raise LookupError(f"no {SECRET}")
    except LookupError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    assert "[critical] bot: the bot ends after a failure that nobody expected\nTraceback" in stream.getvalue()
    assert stream.getvalue().endswith(f"LookupError: no {MASK}\n")


def test_a_warning_of_python_s_is_one_line_of_the_log(stream: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        set_up_logs(level="INFO", style="console", mask=Mask([SECRET]), stream=stream)
        warnings.warn(f"old {SECRET}", FutureWarning, stacklevel=1)
    (line,) = stream.getvalue().splitlines()
    assert "[warning] bot: " in line
    assert line.endswith(f": old {MASK}")


def test_an_interruption_by_the_keyboard_is_no_failure(stream: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(level="INFO", style="console", mask=Mask(), stream=stream)
    error = KeyboardInterrupt()
    sys.excepthook(type(error), error, None)
    assert stream.getvalue() == ""
    assert "KeyboardInterrupt" in capsys.readouterr().err
