"""Registry and execution of tools.

Invariant: every `ToolCall` gets exactly one `ToolMessage`, in call order, whatever happens: unknown name, bad
arguments, missing capability, time-out, crash, cancellation. A failing tool never ends a run. A call that must wait for
somebody's word (`Suspend`) has its result once that is there.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from bot.domain.chat import ToolCall, ToolMessage, ToolSpec
from bot.domain.errors import (
    ConfigError,
    InvalidArguments,
    Problem,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolTimeout,
    ToolUnavailable,
)
from bot.domain.ports import Clock
from bot.domain.run import PendingCall
from bot.domain.suspension import Suspend, digest_call
from bot.domain.tool import Tool, ToolContext

logger = logging.getLogger(__name__)

MAX_CALLS = 16  # of one step that are run: more is a model gone wild
TOO_MANY = f"only {MAX_CALLS} calls are run in one step, this one was not. Call again only what is really needed."
MAX_RESULT = 8000  # characters of one result that reach the model
MAYBE_DONE = "It may have been done all the same: do not repeat it."
NOT_DONE = "the call was cancelled while it waited to be allowed: it was not done."
ASKS_TWICE = "the tool asked to be allowed what it had been allowed. Do not repeat the call; say that it did not work."


@dataclass(frozen=True, slots=True)
class Executed:
    """One finished call: its result, its stable code ("ok" or a TOOL_... word), and how long it took in seconds."""

    message: ToolMessage
    code: str
    seconds: float


class Batch:
    """The calls of one step and what has come of them so far; whole as soon as it has run, also when cancelled."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = tuple(calls)
        self._answers: dict[int, ToolMessage | PendingCall] = {}
        self._finished: dict[int, Executed] = {}

    def keep(self, index: int, answer: ToolMessage | PendingCall) -> None:
        """Take an answer from an earlier segment of the run, or note that the call waits for somebody's word."""
        self._answers[index] = answer

    def finish(self, index: int, executed: Executed) -> None:
        self._answers[index] = executed.message
        self._finished[index] = executed

    def open(self) -> tuple[int, ...]:
        """The calls that are still to be run: neither answered nor waiting."""
        return tuple(index for index in range(len(self.calls)) if index not in self._answers)

    def waiting(self) -> tuple[int, ...]:
        return tuple(index for index in sorted(self._answers) if isinstance(self._answers[index], PendingCall))

    def answers(self) -> tuple[ToolMessage | PendingCall, ...]:
        """For each call, in call order, its result or what it waits for."""
        return tuple(self._answers[index] for index in range(len(self.calls)))

    def results(self) -> tuple[ToolMessage, ...] | None:
        """One result for each call, in call order; None while one of them waits."""
        results = tuple(answer for answer in self.answers() if isinstance(answer, ToolMessage))
        return results if len(results) == len(self.calls) else None

    def finished(self) -> tuple[tuple[ToolCall, Executed], ...]:
        """The calls that were finished here, not in an earlier segment, in call order."""
        return tuple((self.calls[index], self._finished[index]) for index in sorted(self._finished))


class Toolset:
    """The name-keyed registry of tools, and the one way to run them."""

    def __init__(self, tools: Iterable[Tool] = (), *, clock: Clock, max_result: int = MAX_RESULT) -> None:
        self._tools: dict[str, Tool] = {}
        self._definitions: dict[frozenset[type], tuple[ToolSpec, ...]] = {}
        self._clock = clock
        self._max_result = max_result
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, *, replace: bool = False) -> None:
        """Add a tool. Raises ConfigError for a second tool of one name, unless it replaces it on purpose."""
        if tool.name in self._tools and not replace:
            raise ConfigError(
                Problem(f"tool {tool.name}", "is registered twice", "Rename one, or register it with replace=True.")
            )
        self._tools[tool.name] = tool
        self._definitions.clear()

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def list(self) -> tuple[Tool, ...]:
        """All tools, sorted by name."""
        return tuple(self._tools[name] for name in sorted(self._tools))

    def definitions(self, ports: Mapping[type, object]) -> tuple[ToolSpec, ...]:
        """What the model is told of: the tools whose needs these ports meet, sorted by name.

        The same object for the same tools and ports, so that adapters may remember how they wrote it.
        """
        there = frozenset(ports)
        if there not in self._definitions:
            self._definitions[there] = tuple(tool.spec for tool in self.list() if there.issuperset(tool.needs))
        return self._definitions[there]

    async def run_batch(self, batch: Batch, contexts: Sequence[ToolContext]) -> None:
        """Run the open calls, each with its context of `contexts` (one for each call of the batch).

        They run side by side, but those with effects outside one after the other: what is said first arrives first.
        Calls beyond MAX_CALLS are refused. When this is cancelled, so are they, and every call has its result, those
        that wait too.
        """

        async def one(index: int) -> None:
            call, context = batch.calls[index], contexts[index]
            try:
                batch.finish(index, await self.execute(call, context))
            except Suspend as asked:
                batch.keep(index, self._pending(call, context, asked))

        async def in_turn(indexes: Iterable[int]) -> None:
            for index in indexes:
                await one(index)

        for index in batch.open()[MAX_CALLS:]:
            batch.finish(index, self.refused(batch.calls[index], ToolDenied(TOO_MANY)))
        try:
            match batch.open():
                case (index,):
                    await one(index)
                case indexes:
                    effects = [index for index in indexes if self._has_effects(batch.calls[index])]
                    async with asyncio.TaskGroup() as group:
                        group.create_task(in_turn(effects))
                        for index in indexes:
                            if index not in effects:
                                group.create_task(one(index))
        except BaseException:
            self._cancel(batch)
            raise

    def _has_effects(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.may_have_happened

    async def execute(self, call: ToolCall, context: ToolContext) -> Executed:
        """Run one call by name; what goes wrong becomes an error result, only a cancellation from outside gets out.

        Raises Suspend where the call waits for somebody's word, unless the context says that it was given.
        """
        started = self._clock.monotonic()
        try:
            content = await self._run(call, context)
        except Suspend:
            if not context.allowed:
                raise
            return self._executed(call, started, ToolFailed(ASKS_TWICE))
        except ToolError as error:
            return self._executed(call, started, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._executed(call, started, ToolFailed("the tool gave up on itself. Try something else."))
        except (Exception, SystemExit) as crash:
            logger.exception("tool %s crashed in run %s", call.name, context.run_id)
            text = f"the tool broke ({type(crash).__name__}). Do not repeat the call; say that it did not work."
            return self._executed(call, started, ToolFailed(text))
        message = ToolMessage(call.id, call.name, self._readable(content))
        return Executed(message, "ok", self._clock.monotonic() - started)

    async def _run(self, call: ToolCall, context: ToolContext) -> str:
        tool = self._look_up(call.name)
        for need in tool.needs:
            if need not in context.ports:
                raise ToolUnavailable(f"{tool.name} cannot run here: it needs {need.__name__}. Do without it.")
        arguments = tool.check(parse_arguments(call.arguments))
        deadline = asyncio.timeout(tool.timeout)
        try:
            async with deadline:
                return render_result(await tool.run(context, arguments))
        except TimeoutError:
            if not deadline.expired():
                raise
            advice = MAYBE_DONE if tool.may_have_happened else "Do not repeat it unchanged."
            raise ToolTimeout(f"{tool.name} timed out after {tool.timeout:g} s. {advice}") from None

    def _look_up(self, name: str) -> Tool:
        if tool := self._tools.get(name):
            return tool
        near = difflib.get_close_matches(name, self._tools, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        known = ", ".join(sorted(self._tools)) or "none"
        raise ToolNotFound(f'tool not found: "{name[:64]}".{hint} Available: {known}.')

    def _pending(self, call: ToolCall, context: ToolContext, asked: Suspend) -> PendingCall:
        digest = digest_call(call, run_id=context.run_id, asker=context.asker.user_id)
        return PendingCall(call, self._readable(asked.asks), self._clock.now() + asked.seconds, digest)

    def _cancel(self, batch: Batch) -> None:
        """Answer what has no result yet. What waits was never done; of what was under way nobody knows."""
        for index in batch.waiting():
            batch.finish(index, self.refused(batch.calls[index], ToolFailed(NOT_DONE)))
        for index in batch.open():
            call = batch.calls[index]
            tool = self._tools.get(call.name)
            advice = f" {MAYBE_DONE}" if tool is not None and tool.may_have_happened else ""
            batch.finish(index, self.refused(call, ToolFailed(f"the call was cancelled.{advice}")))

    def refused(self, call: ToolCall, error: ToolError) -> Executed:
        """The result of a call that is answered without being run."""
        return self._executed(call, self._clock.monotonic(), error)

    def _executed(self, call: ToolCall, started: float, error: ToolError) -> Executed:
        content = self._readable(f"error: {error} [{error.code}]")
        message = ToolMessage(call.id, call.name, content, is_error=True)
        return Executed(message, error.code, self._clock.monotonic() - started)

    def _readable(self, text: str) -> str:
        """Text that any vendor and store can take: not too long, and without half surrogates (they have no UTF-8)."""
        short = shorten(text, self._max_result)
        return short if short.isascii() else short.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse_arguments(raw: str) -> dict[str, Any]:
    """A call's raw arguments as an object; nothing at all means no arguments. Raises InvalidArguments.

    Several vendors send "" or null for a call without arguments (`providers/quirks.md` 3.1); anything that does not
    parse strictly is never run.
    """
    text = raw.strip()
    if text in ("", "null"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are not valid JSON ({error}). Send one JSON object.") from None
    match value:
        case None:
            return {}
        case dict():
            return value
        case _:
            raise InvalidArguments(f"the arguments must be one JSON object, got {type(value).__name__}.")


def render_result(value: object) -> str:
    """What a tool returned, as the text the model reads: text as is, data as JSON, nothing as "(no output)"."""
    match value:
        case None | "":
            return "(no output)"
        case str():
            return value
        case BaseModel():
            return value.model_dump_json()
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters: the head and the tail are kept, and what was cut is said."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    head = limit - tail
    return f"{text[:head]}\n[... {len(text) - limit} characters cut ...]\n{text[-tail:]}"
