"""A run from outside: its question, its progress, and messages added meanwhile. Also repairs
transcripts, so that each call is followed by exactly one result.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from frostagent.engine.budget import Budget, BudgetShare
from frostagent.engine.call_state import MAX_RESULTS, CallTotals
from frostagent.types.errors import ToolUnavailable
from frostagent.types.messages import (
    NOT_COUNTED,
    AssistantMessage,
    Counted,
    Message,
    ModelRequest,
    OnDelta,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
    joined,
)
from frostagent.types.ports import ChatModel, Observer
from frostagent.types.runs import Asker, Outcome, RunEvent, StepFinished, Stop, SuspendedRun, Terms
from frostagent.words import Words, words_in_force


def drain(queue: deque[UserMessage]) -> UserMessage | None:
    """All queued messages as one; None if there are none."""
    if not queue:
        return None
    return joined([queue.popleft() for _ in range(len(queue))])


MAX_ANEW = 2  # times a request is aborted for new messages
MAX_OVERTAKEN = 2  # times a final answer is withheld for new messages


class Inbox(Protocol):
    """The messages that people add to a running answer in a chat."""

    async def read(self, run: Run, state: RunState) -> Run:
        """Read new messages before the model does. Returns the run for the next request."""
        ...

    def record_broken_off(self, model: str, usage: Usage, step: int) -> None:
        """Count a request that was aborted at this step."""
        ...


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the engine. `transcript` is all that the model reads before its first step,
    with token counts in `counted`.

    `heard` says whether the asker has already been told something: then an empty ending is fine.
    `tidy` makes of what the model said what may be said and kept, `cite` then does so by what the
    run's messages have shown it, with its sources. `share` is what of its
    question's budget is its own. `may_be_silent`: nobody called for certain, so an empty answer is
    an end, too. With an `inbox` whatever steers it is read before its final words are said.
    `model` is asked, the engine's own where it is None, with a `temperature` where there is one;
    `terms` say which tools are offered and run there. `leaner` makes it what its next request may
    be. `words` are the library's own. An answer that it `doubts`, or of which nothing is left, is
    asked for once more, with the `examples` before the question. Words that are `silence`, given
    what was taken for it before, are as good as none. `on_delta` is told each answer while it
    comes. The answer should fit `answer_schema`, if there is one.
    """

    id: str
    conversation: str
    asker: Asker
    transcript: tuple[Message, ...]
    counted: Counted = NOT_COUNTED
    asked: tuple[str, ...] = ()
    ports: Mapping[type, object] = msgspec.field(default_factory=dict)
    heard: Callable[[], bool] | None = None
    tidy: Callable[[AssistantMessage], AssistantMessage] | None = None
    cite: Callable[[AssistantMessage, Sequence[Message]], AssistantMessage] | None = None
    share: BudgetShare = msgspec.field(default_factory=lambda: Budget().share())
    may_be_silent: bool = False
    inbox: Inbox | None = None
    model: ChatModel | None = None
    temperature: float | None = None
    terms: Terms = Terms()
    leaner: Callable[[Run], Run] | None = None
    words: Words = msgspec.field(default_factory=words_in_force)
    doubts: Callable[[str], bool] | None = None
    silence: Callable[[str, str], bool] | None = None
    answer_schema: Mapping[str, Any] | None = None
    examples: tuple[Message, ...] = ()
    on_delta: OnDelta | None = None

    def request(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> ModelRequest:
        """The request with these messages, which begin with the transcript."""
        return ModelRequest(
            messages,
            tools,
            self.share,
            self.temperature,
            counted=self.counted,
            answer_schema=self.answer_schema,
        )

    def may_end_empty(self, *, spoilt: bool) -> bool:
        """Whether the run may end without text. `spoilt` means that text was removed."""
        return self.was_heard() or (self.may_be_silent and not spoilt)

    def was_heard(self) -> bool:
        """Whether a message was already sent to the asker in this run."""
        return self.heard is not None and self.heard()

    def as_allowed_now(self) -> Run:
        """The run adapted for its next request."""
        return self if self.leaner is None else self.leaner(self)


@dataclass(slots=True)
class RunState:
    """The progress of a run, owned by the caller, so that it survives a cancellation.

    Messages added meanwhile are read after the next tool calls (`steer`) or once the model is done
    (`follow_up`, and steering that came too late). Messages after the end stay in the queues.
    `request` is the current request, as long as the run has added no messages. `model` is the model
    asked last (None: the engine's own), `shown` the tools it was offered. `is_spoilt` asks for the
    next answer with examples; `doubted` is the answer if no better one comes; `silence` is the text
    taken for silence. `cause` is the error that made the run fail.
    """

    messages: list[Message] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    totals: CallTotals = field(default_factory=CallTotals, compare=False)
    steering: deque[UserMessage] = field(default_factory=deque, compare=False)
    follow_ups: deque[UserMessage] = field(default_factory=deque, compare=False)
    request: asyncio.Timeout | None = field(default=None, compare=False)
    anew: int = field(default=0, compare=False)
    overtaken: int = field(default=0, compare=False)
    shown: tuple[ToolSpec, ...] = field(default=(), compare=False)
    model: ChatModel | None = field(default=None, compare=False)
    is_spoilt: bool = field(default=False, compare=False)
    doubted: str = field(default="", compare=False)
    silence: str = field(default="", compare=False)
    was_refused: bool = field(default=False, compare=False)
    cause: BaseException | None = field(default=None, compare=False)

    def steer(self, message: UserMessage) -> None:
        """Add a message, which the model reads with its next request, after its calls' results."""
        self.steering.append(message)

    def follow_up(self, message: UserMessage) -> None:
        """Queue a question for after the current answer."""
        self.follow_ups.append(message)

    def ask_anew(self, *, most: int = MAX_ANEW) -> None:
        """Abort the current request, at most `most` times; not once the run has added messages."""
        if self.request is not None and self.anew < most:
            self.anew += 1
            self.request.reschedule(asyncio.get_running_loop().time())
            self.request = None

    def is_overtaken(self) -> bool:
        """Whether new messages came, so that the final answer is withheld. Counts it."""
        if not self.steering or self.overtaken == MAX_OVERTAKEN:
            return False
        self.overtaken += 1
        return True

    def listen(self, *queues: deque[UserMessage]) -> bool:
        """Add queued messages to the transcript; whether there were any. Repeats are forgotten."""
        said = [message for queue in queues if (message := drain(queue)) is not None]
        if said:
            if self.messages and isinstance(last := self.messages[-1], UserMessage):
                self.messages[-1] = joined((last, *said))
            else:
                self.messages.append(joined(said))
            self.totals.repeats.forget()
            self.forget_doubts()
        return bool(said)

    def forget_doubts(self) -> None:
        """Forget doubted answers: the question has changed."""
        self.is_spoilt, self.doubted = False, ""

    def restore(self, suspended: SuspendedRun) -> None:
        """Restore the state from before the wait, with the remaining room for results.

        Repeats are counted anew, because something was done or said meanwhile, and hooks choose the
        model again.
        """
        self.messages[:] = suspended.messages
        self.usage, self.steps = suspended.usage, suspended.steps
        results = (
            one for one in (*suspended.messages, *suspended.answers) if isinstance(one, ToolMessage)
        )
        self.totals.left = max(0, MAX_RESULTS - sum(len(result.content) for result in results))

    def outcome(
        self, stop: Stop, text: str = "", *, limit: bool = False, error: str = ""
    ) -> Outcome:
        """The outcome if the run ends here."""
        return Outcome(
            stop, text, tuple(self.messages), self.usage, self.steps, limit=limit, error=error
        )


@dataclass(frozen=True, slots=True)
class NestedObserver:
    """Passes on events of inner runs as the outer run's children, and adds up their usage."""

    run: Run
    state: RunState
    observer: Observer

    def notice(self, event: RunEvent) -> None:
        if isinstance(event, StepFinished) and event.completion.usage is not None:
            self.state.usage += event.completion.usage
        self.observer.notice(replace(event, parent=event.parent or self.run.id))


# --- transcript repair ----------------------------------------------------------------------------

INTERRUPTED = ToolUnavailable("unavailable — interrupted").told


def close_interrupted(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Make an interrupted transcript valid: a missing result becomes "interrupted".

    Results count only right after the message with their calls (vendors reuse ids in later steps);
    duplicates and those under another name are dropped. A valid transcript is unchanged.
    """
    return tuple(_whole(messages))


def close_suspended(suspended: SuspendedRun) -> tuple[Message, ...]:
    """The transcript of a suspended run that never continues; waiting calls were not run."""
    results = (answer for answer in suspended.answers if isinstance(answer, ToolMessage))
    return close_interrupted((*suspended.messages, suspended.message, *results))


def _whole(messages: Iterable[Message]) -> Iterator[Message]:
    calls: tuple[ToolCall, ...] = ()
    results: list[ToolMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            results.append(message)
            continue
        yield from _answer(calls, results)
        yield message
        calls, results = message.tool_calls if isinstance(message, AssistantMessage) else (), []
    yield from _answer(calls, results)


def _answer(calls: tuple[ToolCall, ...], results: list[ToolMessage]) -> Iterator[ToolMessage]:
    left = list(results)
    for call in calls:
        found = next(
            (result for result in left if (result.call_id, result.name) == (call.id, call.name)),
            None,
        )
        if found is None:
            yield ToolMessage(
                call.id, call.name, INTERRUPTED, is_error=True, code=ToolUnavailable.code
            )
        else:
            left.remove(found)
            yield found
