"""The instruments, and what each event adds to them.

Every label has few values, known in advance: tools, outcomes, kinds of events. A name invented by a
model counts as `unknown`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, Generic, TypeVar, get_args

from bot.core.events import Event, Identity
from bot.core.journal import (
    Entry,
    Judged,
    MessageObserved,
    MessageOverheard,
    SendChanged,
    SendQueued,
    SendState,
    TurnClosed,
    TurnOpened,
    Undelivered,
)
from bot.core.ports import EventSink
from frostagent.types.messages import Attempt
from frostagent.types.ports import Clock
from frostagent.types.runs import RunEvent, RunFinished, StepFinished, Stop, ToolFinished


class Count:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class Times:
    """A histogram of seconds with rising upper `bounds`."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[float, int]]:
        """Cumulative counts by upper bound; the last bound is infinite."""
        return list(zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True))


Instrument = TypeVar("Instrument", Count, Times)


class Family(Generic[Instrument]):
    """Instruments of one `name` by label values, created on first use. `what` is the help text."""

    def __init__(
        self, name: str, what: str, names: Sequence[str], make: Callable[[], Instrument]
    ) -> None:
        self.name, self.what, self.names = name, what, names
        self._make: Callable[[], Instrument] = make
        self.members: dict[tuple[str, ...], Instrument] = {}

    def labels(self, *values: str) -> Instrument:
        """The instrument for these values, in the order of the labels."""
        member = self.members.get(values)
        if member is None:
            member = self.members[values] = self._make()
        return member


UNKNOWN: Final = "unknown"
OTHER: Final = "other"
MAX_OPEN: Final = 10_000  # waiting questions, sends on the wire; never reached

# Upper bounds in seconds. A model takes seconds, a tool or a send fractions of one; queues and
# timeouts take longer.
MODEL_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120)
RUN_SECONDS: Final = (0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 300)
WIRE_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

Key = TypeVar("Key")

ANSWERED: Final = frozenset({SendState.CONFIRMED, SendState.REFUSED, SendState.UNKNOWN})
TOKENS: Final = ("prompt", "completion", "cached")
# name -> help text, labels
COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "runs": ("Runs that ended, by how they ended.", "outcome"),
    "turns": (
        "Turns that ended, by what their askers got: as runs, or whether the answer arrived.",
        "outcome",
    ),
    "late_deliveries": (
        "Turns counted as unconfirmed, by what became of their answers since.",
        "outcome",
    ),
    "jobs": (
        "Reminders and scheduled tasks whose moment came: said, or missed.",
        "kind",
        "outcome",
    ),
    "chime_ins": (
        "Batches of lines judged for chiming in, and the turns that began after one.",
        "step",
    ),
    "greetings": ("Messages about people who joined or left a group.", "change"),
    "links": ("Links on the sites of BOT_LINKS_SITES, by what became of them.", "outcome"),
    "steps": ("Steps: model requests of runs that were answered.",),
    "tool_calls": ("Tool calls that have their result.", "tool", "outcome"),
    "tool_error": ("Tool calls that failed, by their stable code.", "tool", "code"),
    "model_requests": (
        "Requests to a model, each attempt counted: ok, or why not.",
        "endpoint",
        "outcome",
    ),
    "tokens": ("Tokens as the models counted them; cached ones are prompt too.", "kind"),
    # no series until a price is known: unknown is not zero
    "cost": ("What answers cost, where that is known.", "currency"),
    "answers": ("Answers of models, by whether it is known what they cost.", "cost"),
    "unanswered": ("Messages that were for the bot and are not answered, by why.", "reason"),
    "events": ("Events that OneBot servers sent.", "kind"),
    "sends": ("States that sends came into.", "state"),
    "stalls": ("Times the event loop stood still for more than a second.",),
}

# name -> upper bounds in seconds, help text, labels
TIMES: Final[Mapping[str, tuple[tuple[float, ...], *tuple[str, ...]]]] = {
    "queue": (WIRE_SECONDS, "From a question's arrival to the beginning of its turn."),
    "first_token": (
        MODEL_SECONDS,
        "From a model request to the first piece of its answer; to all of it where unknown.",
    ),
    "run": (RUN_SECONDS, "From the beginning of a run to its end."),
    "tool": (WIRE_SECONDS, "How long the body of a tool call ran.", "tool"),
    "tool_wait": (
        RUN_SECONDS,
        "From a tool call to the beginning of its body: its turn, somebody's word.",
        "tool",
    ),
    "send": (WIRE_SECONDS, "From a send's turn to what became of it."),
}


class Metrics:
    """All counters and histograms; a `TurnFollower`.

    `tools` are the names of existing tools; `reasons` maps a verdict's reason for no answer to its
    label.
    """

    notices: Final = frozenset({RunFinished, StepFinished, ToolFinished})
    sees: Final = frozenset(
        {SendQueued, SendChanged, MessageObserved, Judged, MessageOverheard, TurnOpened, TurnClosed}
    )

    def __init__(
        self, *, tools: Collection[str], clock: Clock, reasons: Mapping[str, str] | None = None
    ) -> None:
        self._tools_known = frozenset(tools)
        self._clock = clock
        self._taken: dict[Identity, float] = {}
        self._on_wire: dict[str, float] = {}
        self.stalls = 0  # since the start
        counts = {name: counts_of(name, *row) for name, row in COUNTS.items()}
        times = {name: times_of(name, *row) for name, row in TIMES.items()}
        self.counts, self.times = tuple(counts.values()), tuple(times.values())
        self._runs = counts["runs"]
        self._steps = counts["steps"].labels()
        self._tool_calls = counts["tool_calls"]
        self._tool_errors = counts["tool_error"]
        self._requests = counts["model_requests"]
        self._tokens = counts["tokens"]
        self._cost = counts["cost"]
        self._answers = counts["answers"]
        unanswered = counts["unanswered"]
        self._unanswered = {why: unanswered.labels(name) for why, name in (reasons or {}).items()}
        self._unanswered_else = unanswered.labels(OTHER)
        self._events = counts["events"]
        self._sends = counts["sends"]
        self._jobs = counts["jobs"]
        self._chime_ins = counts["chime_ins"]
        self._greetings = counts["greetings"]
        self._links = counts["links"]
        self._stalls = counts["stalls"].labels()
        self._queue = times["queue"].labels()
        self._first_token = times["first_token"].labels()
        self._run = times["run"].labels()
        self._tool = times["tool"]
        self._tool_wait = times["tool_wait"]
        self._send = times["send"].labels()
        # Children created here show as zero, not as missing, and are ready for the hot path.
        self._by_event = {kind: self._events.labels(kind) for kind in kinds_of(Event)}
        self._by_state = {state: self._sends.labels(state) for state in SendState}
        self._by_known = {
            True: self._answers.labels("known"),
            False: self._answers.labels("unknown"),
        }
        self._by_token = {kind: self._tokens.labels(kind) for kind in TOKENS}
        self._by_end = {end: counts["turns"].labels(end) for end in (*Stop, *Undelivered)}
        self._by_late: dict[str, Count] = {
            end: counts["late_deliveries"].labels(end)
            for end in (Stop.ANSWERED, Undelivered.NOT_DELIVERED)
        }
        self._by_outcome = {stop: self._runs.labels(stop) for stop in Stop}

    def know_tools(self, names: Iterable[str]) -> None:
        """Count these tools by name from now on."""
        self._tools_known |= frozenset(names)

    # --- facts ------------------------------------------------------------------------------------

    def notice(self, event: RunEvent) -> None:
        match event:
            case RunFinished(outcome=outcome) if not event.parent:
                self._by_outcome[outcome.stop].inc()
                self._run.observe(event.seconds)
            case StepFinished():
                self._steps.inc()
            case ToolFinished(call=call, code=code):
                tool = call.name if call.name in self._tools_known else UNKNOWN
                self._tool_calls.labels(tool, code.removeprefix("TOOL_").lower()).inc()
                self._tool.labels(tool).observe(event.seconds)
                self._tool_wait.labels(tool).observe(event.waited)
                if event.result.is_error:
                    self._tool_errors.labels(tool, code).inc()
            case _:
                pass

    def see(self, entry: Entry) -> None:
        match entry:  # most frequent first
            case SendChanged() | SendQueued():
                self._by_state[entry.state].inc()
                if entry.state is SendState.SENDING:
                    self._start(self._on_wire, entry.send_id)
                elif entry.state in ANSWERED:
                    self._stop(self._on_wire, entry.send_id, self._send)
                else:
                    self._on_wire.pop(entry.send_id, None)
            case MessageObserved():
                if not entry.overheard:
                    self._start(self._taken, entry.message.identity)
                if entry.judged is not None:
                    self._judge(entry.judged)
            case TurnOpened():
                self._stop(self._taken, entry.question.identity, self._queue)
            case TurnClosed():
                self._by_end[entry.undelivered or entry.stop].inc()
            case Judged():
                self._judge(entry)
            case MessageOverheard():
                self._taken.pop(entry.message.identity, None)
            case _:
                pass

    def settled(self, _turn_id: str, outcome: str) -> None:
        """Count the late outcome of a turn that QQ had not confirmed at its end."""
        if (late := self._by_late.get(outcome)) is not None:
            late.inc()

    def _judge(self, judged: Judged) -> None:
        if not judged.wakes:
            self._unanswered.get(judged.reason, self._unanswered_else).inc()

    def stalled(self, _seconds: float) -> None:
        self.stalls += 1
        self._stalls.inc()

    def event(self, kind: str) -> None:
        self._by_event[kind].inc()

    def asked(self, attempt: Attempt) -> None:
        """A model request ended; count an answer's usage and seconds to its first token."""
        self._requests.labels(attempt.endpoint, attempt.outcome).inc()
        if (completion := attempt.completion) is None:
            return
        first_token, usage = completion.first_token, completion.usage
        self._first_token.observe(attempt.seconds if first_token is None else first_token)
        known = usage is not None and usage.cost is not None and usage.cost >= 0
        self._by_known[known].inc()
        if usage is None:
            return
        for kind in TOKENS:
            if (tokens := getattr(usage, kind)) > 0:
                self._by_token[kind].inc(tokens)
        if usage.cost is not None and usage.cost >= 0:
            self._cost.labels("usd").inc(usage.cost)

    def fired(self, kind: str, outcome: str) -> None:
        """A job of this kind was said, or missed."""
        self._jobs.labels(kind, outcome).inc()

    def chimed(self, step: str) -> None:
        """A batch of lines was `judged`, or a turn has `begun` after one."""
        self._chime_ins.labels(step).inc()

    def greeted(self, change: str) -> None:
        """A message was sent about people who `joined` or `left`."""
        self._greetings.labels(change).inc()

    def linked(self, outcome: str) -> None:
        """A link on a listed site was summed up unasked, or why not."""
        self._links.labels(outcome).inc()

    def _start(self, since: dict[Key, float], key: Key) -> None:
        if len(since) >= MAX_OPEN:
            # Entries that can never end have piled up: losing times is better than a growing table.
            since.clear()
        since[key] = self._clock.monotonic()

    def _stop(self, since: dict[Key, float], key: Key, into: Times) -> None:
        started = since.pop(key, None)
        if started is not None:
            into.observe(self._clock.monotonic() - started)


def counts_of(name: str, what: str, *labels: str) -> Family[Count]:
    return Family(f"frostagent_{name}", what, labels, Count)


def times_of(name: str, bounds: tuple[float, ...], what: str, *labels: str) -> Family[Times]:
    return Family(f"frostagent_{name}_seconds", what, labels, lambda: Times(bounds))


def kinds_of(union: object) -> tuple[str, ...]:
    """The `type` of each member of a union."""
    return tuple(member.type for member in get_args(union))


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """Usage of all since midnight, in US dollars and tokens, `reserved` for requests under way
    included. `rung` is how much is left out because of limits, as in docs/limits.md; `used` is the
    share of the limit of all. `used` is None without a limit, `cost` without a known price.
    """

    cost: float | None
    tokens: float
    reserved: float
    rung: int
    used: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """The bot's current state. `duplicates`, `overflow`, `reconnects`, `withheld`, `ended` (tool
    calls by outcome) and `commands` (by name) count since the start; `waiting` counts pending
    decisions by kind. `today` is None until an earlier process's usage is known. `servers` are the
    MCP servers, and whether each is connected. `jobs` is how many have not ended; None if the
    journal cannot be read.
    """

    lanes: int
    queued: int
    online: int
    offline: int
    duplicates: int
    overflow: int
    reconnects: int
    withheld: int
    waiting: Mapping[str, int]
    ended: Mapping[str, int]
    commands: Mapping[str, int]
    today: Today | None
    servers: Mapping[str, bool] = field(default_factory=dict)
    jobs: int | None = None


def together(bots: Sequence[Vitals]) -> Vitals:
    """Merge the bots of a process, each with its own accounts. Figures that every bot reports for
    the whole process are not added up.
    """
    return Vitals(
        lanes=sum(one.lanes for one in bots),
        queued=sum(one.queued for one in bots),
        online=sum(one.online for one in bots),
        offline=sum(one.offline for one in bots),
        duplicates=sum(one.duplicates for one in bots),
        overflow=sum(one.overflow for one in bots),
        reconnects=max((one.reconnects for one in bots), default=0),
        withheld=sum(one.withheld for one in bots),
        waiting=_summed(one.waiting for one in bots),
        ended=_summed(one.ended for one in bots),
        commands=_summed(one.commands for one in bots),
        today=next((one.today for one in bots if one.today is not None), None),
        servers={name: is_up for one in bots for name, is_up in one.servers.items()},
        jobs=sum(known) if (known := [one.jobs for one in bots if one.jobs is not None]) else None,
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


class CountedSink:
    """An `EventSink` that counts events by kind."""

    def __init__(self, sink: EventSink, *, metrics: Metrics) -> None:
        self._sink = sink
        self._metrics = metrics

    def handle(self, event: Event) -> Coroutine[Any, Any, None]:
        self._metrics.event(event.type)
        return self._sink.handle(event)
