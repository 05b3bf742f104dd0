"""One call, from its raw text to its result; everything that runs a tool goes through here.

    begin    look up -> prepare -> mend and validate -> the tool's own checks -> before hooks (changed arguments are
             validated again) -> audience, permission, repeats, quota
    run      somebody's word, where one is needed -> the body with a deadline, once more if that does no harm
    finish   after hooks -> the size -> the result

A step's calls go through the three phases side by side (`bot/batches.py`). Whatever goes wrong becomes an error result;
only a cancellation from outside gets out, and `Suspend` where the call must wait for somebody's word.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
import logging
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import assert_never

from bot.domain.arguments import Checked, parse_arguments
from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.errors import (
    InvalidArguments,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolRateLimited,
    ToolTimeout,
    ToolUnavailable,
)
from bot.domain.faults import BROKEN, isolate
from bot.domain.hooks import AfterCall, BeforeCall, Block, Change, Hooks, Rewrite
from bot.domain.ports import Approver, Clock
from bot.domain.result import ToolResult
from bot.domain.run import PendingCall
from bot.domain.suspension import Allow, ApprovalRequest, Deny, Pending, Suspend, digest_call
from bot.domain.tool import Tool, ToolContext
from bot.domain.traits import Permission
from bot.flow import (
    LEAST_RESULT,
    MAX_RESULT,
    Executed,
    Flow,
    Tally,
    as_told,
    metadata_of,
    readable,
    told_with_images,
    with_left_out,
)
from bot.policy.permission import Overrides, may_call, must_be_confirmed
from bot.policy.quota import Quotas
from bot.policy.repeats import Known, TooOften, key_of

logger = logging.getLogger(__name__)

LAST_HOOKS = 2.0  # seconds that the after hooks of what was cancelled have together
RETRY_AFTER = 0.5  # seconds until a transient failure is tried once more

CANCELLED = "the call was cancelled."
MAYBE_DONE = "It may have been done all the same: do not repeat it."
ASKS_TWICE = "the tool asked to be allowed what it had been allowed. Do not repeat the call; say that it did not work."
KNOWN = "(You had called this before, with the same arguments: this is what it gave. Do not call it again.)"
TOO_OFTEN = "{name} was called with the same arguments {times} times. Use what it gave, and do not call it again."
CLOSED = "{name} was called with wrong arguments three times in a row: it is not run any more. Do without it."


class Calls:
    """The way of a call. `find` looks a tool up, `names` are all there are; the approver may be set later."""

    def __init__(
        self,
        *,
        find: Callable[[str], Tool | None],
        names: Callable[[], Collection[str]],
        clock: Clock,
        hooks: Sequence[Hooks] = (),
        overrides: Overrides | None = None,
        configured: Collection[str] = (),
        approver: Approver | None = None,
        max_result: int = MAX_RESULT,
        quotas: Quotas | None = None,
    ) -> None:
        self.find = find
        self.approver = approver
        self._names = names
        self._clock = clock
        self._before = tuple(hook.before_call for hook in hooks if hook.before_call is not None)
        self._after = tuple(hook.after_call for hook in hooks if hook.after_call is not None)
        self._overrides = overrides or Overrides()
        self._configured = frozenset(configured)
        self.quotas = quotas or Quotas()
        self._max_result = max_result

    def permission(self, tool: Tool) -> Permission:
        """What counts for this tool: the operator's word, else what it declares."""
        return self._overrides.permission(tool.name, tool.permission)

    def lacks(self, tool: Tool, ports: Collection[type]) -> str:
        """What is missing for the tool to run at all; empty where nothing is."""
        if not (tool.needs or tool.requires):
            return ""
        missing = [need.__name__ for need in tool.needs if need not in ports]
        missing += [name for name in tool.requires if name not in self._configured]
        return f"needs {', '.join(missing)}" if missing else ""

    async def execute(self, call: ToolCall, context: ToolContext, tally: Tally | None = None) -> Executed:
        """All of it, for one call alone. Raises Suspend where the call must wait for somebody's word."""
        tally, flow = tally or Tally(), self.start(call, context)
        await self.begin(flow, tally)
        await self.run(flow)
        return await self.finish(flow, tally)

    # --- begin ------------------------------------------------------------------------------------

    def start(self, call: ToolCall, context: ToolContext) -> Flow:
        """The call, at its beginning."""
        return Flow(call, context, self._clock.monotonic())

    async def begin(self, flow: Flow, tally: Tally, *, pending: PendingCall | None = None) -> None:
        """Everything before the body; a flow that has a result then needs none.

        `pending` is what the call had waited for, until it was allowed: its before hooks have been asked then.
        """
        try:
            await self._begin(flow, tally, pending)
        except BROKEN as error:
            self._take(flow, error)

    async def _begin(self, flow: Flow, tally: Tally, pending: PendingCall | None) -> None:
        flow.owes_after = pending is not None
        tool = flow.tool = self._look_up(flow.call.name)
        if lacks := self.lacks(tool, flow.context.ports):
            raise ToolUnavailable(f"{tool.name} cannot run here: it {lacks}. Do without it.")
        if tally.repeats.is_closed(tool.name):
            raise InvalidArguments(CLOSED.format(name=tool.name))
        if pending is not None and pending.arguments:
            flow.checked = tool.validate(parse_arguments(pending.arguments))
        else:
            flow.doing = "the preparation of its arguments"
            flow.checked = tool.read(flow.call.arguments)
        if tool.guards:
            await self._guard(flow, tool, flow.checked)
        flow.owes_after = True
        if pending is None and self._before:
            await self._ask_before(flow, tool)
        self._permit(flow, tool, tally)

    def _look_up(self, name: str) -> Tool:
        if tool := self.find(name):
            return tool
        names = sorted(self._names())
        near = difflib.get_close_matches(name, names, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ToolNotFound(f'tool not found: "{name[:64]}".{hint} Available: {", ".join(names) or "none"}.')

    async def _guard(self, flow: Flow, tool: Tool, checked: Checked) -> None:
        """The tool's own checks."""
        flow.doing = "its own check"
        for guard in tool.guards:
            try:
                answer = guard(flow.context, checked.arguments)
                if inspect.isawaitable(answer):
                    await answer
            except ValueError as wrong:
                raise InvalidArguments(str(wrong), fields=(str(wrong),)) from wrong

    async def _ask_before(self, flow: Flow, tool: Tool) -> None:
        for hook in self._before:
            flow.doing = "a hook"
            event = BeforeCall(name=tool.name, input=deepcopy(flow.input), metadata=metadata_of(flow.context))
            answer = hook(event)
            match await answer if inspect.isawaitable(answer) else answer:
                case None:
                    pass
                case Block(reason=reason):
                    raise ToolDenied(f"the tool call was blocked: {reason}")
                case Change(arguments=arguments):
                    flow.checked = tool.validate(arguments)
                    await self._guard(flow, tool, flow.checked)
                case other:
                    raise TypeError(f"a before hook answers Block, Change or nothing, not {type(other).__name__}")

    def _permit(self, flow: Flow, tool: Tool, tally: Tally) -> None:
        context = flow.context
        if not may_call(context.asker, tool.audience, where=context.conversation):
            audience = tool.audience.value.replace("_", " ")
            raise ToolDenied(f"{tool.name} is only for {audience}s, in their own words alone. Tell the asker so.")
        permission = self.permission(tool)
        if permission is Permission.DENY:
            raise ToolDenied(f"{tool.name} may not be run. Do without it.")
        if tool.is_guarded_from_repeats:
            match tally.repeats.judge(key_of(tool.name, flow.input)):
                case Known(result=result):
                    flow.result = replace(result, content=f"{KNOWN}\n{result.content}")
                    return
                case TooOften(times=times, is_last=is_last):
                    tally.is_over |= is_last
                    raise ToolDenied(TOO_OFTEN.format(name=tool.name, times=times))
                case None:
                    pass
        if (
            tool.rate
            and not context.allowed
            and (seconds := self.quotas.take(tool.name, tool.rate, now=self._clock.monotonic()))
        ):
            text = f"{tool.name} was called too often. It may be called again in {seconds:.0f} s; do without it now."
            raise ToolRateLimited(text, seconds=seconds)
        unsure = must_be_confirmed(context.asker, tool.audience)
        flow.needs_word = (unsure or permission is Permission.REQUIRE_APPROVAL) and not context.allowed

    # --- run --------------------------------------------------------------------------------------

    async def run(self, flow: Flow) -> None:
        """The body, unless there is a result already. Raises Suspend where somebody must allow the call first."""
        if flow.result is not None or flow.tool is None or flow.checked is None:
            return
        try:
            if flow.needs_word:
                flow.doing = "the approver"
                await self._ask_for_word(flow, flow.tool)
            flow.doing, flow.ran = "the tool", True
            result = as_told(ToolResult.of(await self._body(flow, flow.tool, flow.checked)))
            flow.result = with_left_out(result, flow.checked) if flow.checked.unknown else result
            flow.code = "TOOL_EXECUTION_FAILED" if flow.result.is_error else "ok"
            flow.seconds = self._clock.monotonic() - flow.started
        except Suspend:
            flow.ran = False
            if not flow.context.allowed:
                raise
            self._take(flow, ToolFailed(ASKS_TWICE))
        except BROKEN as error:
            self._take(flow, error)
        finally:
            if flow.context.reports is not None:
                flow.context.reports.close()

    async def _ask_for_word(self, flow: Flow, tool: Tool) -> None:
        if self.approver is None:
            raise ToolDenied(f"{tool.name} must be allowed by somebody, and there is nobody to ask. Do without it.")
        context, asks = flow.context, f"{tool.label or tool.name} {json.dumps(flow.input, ensure_ascii=False)}"
        request = ApprovalRequest(
            run_id=context.run_id,
            step=context.step,
            call_id=context.call_id,
            name=tool.name,
            arguments=deepcopy(flow.input),
            asks=readable(asks, self._max_result),
            conversation=context.conversation,
            asker=context.asker,
        )
        match await self.approver.approve(request):
            case Allow():
                flow.context = replace(context, allowed=True)
            case Deny(reason=reason):
                raise ToolDenied(f"the tool call was denied: {reason}")
            case Pending(seconds=seconds):
                raise Suspend(asks, seconds=seconds)
            case other:
                assert_never(other)

    async def _body(self, flow: Flow, tool: Tool, checked: Checked) -> object:
        if tool.wants_context:
            flow.context = replace(flow.context, deadline=self._clock.monotonic() + tool.timeout)
        deadline = asyncio.timeout(tool.timeout)
        try:
            async with deadline:
                try:
                    return await self._try(flow, tool, checked)
                except Suspend:
                    raise
                except Exception as error:
                    if tool.recover is None:
                        raise
                    recovered = tool.recover(flow.context, checked.arguments, error)
                    return await recovered if inspect.isawaitable(recovered) else recovered
        except TimeoutError:
            if not deadline.expired():
                raise
            advice = MAYBE_DONE if tool.may_have_happened else "Do not repeat it unchanged."
            raise ToolTimeout(f"{tool.name} timed out after {tool.timeout:g} s. {advice}") from None

    async def _try(self, flow: Flow, tool: Tool, checked: Checked) -> object:
        try:
            return await tool.run(flow.context, dict(checked.arguments))
        except (ToolFailed, ConnectionError, TimeoutError) as error:
            if not tool.may_be_retried or (isinstance(error, ToolFailed) and not error.transient):
                raise
        await self._clock.sleep(RETRY_AFTER)
        return await tool.run(flow.context, dict(checked.arguments))

    def _take(self, flow: Flow, error: BaseException) -> None:
        """What was raised, as the result. Raises what is none of the call's business again."""
        isolate(error)
        match error:
            case ToolError():
                told = error
            case asyncio.CancelledError():
                told = ToolFailed(f"{flow.doing} gave up on itself. Try something else.")
            case _:
                logger.error(
                    "tool %s: %s broke in run %s", flow.call.name, flow.doing, flow.context.run_id, exc_info=error
                )
                if flow.doing == "the approver":
                    told = ToolDenied(f"nobody could be asked to allow it ({type(error).__name__}). Do without it.")
                else:
                    text = f"{flow.doing} broke ({type(error).__name__})."
                    told = ToolFailed(f"{text} Do not repeat the call; say that it did not work.")
        if flow.ran and type(told) is ToolFailed and flow.tool is not None and (reason := flow.tool.why_not()):
            told = ToolUnavailable(f"{flow.tool.name} cannot be used now: it {reason}. Do without it.")
        self.refuse(flow, told)

    def refuse(self, flow: Flow, error: ToolError) -> None:
        """This failure is the flow's result."""
        flow.result = ToolResult(f"error: {error} [{error.code}]", details=error.details, is_error=True)
        flow.code = error.code
        flow.seconds = self._clock.monotonic() - flow.started

    def break_off(self, flow: Flow, what: str) -> None:
        """The call has ended in the middle; of what was under way nobody knows."""
        doubtful = flow.ran and flow.tool is not None and flow.tool.may_have_happened
        self.refuse(flow, ToolFailed(f"{what} {MAYBE_DONE}" if doubtful else what))

    def pending(self, flow: Flow, asked: Suspend) -> PendingCall:
        """What the call waits for."""
        call, context = flow.call, flow.context
        arguments = json.dumps(flow.input)
        digest = digest_call(call, run_id=context.run_id, asker=context.asker.user_id, arguments=arguments)
        expires = self._clock.now() + asked.seconds
        return PendingCall(call, readable(asked.asks, self._max_result), expires, digest, arguments)

    # --- finish -----------------------------------------------------------------------------------

    async def finish(self, flow: Flow, tally: Tally) -> Executed:
        """The after hooks, then the result as the model reads it; what the tool gave is kept as it was before them."""
        if flow.tool is not None:
            self._count(flow, flow.tool, tally)
        if flow.owes_after and self._after:
            await self._ask_after(flow)
        return self.close(flow, tally)

    async def _ask_after(self, flow: Flow) -> None:
        flow.owes_after = False
        for hook in self._after:
            result = flow.result or ToolResult()
            event = AfterCall(
                name=flow.call.name,
                input=deepcopy(flow.input),
                output=result,
                error=result.content if result.is_error else None,
                metadata=metadata_of(flow.context),
            )
            try:
                answer = hook(event)
                match await answer if inspect.isawaitable(answer) else answer:
                    case None:
                        pass
                    case Rewrite(result=rewritten):
                        self._rewrite(flow, rewritten)
                    case other:
                        raise TypeError(f"an after hook answers Rewrite or nothing, not {type(other).__name__}")
            except BROKEN as error:
                done = flow.ran and not result.is_error
                flow.doing = "the call was done, but a hook" if done else "a hook"
                flow.ran = False  # a broken hook says nothing about the tool
                self._take(flow, error)
                flow.ran = done

    def _rewrite(self, flow: Flow, rewritten: ToolResult) -> None:
        result, was_error = ToolResult.of(rewritten), flow.code != "ok"
        flow.result = as_told(result)
        if result.is_error != was_error:
            flow.code = "TOOL_EXECUTION_FAILED" if result.is_error else "ok"

    def close(self, flow: Flow, tally: Tally) -> Executed:
        """Give the result the form the model reads, and count its size."""
        result = flow.result or ToolResult()
        content = readable(told_with_images(result), min(self._max_result, max(LEAST_RESULT, tally.left)))
        tally.left = max(0, tally.left - len(content))
        images = tuple(image.url for image in result.images)
        message = ToolMessage(flow.call.id, flow.call.name, content, result.is_error, images)
        if flow.checked is None:
            return Executed(message, flow.code, flow.seconds, result.details, result.terminate)
        plain, coerced = flow.checked.plain, flow.checked.coerced
        return Executed(message, flow.code, flow.seconds, result.details, result.terminate, plain, coerced)

    def _count(self, flow: Flow, tool: Tool, tally: Tally) -> None:
        tally.repeats.took(tool.name, fits=flow.code != InvalidArguments.code)
        if flow.ran and not tool.side_effects.is_harmless:
            tally.repeats.forget()
        elif flow.ran and tool.is_guarded_from_repeats and flow.result is not None and not flow.result.is_error:
            tally.repeats.keep(key_of(tool.name, flow.input), flow.result)
