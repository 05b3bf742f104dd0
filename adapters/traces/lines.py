"""A run event -> one line, as data (seeds/004, section 10). Pure.

Every line has `timestamp`, `layer` (run, inference, tool), `action` and `run`, that of a run inside
another one (a subagent's) also that one as `parent`; the first line of a process has the layer
`process` and no run. A reader follows the chain by `step` and `response`: an inference line names
the ids of its calls, each tool line the response that made it, and the inference of the next step
has read their results. A `delivery` follows the end of a run whose answer did not arrive, or not
for certain; the last one counts. What people and models said is there only where that is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from bot.domain.chat import ToolCall, Usage
from bot.domain.errors import ToolCancelled
from bot.domain.run import (
    Outcome,
    RunContinued,
    RunEvent,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)

Line: TypeAlias = dict[str, Any]


def first_line(at: float) -> Line:
    """A process begins to write (seconds since 1970): what ran before that has ended, whether it
    says so or not.
    """
    return {"timestamp": stamp(at), "layer": "process", "action": "start", "run": ""}


def delivery_line(run: str, outcome: str, at: float) -> Line:
    """What became of the answer of a run, from then on the outcome of its turn: it was not
    delivered, QQ has not confirmed it (yet), or it arrived after all.
    """
    about = {"layer": "run", "action": "delivery", "run": run}
    return {"timestamp": stamp(at), **about, "outcome": outcome}


def line_of(event: RunEvent, at: float, *, content: bool) -> Line | None:
    """The event as a line, told at `at` (seconds since 1970); None for one that has no line.

    Without `content` arguments, results and texts are null, and of a failed call its code is told.
    """
    about = _about(event, content=content)
    if about is None:
        return None
    layer, action, rest = about
    runs = {"run": event.run_id, "parent": event.parent} if event.parent else {"run": event.run_id}
    return {"timestamp": stamp(at), "layer": layer, "action": action, **runs, **rest}


def stamp(at: float) -> str:
    """A moment in UTC, as 2026-01-31T12:00:00.000Z."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _about(event: RunEvent, *, content: bool) -> tuple[str, str, Line] | None:
    match event:
        case RunStarted(conversation=conversation, asker=asker):
            return "run", "start", {"conversation": str(conversation), "asker": asker.user_id}
        case RunContinued(conversation=conversation, asker=asker):
            return "run", "continue", {"conversation": str(conversation), "asker": asker.user_id}
        case RunPaused(suspended=suspended):
            waiting = [pending.call.id for pending in suspended.pending]
            return (
                "run",
                "pause",
                {"waiting": waiting, "steps": suspended.steps, **_took(event.seconds)},
            )
        case RunFinished(outcome=outcome):
            return "run", "end", {**_of_outcome(outcome, content=content), **_took(event.seconds)}
        case StepFinished():
            return "inference", "response", _of_step(event, content=content)
        case ToolStarted(call=call):
            args = arguments_of(call) if content else None
            return "tool", "execute_start", {**_of_call(event), "args": args}
        case ToolFinished():
            return "tool", ended(event.code), _of_result(event, content=content)
        case ToolProgressed():
            return None


def ended(code: str) -> str:
    """The action that stands for the end of a call with this code."""
    return "execute_cancelled" if code == ToolCancelled.code else "execute_end"


def _of_call(event: ToolStarted | ToolFinished) -> Line:
    return {
        "step": event.step,
        "response": event.response_id,
        "call_id": event.call.id,
        "name": event.call.name,
    }


def _of_result(event: ToolFinished, *, content: bool) -> Line:
    args = arguments_of(event.call) if event.arguments is None else dict(event.arguments)
    failed = event.result.is_error
    return {
        **_of_call(event),
        "args": args if content else None,
        **_took(event.seconds),
        "waited_ms": round(event.waited * 1000, 3),
        "error": None if not failed else event.result.content if content else event.code,
        "code": event.code,
        "result": event.result.content if content else None,
    }


def _of_step(event: StepFinished, *, content: bool) -> Line:
    completion = event.completion
    return {
        "step": event.step,
        "response": event.response_id,
        "model": completion.endpoint or completion.model,
        "finish": str(completion.finish),
        "calls": [call.id for call in completion.message.tool_calls],
        **tokens(completion.usage),
        **_took(event.seconds),
        "text": completion.message.text if content else None,
    }


def _of_outcome(outcome: Outcome, *, content: bool) -> Line:
    failures = [
        {"call_id": failure.call_id, "name": failure.name, "code": failure.code}
        for failure in outcome.tool_failures
    ]
    return {
        "outcome": str(outcome.stop),
        "steps": outcome.steps,
        "limit": outcome.limit,
        "error": outcome.error or None,
        "tool_failures": failures,
        **tokens(outcome.usage),
        "text": outcome.text if content else None,
    }


def tokens(usage: Usage | None) -> Line:
    """The tokens it took; nulls where nobody knows."""
    if usage is None:
        return {"prompt": None, "completion": None, "cached": None, "cost": None}
    return {
        "prompt": usage.prompt,
        "completion": usage.completion,
        "cached": usage.cached,
        "cost": usage.cost,
    }


def arguments_of(call: ToolCall) -> Mapping[str, Any] | str:
    """The arguments of a call as JSON has them; its raw text where that is no object."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call.arguments
    return value if isinstance(value, dict) else call.arguments


def _took(seconds: float) -> Line:
    return {"duration_ms": round(seconds * 1000, 3)}
