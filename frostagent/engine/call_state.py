"""A call on its way through `call_executor`: what is known of it, and what it leaves behind; and
the calls of its run so far, since models go round in circles (`Repeats`).

Repeated are calls of the same tool with the same arguments in different steps, as long as nothing
was written and nobody said anything in between: the second gets the result there already is, the
third an error, the fourth ends the run with a last answer. A call that failed may be tried a second
time. A tool that was called with wrong arguments three times in a row is closed for the rest of the
run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from frostagent.text.visible_text import visible_text
from frostagent.types.arguments import Checked, parse_arguments
from frostagent.types.errors import ERROR, InvalidArguments, ToolError, ToolFailed
from frostagent.types.hooks import Metadata, StopRun
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.results import ToolResult, name_of_picture, shorten
from frostagent.types.runs import PendingCall, ToolFinished
from frostagent.types.tools import Tool, ToolContext

MAX_WRONG = 3  # calls of one tool with wrong arguments, in a row

Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call made for the second time, with the result of the first."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class TooManyRepeats:
    """A call made for the third time or later. `is_last` says that the run must come to its end."""

    times: int
    is_last: bool


def call_key(name: str, arguments: Mapping[str, Any]) -> Key:
    """The key that equal calls share: the layout and order of the arguments do not matter."""
    return name, json.dumps(arguments, sort_keys=True, default=str)


class Repeats:
    """The calls of a run so far. Those of a step count once the step is over: `next_step`."""

    def __init__(self) -> None:
        self._times: dict[Key, int] = {}
        self._results: dict[Key, ToolResult] = {}
        self._now: dict[Key, ToolResult | None] = {}
        self._wrong: dict[str, int] = {}

    def judge(self, key: Key) -> RepeatedCall | TooManyRepeats | None:
        """Judge a call before it is run; None where it is to be run."""
        times = self._times.get(key, 0) + 1
        self._now.setdefault(key, None)
        if times > 2:
            return TooManyRepeats(times, is_last=times > 3)
        known = self._results.get(key)
        return None if known is None else RepeatedCall(known)

    def keep(self, key: Key, result: ToolResult) -> None:
        """Keep the result of a call, which may be given again."""
        self._now[key] = result

    def next_step(self) -> None:
        """Count the calls of the step that is over."""
        for key, result in self._now.items():
            self._times[key] = self._times.get(key, 0) + 1
            if result is not None:
                self._results[key] = result
        self._now.clear()

    def forget(self) -> None:
        """Forget all calls: something was written or said, so results may be otherwise now."""
        self._times.clear()
        self._results.clear()
        self._now.clear()

    def took(self, name: str, *, fits: bool) -> None:
        """Note whether the arguments of a call fitted its tool."""
        if fits:
            self._wrong.pop(name, None)
        else:
            self._wrong[name] = self._wrong.get(name, 0) + 1

    def is_closed(self, name: str) -> bool:
        """Whether the tool was called with wrong arguments too many times in a row."""
        return self._wrong.get(name, 0) >= MAX_WRONG


MAX_RESULT = 8000  # characters of one result that reach the model
MAX_RESULTS = 64_000  # characters of all results of a run
LEAST_RESULT = 200  # characters that every result has, whatever was there before

OK = "ok"  # the code of what did not fail


class CallStage(StrEnum):
    """The stage a call is at, as people and models read it where it breaks."""

    PREPARING = "the preparation of its arguments"
    CHECKING = "its own check"
    HOOK = "a hook"
    ASKING = "the approver"
    RUNNING = "the tool"
    HOOK_AFTER = "the call was done, but a hook"


@dataclass(frozen=True, slots=True)
class Executed:
    """One finished call: its result, and its stable code ("ok" or a TOOL_... word).

    `seconds` is how long its body ran, 0 where it never did; `waited` how long it waited before
    that, or until it was refused. `details` are for people only; `terminate` is the tool's wish
    that the run ends here; `arguments` are those it was run with, None where it never came to that,
    and `coerced` what was mended in them. Its body ran from `began` to `ended`, in seconds since
    1970. `exception` is what was raised.
    """

    message: ToolMessage
    code: str
    seconds: float
    waited: float = 0.0
    details: Any = field(default_factory=dict, hash=False)
    terminate: bool = False
    arguments: Mapping[str, Any] | None = field(default=None, hash=False)
    coerced: tuple[str, ...] = ()
    began: float = 0.0
    ended: float = 0.0
    exception: BaseException | None = field(default=None, compare=False)

    def event(self, run_id: str, step: int, call: ToolCall, response_id: str) -> ToolFinished:
        """The event that tells of it."""
        return ToolFinished(
            run_id=run_id,
            step=step,
            call=call,
            result=self.message,
            code=self.code,
            seconds=self.seconds,
            waited=self.waited,
            response_id=response_id,
            details=self.details,
            arguments=self.arguments,
            coerced=self.coerced,
            began=self.began,
            ended=self.ended,
            exception=self.exception,
        )


class CallTotals(msgspec.Struct):
    """The sums over the calls of one run so far. `left` is how many characters its results may
    still have.

    `is_over` says that the run must come to its end: it goes round in circles. `stop` is a hook's
    wish that it ends.
    """

    repeats: Repeats = msgspec.field(default_factory=Repeats)
    left: int = MAX_RESULTS
    is_over: bool = False
    stop: StopRun | None = None


@dataclass(slots=True)
class CallState:
    """A call on its way. `pending` is what it had waited for, in an earlier segment of its run.
    `owes_after`: its before hooks were asked, so its after hooks will be.

    `started` is on the clock's monotonic scale; `earlier` is how long it had waited in earlier
    segments of its run, part of `waited`; `began` and `ended` are those of its body, in seconds
    since 1970. `exception` was raised, by it or to refuse it. `is_told`: whoever wants to know of
    results as they come knows of its own. `is_worded`: what is told of its failure was settled.
    """

    call: ToolCall
    context: ToolContext
    started: float
    pending: PendingCall | None = None
    tool: Tool | None = None
    checked: Checked | None = None
    stage: CallStage = CallStage.RUNNING
    needs_approval: bool = False
    owes_after: bool = False
    ran: bool = False
    is_told: bool = False
    is_worded: bool = False
    result: ToolResult | None = None
    exception: BaseException | None = None
    began: float = 0.0
    ended: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0
    earlier: float = 0.0

    @property
    def code(self) -> str:
        """The stable word its result stands for; `ok` also while it has none."""
        return OK if self.result is None else self.result.code or OK

    def refuse(self, error: ToolError, cause: BaseException | None = None) -> None:
        """This failure is its result; `cause` was raised, if it is not the failure itself."""
        self.exception = cause or error
        self.result = ToolResult(error.told, details=error.details, is_error=True, code=error.code)

    @property
    def may_change_something(self) -> bool:
        """Whether its body is still to come, and is not known to be harmless."""
        return (
            self.result is None and self.tool is not None and not self.tool.side_effects.is_harmless
        )

    @property
    def input(self) -> Mapping[str, Any]:
        """The arguments as far as they are known, as JSON has them."""
        if self.checked is not None:
            return self.checked.plain
        try:
            return parse_arguments(self.call.arguments)
        except InvalidArguments:
            return {}


def metadata_of(context: ToolContext) -> Metadata:
    """The ids that lead a reader from a call to its step, its run and the model's answer that made
    it.
    """
    return {
        "run": context.run_id,
        "step": context.step,
        "call": context.call_id,
        "response": context.response_id,
        "conversation": context.conversation,
        "asker": context.asker.user_id,
    }


def worded_failure(result: ToolResult, code: str = OK) -> ToolResult:
    """A failure that a tool or a hook tells, in the words every failure has; anything else as it
    is.

    `code` is that of the failure it stands for; where there was none, the tool has failed.
    """
    if not result.is_error:
        return result
    code = ToolFailed.code if code == OK else code
    start = "" if result.content.startswith(ERROR) else ERROR
    return replace(
        result,
        content=f"{start}{result.content.removesuffix(failure_ending(code))}{failure_ending(code)}",
        code=code,
    )


def failure_ending(code: str) -> str:
    """How every failure ends."""
    return f" [{code}]"


def with_left_out(result: ToolResult, checked: Checked) -> ToolResult:
    """The result with a line on what was left out of the arguments, so that the model knows it had
    no effect.

    A failure still ends in its code.
    """
    end = failure_ending(result.code) if result.is_error else ""
    notice = f"(Left out, no such parameter: {', '.join(checked.unknown)}.)"
    return replace(result, content=f"{result.content.removesuffix(end)}\n{notice}{end}")


def told_with_images(result: ToolResult) -> str:
    """The text of a result, with a line for each picture that it does not name: a model that sees
    gets them after it, in this order.
    """
    names = map(name_of_picture, range(1, len(result.images) + 1))
    return "\n".join([result.content, *(name for name in names if name not in result.content)])


def readable(text: str, limit: int) -> str:
    """Text that any vendor and store can take: not too long, without half surrogates (they have no
    UTF-8).

    Nor with what nobody sees: escapes for terminals, marks that turn letters round, controls.
    """
    short = shorten(visible_text(text), limit)
    return (
        short
        if short.isascii()
        else short.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )
