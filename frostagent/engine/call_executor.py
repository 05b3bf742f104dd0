"""Runs the calls of one step: checked in call order, run concurrently, finished in call order.

    check    look up the tool -> the checks of `CallChecks`, in order
    run      approval, if needed -> the body with a deadline, retried once if that is safe
    finish   after hooks -> size limit -> the result

Every failure of a call becomes its error result; only a cancellation from outside is raised.

Invariant: every `ToolCall` gets exactly one `ToolMessage`, in call order, even if the run is
cancelled midway. A call that must wait for an approval (`Suspend`) gets it once that is decided.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import assert_never, cast

from msgspec.structs import replace

from frostagent.cancellation import BROKEN, last_moments
from frostagent.engine.authority import led_by, lowest_authority
from frostagent.engine.call_state import (
    LEAST_RESULT,
    MAX_RESULT,
    CallStage,
    CallState,
    CallTotals,
    Executed,
    call_key,
    metadata_of,
    readable,
    told_with_images,
    with_left_out,
    worded_failure,
)
from frostagent.engine.registry import Registry
from frostagent.engine.tool_execution import Progress, await_settled, record_failure, run_body
from frostagent.types.arguments import Checked
from frostagent.types.errors import (
    InvalidArguments,
    ToolCancelled,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolTimeout,
)
from frostagent.types.hooks import AfterCall, Hook, Rewrite, StopRun
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.ports import Approver
from frostagent.types.results import ToolResult
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import Allow, ApprovalRequest, Deny, Pending, Suspend, digest_call
from frostagent.types.tools import Tool, ToolContext
from frostagent.types.traits import Execution

logger = logging.getLogger(__name__)

MAX_CALLS = 16  # default limit for one step; more means a runaway model
AT_ONCE = 8
RETRY_AFTER = 0.5  # seconds before a transient failure is retried
LAST_HOOKS = 0.5  # seconds for all after hooks of a cancelled step, which delay a stop

LOST = "nobody knows what became of the call. Do not repeat it."


class Batch:
    """The calls of one step and their results; complete after `run`, even if cancelled."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = tuple(calls)
        self._answers: dict[int, ToolMessage | PendingCall] = {}
        self._finished: dict[int, Executed] = {}
        self._waited: dict[int, PendingCall] = {}
        self._denied: dict[int, ToolError] = {}

    def keep(self, index: int, answer: ToolMessage | PendingCall) -> None:
        """Keep a result from an earlier segment, or mark the call as waiting for approval."""
        self._answers[index] = answer

    def allow(self, index: int, pending: PendingCall) -> None:
        """Let a call run that has waited for approval."""
        self._waited[index] = pending

    def deny(self, index: int, error: ToolError, pending: PendingCall | None = None) -> None:
        """Refuse the call. If it has waited for approval, its after hooks run."""
        self._denied[index] = error
        if pending is not None:
            self._waited[index] = pending

    def waited(self, index: int) -> PendingCall | None:
        """What the call has waited for, if the wait is over."""
        return self._waited.get(index)

    def denied(self, index: int) -> ToolError | None:
        """Why the call must not be run, if already decided."""
        return self._denied.get(index)

    def finish(self, index: int, executed: Executed) -> None:
        self._answers[index] = executed.message
        self._finished[index] = executed

    def open(self) -> tuple[int, ...]:
        """The calls to run or refuse: without a result, and not waiting."""
        return tuple(index for index in range(len(self.calls)) if index not in self._answers)

    def waiting(self) -> tuple[int, ...]:
        return tuple(
            index
            for index in sorted(self._answers)
            if isinstance(self._answers[index], PendingCall)
        )

    def answers(self) -> tuple[ToolMessage | PendingCall, ...]:
        """For each call, in call order, its result or what it waits for."""
        return tuple(
            self._answers.get(index) or _lost(call) for index, call in enumerate(self.calls)
        )

    def results(self) -> tuple[ToolMessage, ...] | None:
        """One result for each call, in call order; None while one of them waits."""
        results = tuple(answer for answer in self.answers() if isinstance(answer, ToolMessage))
        return results if len(results) == len(self.calls) else None

    def is_terminal(self) -> bool:
        """Whether every call finished in this segment, and every tool wants the run to end."""
        return len(self._finished) == len(self.calls) and all(
            each.terminate for each in self._finished.values()
        )

    def finished(self) -> tuple[tuple[ToolCall, Executed], ...]:
        """The calls that finished in this segment, in call order."""
        return tuple((self.calls[index], self._finished[index]) for index in sorted(self._finished))


class CallExecutor:
    """Runs a step's calls: at most `max_calls` in total, `at_once` concurrently.

    `execution` applies to every step; a tool can declare its own. `on_result` gets each call and
    its output as the model reads it, as soon as no hook can change it. `on_error` gets an exception
    and may return another text for the model. `recorded` is awaited before a call that may change
    something, so that the journal knows after a crash that the call had begun (unless it could not
    be written, which the operator learns).
    """

    def __init__(
        self,
        registry: Registry,
        *,
        execution: Execution = Execution.CONCURRENT,
        at_once: int = AT_ONCE,
        max_calls: int = MAX_CALLS,
        recorded: Callable[[], Awaitable[object]] | None = None,
        on_result: Callable[[ToolCall, str], None] | None = None,
        on_error: Callable[[BaseException], str | None] | None = None,
    ) -> None:
        self._registry = registry
        self._checks = registry.checks
        self._clock = registry.checks.clock
        self._has_after_hooks = any(hook.after_call for hook in registry.hooks)
        self._execution = execution
        self._at_once = at_once
        self._max_calls = max_calls
        self._recorded = recorded
        self._on_result = on_result
        self._on_error = on_error

    async def run(
        self, batch: Batch, contexts: Sequence[ToolContext], totals: CallTotals | None = None
    ) -> None:
        """Run the open calls. `contexts` has one for each call of the batch.

        Calls beyond `max_calls` are refused. On cancellation, every call still gets a result,
        including waiting ones. If a hook stops the run, calls that have not run and waiting ones
        are refused.
        """
        totals = totals or CallTotals()
        states = {
            index: self._start(batch.calls[index], contexts[index], batch.waited(index))
            for index in batch.open()
        }
        try:
            await self._check_in_order(batch, states, totals)
            if self._recorded and any(state.may_change_something for state in states.values()):
                await self._recorded()
            await self._run_bodies(batch, states)
            for index, state in states.items():
                if state.result is not None:
                    await self._finish(batch, index, state, totals)
            if totals.stop is not None:
                await self._close_waiting(batch, states, contexts, totals)
        except BaseException:
            await self._cancel(batch, states, contexts, totals)
            raise
        finally:
            totals.repeats.next_step()

    # --- check ------------------------------------------------------------------------------------

    def _start(
        self, call: ToolCall, context: ToolContext, pending: PendingCall | None = None
    ) -> CallState:
        earlier = max(0.0, self._clock.now() - pending.since) if pending and pending.since else 0.0
        started = self._clock.monotonic()
        return CallState(call, context, started, pending, earlier=earlier, waited=earlier)

    async def _check_in_order(
        self, batch: Batch, states: Mapping[int, CallState], totals: CallTotals
    ) -> None:
        for number, (index, state) in enumerate(states.items()):
            if error := batch.denied(index):
                state.owes_after = state.pending is not None
                state.refuse(error)
            elif totals.stop is not None:
                state.refuse(ToolCancelled(state.context.words.stopped))
            elif number >= self._max_calls:
                words = state.context.words
                state.refuse(ToolDenied(words.too_many.format(most=self._max_calls)))
            else:
                await self._check(state, totals)
        for state in states.values():
            if totals.stop is not None and state.result is None:
                state.refuse(ToolCancelled(state.context.words.stopped))
            self._tell(state)

    async def _check(self, state: CallState, totals: CallTotals) -> None:
        """Give the call a result, or clear it to run. After a wait for approval, after hooks run in
        either case.
        """
        state.owes_after = state.pending is not None
        try:
            state.tool = self._registry.look_up(state.call.name, state.context.terms)
            await self._checks.check(state, state.tool, totals)
        except BROKEN as error:
            record_failure(state, error, mask=self._checks.mask)

    # --- run --------------------------------------------------------------------------------------

    async def _run_bodies(self, batch: Batch, states: Mapping[int, CallState]) -> None:
        todo = [index for index, state in states.items() if state.result is None]
        for group in [todo] if len(todo) == 1 else self._groups(todo, states):
            if first := self._barrier(batch, before=group[0]):
                text = states[group[0]].context.words.barred.format(first=first)
                for index in group:
                    if not (
                        states[index].needs_approval or states[index].context.allowed
                    ):  # approvals are decided independently
                        states[index].refuse(ToolDenied(text))
            await self._run_together(batch, group, states)
        for index in batch.open():
            if states[index].result is None:
                self._break_off(states[index], "the tool cancelled itself.")

    def _groups(self, todo: Iterable[int], states: Mapping[int, CallState]) -> Iterator[list[int]]:
        """Groups of calls that may run concurrently, in order; one with effects is alone."""
        tools = {index: tool for index in todo if (tool := states[index].tool) is not None}
        in_turn = Execution.SEQUENTIAL in {
            self._execution,
            *(tool.execution for tool in tools.values()),
        }
        group: list[int] = []
        for index, tool in tools.items():
            if in_turn or tool.may_have_happened:
                if group:
                    yield group
                yield [index]
                group = []
            else:
                group.append(index)
        if group:
            yield group

    def _barrier(self, batch: Batch, *, before: int) -> str:
        """A waiting call with effects: later calls must not run before it. Empty if none."""
        names = (batch.calls[index].name for index in batch.waiting() if index < before)
        return next(
            (
                name
                for name in names
                if (tool := self._registry.get(name)) and tool.may_have_happened
            ),
            "",
        )

    async def _run_together(
        self, batch: Batch, group: Iterable[int], states: Mapping[int, CallState]
    ) -> None:
        places = asyncio.Semaphore(self._at_once)

        async def one(index: int) -> None:
            async with places:
                await self._run_call(batch, index, states[index])

        async with asyncio.TaskGroup() as tasks:
            for index in group:
                tasks.create_task(one(index))

    async def _run_call(self, batch: Batch, index: int, state: CallState) -> None:
        """Ask for approval if needed, then run the body, unless there is a result. A call that must
        wait becomes pending.
        """
        if state.result is not None or state.tool is None or state.checked is None:
            self._tell(state)
            return
        began, asked = 0.0, None
        try:
            if state.needs_approval:
                state.stage = CallStage.ASKING
                await self._ask_approver(state, state.tool)
            self._refuse_changed(state, state.tool)
            state.stage, state.ran, began = CallStage.RUNNING, True, self._clock.monotonic()
            answer = await self._run_until_deadline(state, state.tool, state.checked)
            result = worded_failure(ToolResult.of(answer))
            state.result = with_left_out(result, state.checked) if state.checked.unknown else result
        except Suspend as suspend:
            state.ran = False
            if state.context.allowed:
                twice = ToolFailed(state.context.words.asks_twice)
                record_failure(state, twice, mask=self._checks.mask)
            else:
                asked = suspend
        except BROKEN as error:
            record_failure(state, error, mask=self._checks.mask)
        finally:
            self._measure(state, began)
            if isinstance(state.context.reports, Progress):
                state.context.reports.close()
        if asked is not None:
            batch.keep(index, self._pending(state, asked))
        else:
            self._tell(state)

    async def _ask_approver(self, state: CallState, tool: Tool) -> None:
        """Ask the run's `Approver`. Raises ToolDenied for a no or without one, else Suspend."""
        context = state.context
        approver = cast("Approver | None", context.ports.get(Approver))
        if approver is None:
            raise ToolDenied(
                f"{tool.name} must be allowed by somebody, and there is nobody to ask. "
                "Do without it."
            )
        asks = f"{tool.label or tool.name} {json.dumps(state.input, ensure_ascii=False)}"
        request = ApprovalRequest(
            run_id=context.run_id,
            step=context.step,
            call_id=context.call_id,
            name=tool.name,
            arguments=deepcopy(state.input),
            asks=readable(asks, MAX_RESULT),
            conversation=context.conversation,
            asker=context.asker,
            context=context,
        )
        match await approver.approve(request):
            case Allow():
                state.context = replace(context, allowed=True)
            case Deny(reason=reason):
                raise ToolDenied(context.words.not_allowed.format(reason=reason))
            case Pending(seconds=seconds):
                raise Suspend(asks, seconds=seconds)
            case other:
                assert_never(other)

    def _refuse_changed(self, state: CallState, tool: Tool) -> None:
        """Raises ToolDenied if the tool has changed since the call was approved."""
        if not state.context.allowed:
            return
        asked = tool.revision if state.pending is None else state.pending.revision
        now = self._registry.get(state.call.name)
        if asked != ("" if now is None else now.revision):
            raise ToolDenied(state.context.words.tool_changed.format(name=tool.name))

    async def _run_until_deadline(self, state: CallState, tool: Tool, checked: Checked) -> object:
        """The tool's answer, or that of `recover`. Raises ToolTimeout, and as the tool does."""
        if tool.wants_context:
            state.context = replace(state.context, deadline=self._clock.monotonic() + tool.timeout)
        deadline = asyncio.timeout(tool.timeout)
        try:
            async with deadline:
                try:
                    return await self._try(state, tool, checked)
                except Suspend:
                    raise
                except Exception as error:
                    if tool.recover is None:
                        raise
                    recovered = tool.recover(state.context, checked.arguments, error)
                    return await await_settled(recovered, name=f"the way out of tool {tool.name}")
        except TimeoutError as late:
            if not deadline.expired():
                raise
            maybe = state.context.words.maybe_done
            advice = maybe if tool.may_have_happened else "Do not repeat it unchanged."
            raise ToolTimeout(f"{tool.name} timed out after {tool.timeout:g} s. {advice}") from late

    async def _try(self, state: CallState, tool: Tool, checked: Checked) -> object:
        """Run the body, and once more after a transient failure if that is safe."""
        try:
            return await run_body(tool, state.context, dict(checked.arguments))
        except (ToolFailed, ConnectionError, TimeoutError) as error:
            if not tool.may_be_retried or (isinstance(error, ToolFailed) and not error.transient):
                raise
        await self._clock.sleep(RETRY_AFTER)
        return await run_body(tool, state.context, dict(checked.arguments))

    def _measure(self, state: CallState, began: float) -> None:
        """Set the seconds of the body, and of the wait before it or before its refusal."""
        ended = self._clock.monotonic()
        state.seconds = ended - began if state.ran else 0.0
        if state.ran:
            state.ended = self._clock.now()
            state.began = state.ended - state.seconds
        state.waited = state.earlier + (began if state.ran else ended) - state.started

    def _pending(self, state: CallState, asked: Suspend) -> PendingCall:
        """The waiting call, as data."""
        call, context = state.call, state.context
        arguments = json.dumps(state.input)
        digest = digest_call(
            call, run_id=context.run_id, asker=context.asker.user_id, arguments=arguments
        )
        now = self._clock.now()
        expires, since = now + asked.seconds, now - state.waited
        asks, led = readable(asked.asks, MAX_RESULT), led_by(context.asker)
        revision = "" if state.tool is None else state.tool.revision
        return PendingCall(
            call, asks, expires, digest, arguments, since=since, led=led, revision=revision
        )

    # --- cancel -----------------------------------------------------------------------------------

    def _break_off(self, state: CallState, what: str) -> None:
        """Refuse a cancelled call. If its body was running, its effect is unknown."""
        if not state.ran:
            self._measure(state, 0.0)
        doubtful = state.ran and state.tool is not None and state.tool.may_have_happened
        maybe = f"{what} {state.context.words.maybe_done}"
        state.refuse(ToolCancelled(maybe if doubtful else what))

    async def _cancel(
        self,
        batch: Batch,
        states: dict[int, CallState],
        contexts: Sequence[ToolContext],
        totals: CallTotals,
    ) -> None:
        """Give every call a result; the effect of running calls is unknown."""
        words = contexts[0].words
        self._refuse_waiting(batch, states, contexts, words.not_done)
        for index in batch.open():
            if states[index].result is None:
                self._break_off(states[index], words.cancelled)
        unfinished = [
            index for index in sorted(states) if index in {*batch.open(), *batch.waiting()}
        ]
        try:
            async with last_moments(LAST_HOOKS):
                for index in unfinished:
                    await self._finish(batch, index, states[index], totals)
        except TimeoutError:
            logger.warning("the hooks of a cancelled step took longer than %g s", LAST_HOOKS)
        finally:
            for index in unfinished:
                if index in batch.open() or index in batch.waiting():
                    batch.finish(index, self._executed(states[index], totals))

    async def _close_waiting(
        self,
        batch: Batch,
        states: dict[int, CallState],
        contexts: Sequence[ToolContext],
        totals: CallTotals,
    ) -> None:
        """Refuse the calls that wait for approval, because a hook has stopped the run."""
        for index in self._refuse_waiting(batch, states, contexts, contexts[0].words.stopped):
            await self._finish(batch, index, states[index], totals)

    def _refuse_waiting(
        self, batch: Batch, states: dict[int, CallState], contexts: Sequence[ToolContext], why: str
    ) -> tuple[int, ...]:
        waiting = batch.waiting()
        for index in waiting:
            state = states.setdefault(index, self._start(batch.calls[index], contexts[index]))
            state.owes_after = True
            state.refuse(ToolCancelled(why))
        return waiting

    # --- finish -----------------------------------------------------------------------------------

    async def _finish(self, batch: Batch, index: int, state: CallState, totals: CallTotals) -> None:
        """Run the after hooks, then make the model's result. `Repeats` keeps the tool's own one."""
        if state.tool is not None:
            _count(state, state.tool, totals)
        self._word_failure(state)
        await ask_after_hooks(self._registry.hooks, state, totals)
        batch.finish(index, self._executed(state, totals))
        self._tell(state)

    def _word_failure(self, state: CallState) -> None:
        """Let `on_error` change the text of a failure, once."""
        result = state.result
        if state.is_worded or state.exception is None or result is None or not result.is_error:
            return
        state.is_worded = True
        if self._on_error is not None and (words := self._on_error(state.exception)) is not None:
            state.result = worded_failure(replace(result, content=words), result.code)

    def _tell(self, state: CallState) -> None:
        """Call `on_result`, once, as soon as no hook can change the result."""
        self._word_failure(state)
        if self._on_result is None or state.is_told or state.result is None:
            return
        if state.owes_after and self._has_after_hooks:
            return
        state.is_told = True
        self._on_result(state.call, readable(told_with_images(state.result), MAX_RESULT))

    def _executed(self, state: CallState, totals: CallTotals) -> Executed:
        """The result in the model's form, cut to the run's remaining size limit."""
        result = state.result or ToolResult()
        most = min(MAX_RESULT, max(LEAST_RESULT, totals.left))
        content = readable(told_with_images(result), most)
        totals.left = max(0, totals.left - len(content))
        images = tuple(image.url for image in result.images)
        return Executed(
            ToolMessage(
                state.call.id,
                state.call.name,
                content,
                result.is_error,
                images,
                code=result.code,
                sources=result.sources,
                authority=result.authority,
                tainted=self._checks.brings_outside_words(state),
                kept=readable(result.kept, most),
            ),
            state.code,
            state.seconds,
            state.waited,
            details=result.details,
            terminate=result.terminate,
            arguments=None if state.checked is None else state.checked.plain,
            coerced=() if state.checked is None else state.checked.coerced,
            began=state.began,
            ended=state.ended,
            exception=state.exception,
        )


async def ask_after_hooks(hooks: Sequence[Hook], state: CallState, totals: CallTotals) -> None:
    """Run the after hooks, once, if the before hooks ran. If one raises, the call fails."""
    if not state.owes_after:
        return
    state.owes_after = False
    for hook in hooks:
        if hook.after_call is None:
            continue
        result = state.result or ToolResult()
        event = AfterCall(
            name=state.call.name,
            input=deepcopy(state.input),
            output=result,
            error=result.content if result.is_error else None,
            metadata=metadata_of(state.context),
            exception=state.exception,
        )
        try:
            match await await_settled(
                hook.after_call(event), name=f"a hook after {state.call.name}"
            ):
                case None:
                    pass
                case Rewrite(result=rewritten):
                    state.result = keep_authority(
                        worded_failure(ToolResult.of(rewritten), state.code), result
                    )
                case StopRun() as stop:
                    totals.stop = totals.stop or stop
                case other:
                    kind = type(other).__name__
                    raise TypeError(
                        f"an after hook answers Rewrite, StopRun or nothing, not {kind}"
                    )
        except BROKEN as error:
            done = state.ran and not result.is_error
            state.stage = CallStage.HOOK_AFTER if done else CallStage.HOOK
            state.ran = False  # a broken hook says nothing about the tool
            record_failure(state, error)
            state.ran = done


def keep_authority(rewritten: ToolResult, result: ToolResult) -> ToolResult:
    """A hook's result with the authority, sources, taint and `kept` text of the one it replaces."""
    return replace(
        rewritten,
        sources=tuple(dict.fromkeys((*rewritten.sources, *result.sources))),
        authority=lowest_authority((rewritten.authority, result.authority)),
        tainted=rewritten.tainted or result.tainted,
        kept=rewritten.kept or result.kept,
    )


def _count(state: CallState, tool: Tool, totals: CallTotals) -> None:
    totals.repeats.took(tool.name, fits=state.code != InvalidArguments.code)
    if state.ran and not tool.side_effects.is_harmless:
        totals.repeats.forget()
    elif (
        state.ran
        and tool.is_guarded_from_repeats
        and state.result is not None
        and not state.result.is_error
    ):
        totals.repeats.keep(call_key(tool.name, state.input), state.result)


def _lost(call: ToolCall) -> ToolMessage:
    """The result of a call that lost its own to an error in the executor."""
    return ToolMessage(
        call.id,
        call.name,
        ToolFailed(LOST).told,
        is_error=True,
        code=ToolFailed.code,
    )
