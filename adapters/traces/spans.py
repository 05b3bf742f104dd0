"""Runs as OpenTelemetry spans: `run`, and in it a `chat` for each answer of a model, a
`tool.execute` for each call; a `delivery` if its answer did not arrive, or not for certain, and
another one once it is known what became of it.

Only the API is used: without an SDK that somebody set up, all of this does nothing. Names and
attributes are those of the GenAI conventions, and `genai.tool.name` besides (seeds/002). What
people and models said is in no span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

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

from bot.core.journal import Entry, TurnClosed, Undelivered
from frostagent.types.messages import ToolCall
from frostagent.types.ports import Clock
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

MAX_OPEN = 10_000  # runs at a time: far more than there ever are
MAX_ENDED = 1000  # runs whose answers are on their way


@dataclass(slots=True)
class OpenRun:
    """A run that goes on: its span, and when its calls began, in seconds since 1970, by step and
    call id.
    """

    span: Span
    inside: Context
    began: dict[tuple[int, str], float] = field(default_factory=dict)


class SpanObserver:
    """Fits `TurnFollower`. `provider` is whose spans they are, that of the process where it is left
    out.
    """

    sees: Final = frozenset({TurnClosed})

    def __init__(self, *, clock: Clock, provider: TracerProvider | None = None) -> None:
        self._clock = clock
        self._provided = provider is not None
        self._tracer: Tracer = get_tracer("frostagent", tracer_provider=provider)
        self._runs: dict[str, OpenRun] = {}
        self._ended = LRUCache[str, Context](MAX_ENDED)  # inside of whose spans deliveries are told

    def notice(self, event: RunEvent) -> None:
        """Take a fact of a run."""
        match event:
            case RunStarted() | RunContinued():
                self._open(event)
            case _ if not self._runs:  # nobody looks
                pass
            case StepFinished() if run := self._runs.get(event.run_id):
                self._answered(run, event)
            case ToolStarted(call=call, step=step) if run := self._runs.get(event.run_id):
                run.began[step, call.id] = self._clock.now()
            case ToolFinished() if run := self._runs.get(event.run_id):
                self._called(run, event)
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

    def see(self, entry: Entry) -> None:
        """Take the end of a turn: whether its answer arrived is known, or else `settled` later."""
        if not self._ended or not isinstance(entry, TurnClosed):
            return
        if entry.undelivered is None:
            self._ended.pop(entry.turn_id, None)
        else:
            self.settled(entry.turn_id, entry.undelivered)

    def settled(self, turn_id: str, outcome: str) -> None:
        """Take what became of an answer that did not arrive, or not for certain."""
        if (inside := self._ended.get(turn_id)) is None:
            return
        about = {"frostagent.run": turn_id, "frostagent.outcome": outcome}
        error = outcome if outcome == Undelivered.NOT_DELIVERED else ""
        self._span("delivery", inside, about, self._clock.now(), 0.0, error=error)

    def _open(self, event: RunStarted | RunContinued) -> None:
        if not self._provided and isinstance(get_tracer_provider(), ProxyTracerProvider):
            return  # nobody has set one up (yet)
        if len(self._runs) >= MAX_OPEN:
            self._runs.clear()
        about: dict[str, str | bool] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": str(event.conversation),
            "frostagent.run": event.run_id,
            "frostagent.resumed": isinstance(event, RunContinued),
        }
        outer = self._runs.get(event.parent)
        around = Context() if outer is None else outer.inside
        span = self._tracer.start_span(
            "run", around, attributes=about, start_time=_nanoseconds(self._clock.now())
        )
        if span.is_recording():  # else nobody looks, and there is nothing more to do
            self._runs[event.run_id] = OpenRun(span, set_span_in_context(span, Context()))

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

    def _called(self, run: OpenRun, event: ToolFinished) -> None:
        began = run.began.pop((event.step, event.call.id), None)
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
        # The calls of a step are told finished together: the one or other ended before. What it
        # waited is no part.
        start = self._clock.now() - event.seconds if began is None else began + event.waited
        self._span("tool.execute", run.inside, about, start, event.seconds, error=error)

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
