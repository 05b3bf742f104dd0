"""Observers of runs for other programs: OpenTelemetry spans, counters, lines of JSON.

If a tracer provider is set, an agent makes spans by itself. Pass the others as `observer`, or to
`Agent.subscribe`:

    metrics = Metrics()
    agent = Agent(model=model, tools=[get_weather], observer=metrics)
    ...
    print(metrics.snapshot())
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO, TypeAlias

from cachetools import LRUCache
from opentelemetry.context import Context
from opentelemetry.trace import (
    ProxyTracerProvider,
    Span,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    get_tracer,
    get_tracer_provider,
    set_span_in_context,
)

from frostagent.clock import SystemClock
from frostagent.types.errors import ToolCancelled
from frostagent.types.messages import ToolCall, Usage
from frostagent.types.ports import Clock
from frostagent.types.runs import (
    Outcome,
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

Line: TypeAlias = dict[str, Any]

MAX_OPEN = 10_000  # active runs; far more than there ever are
MAX_ENDED = 1000  # runs whose answers are being delivered


@dataclass(slots=True)
class OpenRun:
    """An active run: its span, and the context for the spans inside it."""

    span: Span
    inside: Context


class SpanObserver:
    """Runs as OpenTelemetry spans: `run` contains a `chat` for each answer of a model and a
    `tool.execute` for each call, with the times of its body.

    `provider` defaults to that of the process. Without a configured SDK this does nothing. Names
    and attributes follow the GenAI conventions, plus `genai.tool.name`. Spans never contain what
    people or models said.
    """

    def __init__(
        self, *, clock: Clock | None = None, provider: TracerProvider | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._provided = provider is not None
        self._tracer: Tracer = get_tracer("frostagent", tracer_provider=provider)
        self._runs: dict[str, OpenRun] = {}
        self._ended = LRUCache[str, Context](MAX_ENDED)  # contexts for spans that come after a run

    def notice(self, event: RunEvent) -> None:
        """Record one event."""
        match event:
            case RunStarted() | RunContinued():
                self._open(event)
            case ToolFinished(run_id=""):  # a call by name, outside of runs
                if self._is_set_up():
                    self._called(Context(), event)
            case _ if not self._runs:  # no span is open
                pass
            case StepFinished() if run := self._runs.get(event.run_id):
                self._answered(run, event)
            case ToolFinished() if run := self._runs.get(event.run_id):
                self._called(run.inside, event)
            case RunPaused():
                self._close(event.run_id, "suspended", parent=event.parent)
            case RunFinished(outcome=outcome):
                self._close(
                    event.run_id,
                    outcome.stop,
                    parent=event.parent,
                    error=outcome.error if outcome.stop is Stop.FAILED else "",
                )
            case StepFinished() | ToolStarted() | ToolFinished() | ToolProgressed():
                pass

    def tell_later(self, run_id: str, name: str, outcome: str, *, error: str = "") -> None:
        """Add a span to a run that has ended, if it is recent enough."""
        if (inside := self._ended.get(run_id)) is None:
            return
        about = {"frostagent.run": run_id, "frostagent.outcome": outcome}
        self._span(name, inside, about, self._clock.now(), 0.0, error=error)

    def forget(self, run_id: str) -> None:
        """Expect no more spans for this run."""
        self._ended.pop(run_id, None)

    def _open(self, event: RunStarted | RunContinued) -> None:
        if not self._is_set_up():
            return
        if len(self._runs) >= MAX_OPEN:
            self._runs.clear()
        about: dict[str, str | bool] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": event.conversation,
            "frostagent.run": event.run_id,
            "frostagent.resumed": isinstance(event, RunContinued),
        }
        outer = self._runs.get(event.parent)
        around = Context() if outer is None else outer.inside
        span = self._tracer.start_span(
            "run", around, attributes=about, start_time=_nanoseconds(self._clock.now())
        )
        if span.is_recording():  # else the span is not sampled
            self._runs[event.run_id] = OpenRun(span, set_span_in_context(span, Context()))

    def _is_set_up(self) -> bool:
        """Whether spans are exported (yet)."""
        return self._provided or not isinstance(get_tracer_provider(), ProxyTracerProvider)

    def _answered(self, run: OpenRun, event: StepFinished) -> None:
        completion, usage = event.completion, event.completion.usage
        about: dict[str, str | int] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.id": event.response_id,
            "gen_ai.response.model": completion.model or completion.endpoint,
            "frostagent.step": event.step,
        }
        if usage is not None:
            about |= {
                "gen_ai.usage.input_tokens": usage.prompt,
                "gen_ai.usage.output_tokens": usage.completion,
            }
        ended = self._clock.now()
        self._span("chat", run.inside, about, ended - event.seconds, event.seconds)

    def _called(self, inside: Context, event: ToolFinished) -> None:
        about: dict[str, str | int | float] = {
            "gen_ai.operation.name": "execute_tool",
            **_names(event.call),
            "gen_ai.response.id": event.response_id,
            "frostagent.step": event.step,
            "frostagent.latency_ms": round(event.seconds * 1000, 3),
            "frostagent.waited_ms": round(event.waited * 1000, 3),
        }
        error = event.code if event.result.is_error else ""
        if error:
            about["error.type"] = error
        start = event.began or self._clock.now() - event.seconds
        self._span("tool.execute", inside, about, start, event.seconds, error=error)

    def _span(
        self,
        name: str,
        inside: Context,
        about: Mapping[str, str | int | float],
        start: float,
        seconds: float,
        *,
        error: str = "",
    ) -> None:
        span = self._tracer.start_span(
            name, inside, attributes=about, start_time=_nanoseconds(start)
        )
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(_nanoseconds(start + seconds))

    def _close(self, run_id: str, outcome: str, *, parent: str = "", error: str = "") -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        run.span.set_attribute("frostagent.outcome", outcome)
        if error:
            run.span.set_status(Status(StatusCode.ERROR, error.partition(":")[0]))
        run.span.end(_nanoseconds(self._clock.now()))
        if not parent:
            self._ended[run_id] = run.inside


def _names(call: ToolCall) -> Mapping[str, str | int | float]:
    return {
        "gen_ai.tool.name": call.name,
        "genai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
    }


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


# --- counters -------------------------------------------------------------------------------------


class Metrics:
    """Counts what runs do, as plain numbers. Fits `Observer`.

    `runs` are by outcome ("waiting" if suspended), `calls` by tool and code ("ok" or a TOOL_...
    word), `seconds` in tool bodies by tool. `requests` and tokens cover all models, including
    subagents'; `unreported` requests are those without token counts from the vendor.
    """

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = {}
        self.requests = 0
        self.unreported = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0

    def notice(self, event: RunEvent) -> None:
        match event:
            case StepFinished(completion=completion):
                self.requests += 1
                if (usage := completion.usage) is None:
                    self.unreported += 1
                else:
                    self.prompt_tokens += usage.prompt
                    self.completion_tokens += usage.completion
                    self.cached_tokens += usage.cached
            case ToolFinished(call=call, code=code, seconds=seconds):
                self.calls[call.name, code] += 1
                self.seconds[call.name] = self.seconds.get(call.name, 0.0) + seconds
            case RunPaused():
                self.runs["waiting"] += 1
            case RunFinished(outcome=outcome):
                self.runs[str(outcome.stop)] += 1
            case RunStarted() | RunContinued() | ToolStarted() | ToolProgressed():
                pass

    @property
    def tool_errors(self) -> Counter[str]:
        """Failed calls by tool."""
        failed: Counter[str] = Counter()
        for (name, code), number in self.calls.items():
            if code != "ok":
                failed[name] += number
        return failed

    def snapshot(self) -> dict[str, Any]:
        """All numbers as JSON; a call is `tool/code`."""
        return {
            "runs": dict(self.runs),
            "requests": self.requests,
            "unreported": self.unreported,
            "tokens": {
                "prompt": self.prompt_tokens,
                "completion": self.completion_tokens,
                "cached": self.cached_tokens,
            },
            "calls": {f"{name}/{code}": number for (name, code), number in self.calls.items()},
            "tool_error": dict(self.tool_errors),
            "seconds": dict(self.seconds),
        }


# --- lines of JSON --------------------------------------------------------------------------------


class JsonLines:
    """Writes each event as a line of JSON to an open text file. Fits `Observer`.

    Without `content`, arguments, results and texts are null. Lines are flushed at once, and the
    file is not closed. A line that cannot be written is logged and lost.
    """

    def __init__(self, file: TextIO, *, content: bool = False, clock: Clock | None = None) -> None:
        self._file = file
        self._content = content
        self._clock = clock or SystemClock()

    def notice(self, event: RunEvent) -> None:
        line = line_of(event, self._clock.now(), content=self._content)
        if line is None:
            return
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
        except (OSError, ValueError) as error:
            logger.warning("a line of run %s cannot be written: %s", event.run_id, error)


def line_of(event: RunEvent, at: float, *, content: bool) -> Line | None:
    """The event as a line with the time `at` (seconds since 1970); None for an event without a
    line. A finished call has the time its body ended, and `began`. Without `content`, arguments,
    results and texts are null, and a failed call has only its code.
    """
    about = _about(event, content=content)
    if about is None:
        return None
    layer, action, rest = about
    if isinstance(event, ToolFinished) and event.ended:
        at = event.ended
    runs = {"run": event.run_id, "parent": event.parent} if event.parent else {"run": event.run_id}
    return {"timestamp": stamp(at), "layer": layer, "action": action, **runs, **rest}


def stamp(at: float) -> str:
    """A time in UTC, as 2026-01-31T12:00:00.000Z."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _about(event: RunEvent, *, content: bool) -> tuple[str, str, Line] | None:
    match event:
        case RunStarted(conversation=conversation, asker=asker):
            return "run", "start", {"conversation": conversation, "asker": asker.user_id}
        case RunContinued(conversation=conversation, asker=asker):
            return "run", "continue", {"conversation": conversation, "asker": asker.user_id}
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
    """The action that marks the end of a call with this code."""
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
        "began": stamp(event.began) if event.began else None,
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
    """The tokens used; null if unknown."""
    if usage is None:
        return {"prompt": None, "completion": None, "cached": None, "cost": None}
    return {
        "prompt": usage.prompt,
        "completion": usage.completion,
        "cached": usage.cached,
        "cost": usage.cost,
    }


def arguments_of(call: ToolCall) -> Mapping[str, Any] | str:
    """The arguments of a call as JSON; its raw text if they are not an object."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call.arguments
    return value if isinstance(value, dict) else call.arguments


def _took(seconds: float) -> Line:
    return {"duration_ms": round(seconds * 1000, 3)}
