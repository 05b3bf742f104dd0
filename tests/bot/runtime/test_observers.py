from __future__ import annotations

import logging

import pytest

from bot.runtime.observers import LogObserver, Observers
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from frostagent.types.runs import (
    Asker,
    Outcome,
    PendingCall,
    RunContinued,
    RunEvent,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    Stop,
    SuspendedRun,
    ToolFinished,
    ToolStarted,
)
from tests.fakes import GROUP, RecordingObserver, calls, words

CALL = ToolCall("c0", "echo", '{"text": "private words"}')
DONE = ToolMessage("c0", "echo", "private words")
WRONG = ToolMessage("c0", "echo", "private words", is_error=True)

WAITING = SuspendedRun(
    run_id="t1",
    conversation=str(GROUP),
    asker=Asker("777", "private name"),
    messages=(),
    message=AssistantMessage("private words", (CALL,)),
    answers=(PendingCall(CALL, "private words?", 1e9, "digest"),),
    usage=Usage(10, 5),
    steps=1,
)


def finished(stop: Stop, *, error: str = "", cost: float | None = None) -> RunFinished:
    outcome = Outcome(stop, "private words", (), Usage(10, 5, cost=cost), steps=2, error=error)
    return RunFinished(run_id="t1", outcome=outcome, seconds=1.234)


@pytest.mark.parametrize(
    ("event", "level", "line"),
    [
        (
            RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("777", "private name")),
            logging.INFO,
            "run t1 started in 10001:group:4242 for 777",
        ),
        (
            StepFinished(run_id="t1", step=1, completion=calls(("echo", "{}"), ("look", "{}")), seconds=0.5),
            logging.DEBUG,
            "run t1 step 1: tool_calls in 0.50 s (echo, look)",
        ),
        (
            StepFinished(run_id="t1", step=2, completion=words("private words"), seconds=0.5),
            logging.DEBUG,
            "run t1 step 2: stop in 0.50 s",
        ),
        (ToolStarted(run_id="t1", step=1, call=CALL), logging.DEBUG, "run t1 step 1: echo started"),
        (
            ToolFinished(run_id="t1", step=1, call=CALL, result=DONE, code="ok", seconds=0.1),
            logging.DEBUG,
            "run t1 step 1: echo ended as ok in 0.10 s",
        ),
        (
            ToolFinished(run_id="t1", step=1, call=CALL, result=DONE, code="ok", seconds=0.1, waited=2.5),
            logging.DEBUG,
            "run t1 step 1: echo ended as ok in 0.10 s, after 2.50 s",
        ),
        (
            ToolFinished(run_id="t1", step=1, call=CALL, result=WRONG, code="TOOL_TIMEOUT", seconds=60),
            logging.WARNING,
            "run t1 step 1: echo ended as TOOL_TIMEOUT in 60.00 s",
        ),
        (
            RunPaused(run_id="t1", suspended=WAITING, seconds=1.234),
            logging.INFO,
            "run t1 suspended in 1.23 s: 1 steps, waits for a word on echo",
        ),
        (
            RunContinued(run_id="t1", conversation=str(GROUP), asker=Asker("777", "private name")),
            logging.INFO,
            "run t1 goes on in 10001:group:4242 for 777",
        ),
        (finished(Stop.ANSWERED), logging.INFO, "run t1 answered in 1.23 s: 2 steps, 10 + 5 tokens"),
        (
            finished(Stop.ANSWERED, cost=0.00123),
            logging.INFO,
            "run t1 answered in 1.23 s: 2 steps, 10 + 5 tokens, $0.001230",
        ),
        (finished(Stop.STOPPED), logging.INFO, "run t1 stopped in 1.23 s: 2 steps, 10 + 5 tokens"),
        (
            finished(Stop.FAILED, error="auth"),
            logging.ERROR,
            "run t1 failed in 1.23 s: 2 steps, 10 + 5 tokens (auth)",
        ),
    ],
)
def test_each_event_has_its_line_without_a_word_of_anybody(
    event: RunEvent, level: int, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    LogObserver().notice(event)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(level, line)]
    assert "private" not in caplog.text


def test_the_words_of_a_vendor_are_for_debug_only_since_they_may_be_those_of_people(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    LogObserver().notice(finished(Stop.FAILED, error="content_filter: refused: private words"))
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, "run t1 failed in 1.23 s: 2 steps, 10 + 5 tokens (content_filter)"),
        (logging.DEBUG, "run t1 content_filter: refused: private words"),
    ]


def test_every_observer_receives_every_event_in_order() -> None:
    seen: list[tuple[str, RunEvent]] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def notice(self, event: RunEvent) -> None:
            seen.append((self.name, event))

    first, second = ToolStarted(run_id="t1", step=1, call=CALL), finished(Stop.ANSWERED)
    observers = Observers([Named("a"), Named("b")])
    observers.notice(first)
    observers.notice(second)
    assert seen == [("a", first), ("b", first), ("a", second), ("b", second)]


def test_an_observer_that_breaks_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def notice(self, event: RunEvent) -> None:
            raise LookupError("a bug")

    listener = RecordingObserver()
    Observers([Broken(), listener]).notice(finished(Stop.ANSWERED))
    assert [event.type for event in listener.events] == ["run_finished"]
    (record,) = caplog.records
    assert record.getMessage() == "observer Broken broke on run_finished"
    assert record.exc_info is not None


def test_nobody_has_to_listen() -> None:
    Observers([]).notice(finished(Stop.ANSWERED))


def test_a_run_inside_another_one_names_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LogObserver().notice(RunStarted(run_id="t1/1/c0", parent="t1", conversation=str(GROUP), asker=Asker("777")))
    assert caplog.messages == ["run t1/1/c0 started inside of run t1"]
