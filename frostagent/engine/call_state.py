"""The state of one call in `call_executor`, and the calls of a run so far (`Repeats`), because
models repeat themselves.

Calls of one tool with the same arguments in different steps are repeats, unless something was
written or people spoke in between. The second call gets the first result, the third an error, and
the fourth ends the run with a final answer. A failed call may be tried again once. A tool called
with wrong arguments three times in a row is closed for the rest of the run.
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
    """A call made for the third time or later. `is_last` means that the run must end."""

    times: int
    is_last: bool


def call_key(name: str, arguments: Mapping[str, Any]) -> Key:
    """The same key for equal calls, whatever the layout and order of the arguments."""
    return name, json.dumps(arguments, sort_keys=True, default=str)


class Repeats:
    """The calls of a run so far. A step's calls count after `next_step`."""

    def __init__(self) -> None:
        self._times: dict[Key, int] = {}
        self._results: dict[Key, ToolResult] = {}
        self._now: dict[Key, ToolResult | None] = {}
        self._wrong: dict[str, int] = {}

    def judge(self, key: Key) -> RepeatedCall | TooManyRepeats | None:
        """Judge a call before it is run; None means run it."""
        times = self._times.get(key, 0) + 1
        self._now.setdefault(key, None)
        if times > 2:
            return TooManyRepeats(times, is_last=times > 3)
        known = self._results.get(key)
        return None if known is None else RepeatedCall(known)

    def keep(self, key: Key, result: ToolResult) -> None:
        """Keep a result for a repeated call."""
        self._now[key] = result

    def next_step(self) -> None:
        """Count the calls of the finished step."""
        for key, result in self._now.items():
            self._times[key] = self._times.get(key, 0) + 1
            if result is not None:
                self._results[key] = result
        self._now.clear()

    def forget(self) -> None:
        """Forget all calls: something was written or said, so results may differ now."""
        self._times.clear()
        self._results.clear()
        self._now.clear()

    def took(self, name: str, *, fits: bool) -> None:
        if fits:
            self._wrong.pop(name, None)
        else:
            self._wrong[name] = self._wrong.get(name, 0) + 1

    def is_closed(self, name: str) -> bool:
        return self._wrong.get(name, 0) >= MAX_WRONG


MAX_RESULT = 8000  # characters of one result that reach the model
MAX_RESULTS = 64_000  # characters of all results of a run
LEAST_RESULT = 200  # characters that every result may have

OK = "ok"  # the code of a call that did not fail


class CallStage(StrEnum):
    """The stage of a call, as shown to people and models when it fails."""

    PREPARING = "the preparation of its arguments"
    CHECKING = "its own check"
    HOOK = "a hook"
    ASKING = "the approver"
    RUNNING = "the tool"
    HOOK_AFTER = "the call was done, but a hook"


@dataclass(frozen=True, slots=True)
class Executed:
    """A finished call: its result and stable code ("ok" or a TOOL_... word). The other fields are
    those of `ToolFinished`. `terminate` means that the tool wants the run to end.
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
    """Totals over a run's calls so far. `left` is the remaining size of results, in characters.

    `is_over` means that the run must end, because it repeats itself. `stop` is a hook's request to
    end it.
    """

    repeats: Repeats = msgspec.field(default_factory=Repeats)
    left: int = MAX_RESULTS
    is_over: bool = False
    stop: StopRun | None = None


@dataclass(slots=True)
class CallState:
    """One call in progress. `pending` is what it waited for in an earlier segment.

    `owes_after` means that its before hooks ran, so its after hooks must. `started` is on the
    monotonic clock; `earlier` is the wait in earlier segments, in seconds, part of `waited`;
    `began` and `ended` are of the body, in seconds since 1970. `exception` was raised by the call
    or to refuse it. `is_told`: `on_result` was called. `is_worded`: `on_error` was consulted.
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
        """The stable word for its result; `ok` while there is none."""
        return OK if self.result is None else self.result.code or OK

    def refuse(self, error: ToolError, cause: BaseException | None = None) -> None:
        """Make this failure the result. `cause` is the original exception, if different."""
        self.exception = cause or error
        self.result = ToolResult(error.told, details=error.details, is_error=True, code=error.code)

    @property
    def may_change_something(self) -> bool:
        """Whether the body is still to run and is not known to be harmless."""
        return (
            self.result is None and self.tool is not None and not self.tool.side_effects.is_harmless
        )

    @property
    def input(self) -> Mapping[str, Any]:
        """The arguments as JSON, as far as they are known."""
        if self.checked is not None:
            return self.checked.plain
        try:
            return parse_arguments(self.call.arguments)
        except InvalidArguments:
            return {}


def metadata_of(context: ToolContext) -> Metadata:
    """The ids that lead from a call to its step, its run and the model's answer."""
    return {
        "run": context.run_id,
        "step": context.step,
        "call": context.call_id,
        "response": context.response_id,
        "conversation": context.conversation,
        "asker": context.asker.user_id,
    }


def worded_failure(result: ToolResult, code: str = OK) -> ToolResult:
    """A tool's or hook's failure in the common form; other results unchanged. `code` is that of the
    failure it replaces, if any.
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
    return f" [{code}]"


def with_left_out(result: ToolResult, checked: Checked) -> ToolResult:
    """The result with a line on dropped arguments, so that the model knows they had no effect."""
    end = failure_ending(result.code) if result.is_error else ""
    notice = f"(Left out, no such parameter: {', '.join(checked.unknown)}.)"
    return replace(result, content=f"{result.content.removesuffix(end)}\n{notice}{end}")


def told_with_images(result: ToolResult) -> str:
    """The text of a result, with a line for each picture it does not name, in order."""
    names = map(name_of_picture, range(1, len(result.images) + 1))
    return "\n".join([result.content, *(name for name in names if name not in result.content)])


def readable(text: str, limit: int) -> str:
    """Text that every vendor and store accepts: limited in length, without lone surrogates and
    invisible characters.
    """
    short = shorten(visible_text(text), limit)
    return (
        short
        if short.isascii()
        else short.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )
