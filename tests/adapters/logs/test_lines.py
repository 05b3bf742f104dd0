from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from adapters.logs.output import Style, make_formatter
from bot.core.task_context import current_run, is_trial
from frostagent.text.masking import MASK, Mask
from tests.cases import each_case

SECRET = 'sk-"very\\secret"-1234'

Logged = Callable[[logging.Logger], object]


@contextmanager
def listening(style: Style, **options: Any) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger of its own and what it writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(make_formatter(style, mask=Mask([SECRET]), **options))
    logger = logging.Logger("bot.test")  # noqa: LOG001  # not in the tree of loggers, so nobody else hears it
    logger.addHandler(handler)
    yield logger, stream


def lines(style: Style, log: Logged, *, run: str = "", **options: Any) -> str:
    with listening(style, **options) as (logger, stream):

        def inside() -> None:
            current_run.set(run)
            log(logger)

        copy_context().run(inside)
        return stream.getvalue()


def entry(log: Logged, *, run: str = "") -> dict[str, Any]:
    """The one JSON line."""
    (line,) = lines("json", log, run=run).splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_console_line_has_time_level_logger_message_and_values() -> None:
    line = lines("console", lambda log: log.warning("no heartbeat for %d s", 90, extra={"account": 10001}), run="t1")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[warning\] bot\.test: no heartbeat for 90 s run=t1 account=10001\n", line
    )


def test_a_line_of_what_is_only_tried_out_says_so() -> None:
    def log(logger: logging.Logger) -> None:
        is_trial.set(True)
        logger.info("hello")

    assert entry(log)["tried"] is True
    assert "tried" not in entry(lambda logger: logger.info("hello"))


def test_a_json_line_is_one_object_with_the_time_in_utc() -> None:
    line = entry(lambda log: log.info("霜降 %s", "hello", extra={"account": 10001, "where": {1}}), run="t1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("timestamp"))
    assert list(line.items()) == [
        ("level", "info"),
        ("logger", "bot.test"),
        ("event", "霜降 hello"),
        ("run", "t1"),
        ("account", 10001),
        ("where", "{1}"),
    ]


def test_outside_a_run_there_is_no_run() -> None:
    assert "run" not in entry(lambda log: log.info("started"))
    assert "run" not in lines("console", lambda log: log.info("started"))


def fail(logger: logging.Logger) -> None:
    try:
        raise LookupError(f"bad key {SECRET}")
    except LookupError:
        logger.exception("asking with %s", SECRET)


def test_an_exception_is_told_with_its_traceback() -> None:
    told = entry(fail)["exception"]
    assert told.startswith("Traceback (most recent call last):\n")
    assert told.endswith(f"LookupError: bad key {MASK}")
    console = lines("console", fail)
    assert f"\nLookupError: bad key {MASK}\n" in console
    assert 'in fail\n    raise LookupError(f"bad key {SECRET}")' in console


@each_case("style", ["console", "json"])
@each_case(
    "log",
    [
        lambda log: log.info(SECRET),
        lambda log: log.info("key %s", SECRET),
        lambda log: log.info("keys %r", [SECRET]),
        lambda log: log.info("headers %s", {"Authorization": f"Bearer {SECRET}"}),
        lambda log: log.info("body %s", json.dumps({"key": SECRET})),
        lambda log: log.info("key", extra={"key": SECRET}),
        lambda log: log.info("key", extra={"headers": {"key": SECRET}}),
        fail,
    ],
)
def test_a_secret_is_masked_in_every_part_of_a_line(style: Style, log: Logged) -> None:
    text = lines(style, log)
    assert MASK in text
    assert "secret" not in text


def test_a_name_with_line_breaks_cannot_fake_a_line() -> None:
    nickname = "fox\n2026-01-01 [error] bot: faked\x1b[31m\u2028\u202e\x00\x9b"
    extra = {"who": nickname, "why": ValueError(nickname)}
    (line,) = lines("console", lambda log: log.info("hello %s", nickname, extra=extra)).splitlines()
    assert line.count("fox\\n2026-01-01 [error] bot: faked\\x1b[31m\\u2028\\u202e\\x00\\x9b") == 3


def test_a_traceback_keeps_its_lines_but_colours_nothing() -> None:
    def log(logger: logging.Logger) -> None:
        try:
            raise ValueError("one\ntwo\x1b[31m")
        except ValueError:
            logger.exception("broke")

    assert lines("console", log).endswith("ValueError: one\ntwo\\x1b[31m\n")


def test_colours_are_for_terminals_only() -> None:
    assert "\x1b[" in lines("console", lambda log: log.info("hello"), colors=True)
    assert "\x1b[" not in lines("console", lambda log: log.info("hello"))
    assert "\x1b[" not in lines("json", lambda log: log.info("hello"), colors=True)


def test_what_another_formatter_left_on_a_record_is_not_told() -> None:
    record = logging.makeLogRecord({"name": "bot", "msg": "hello", "stack_info": "Stack"})
    logging.Formatter("%(asctime)s %(message)s").format(record)
    told = json.loads(make_formatter("json", mask=Mask()).format(record))
    assert list(told) == ["timestamp", "level", "logger", "event", "stack_info"]
