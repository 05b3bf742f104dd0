"""Observers of runs: the operator's log, and a fan-out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, assert_never, get_args

from frostagent.types.ports import Observer
from frostagent.types.runs import (
    RunContinued,
    RunEvent,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    Stop,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)

logger = logging.getLogger(__name__)

NOTEWORTHY = 0.01  # seconds a call waited
EVENTS: Final = frozenset(get_args(RunEvent))


class LogObserver:
    """One line when a run starts, waits, continues and ends, more at DEBUG; never the text of
    people or the model.

    An error is logged by its class. Its text appears at DEBUG only, because a vendor may quote
    people in it.
    """

    def notice(self, event: RunEvent) -> None:
        match event:
            case StepFinished() if not logger.isEnabledFor(logging.DEBUG):
                pass  # the most frequent case first, for speed
            case RunStarted(parent=parent) if parent:
                logger.info("run %s started inside of run %s", event.run_id, parent)
            case RunStarted():
                _tell_of_asker("run %s started in %s for %s", event)
            case RunFinished():
                _tell_of_end(event)
            case RunContinued():
                _tell_of_asker("run %s goes on in %s for %s", event)
            case StepFinished(completion=completion, run_id=run_id, step=step, seconds=seconds):
                calls = [call.name for call in completion.message.tool_calls]
                called = f" ({', '.join(calls)})" if calls else ""
                text = "run %s step %d: %s in %.2f s%s"
                logger.debug(text, run_id, step, completion.finish, seconds, called)
            case ToolStarted(run_id=run_id, step=step, call=call):
                logger.debug("run %s step %d: %s started", run_id, step, call.name)
            case ToolProgressed(run_id=run_id, step=step, call=call):
                logger.debug("run %s step %d: %s goes on", run_id, step, call.name)
            case ToolFinished():
                _tell_of_result(event)
            case RunPaused(suspended=suspended, run_id=run_id, seconds=seconds):
                names = ", ".join(pending.call.name for pending in suspended.pending)
                text = "run %s suspended in %.2f s: %d steps, waits for a word on %s"
                logger.info(text, run_id, seconds, suspended.steps, names)
            case _:
                assert_never(event)


def _tell_of_asker(text: str, event: RunStarted | RunContinued) -> None:
    logger.info(text, event.run_id, event.conversation, event.asker.user_id)


def _tell_of_result(event: ToolFinished) -> None:
    level = logging.WARNING if event.result.is_error else logging.DEBUG
    waited = f", after {event.waited:.2f} s" if event.waited >= NOTEWORTHY else ""
    text = "run %s step %d: %s ended as %s in %.2f s%s"
    name = event.call.name
    logger.log(level, text, event.run_id, event.step, name, event.code, event.seconds, waited)


def _tell_of_end(event: RunFinished) -> None:
    outcome, usage = event.outcome, event.outcome.usage
    level = logging.ERROR if outcome.stop is Stop.FAILED else logging.INFO
    if not logger.isEnabledFor(level):
        return
    took = f"{outcome.steps} steps, {usage.prompt} + {usage.completion} tokens"
    cost = "" if usage.cost is None else f", ${usage.cost:.6f}"
    kind, _, words = outcome.error.partition(":")
    why = f" ({kind})" if kind else ""
    text = "run %s %s in %.2f s: %s%s%s"
    logger.log(level, text, event.run_id, outcome.stop, event.seconds, took, cost, why)
    if words:
        logger.debug("run %s %s: %s", event.run_id, kind, words.strip())


class Observers:
    """Passes each event to several observers, in order. One that raises does not stop the others.
    An observer receives all events, or only the types in its `notices`.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._by_kind = {
            kind: tuple(one for one in observers if kind in getattr(one, "notices", EVENTS))
            for kind in EVENTS
        }

    def notice(self, event: RunEvent) -> None:
        for observer in self._by_kind[type(event)]:
            try:
                observer.notice(event)
            except Exception:
                logger.exception("observer %s broke on %s", type(observer).__name__, event.type)
