"""One call, from its raw text to its result; everything that runs a tool goes through here.

    begin    look up -> prepare -> repair and validate -> the tool's own checks -> before hooks
             (changed arguments are validated again) -> audience, permission, repeats, quota
    run      approval, if needed -> the body with a deadline, once more if that
             does no harm
    finish   after hooks -> the size -> the result

`PermissionChecks` judge whether a call may run, `BodyRunner` runs its body, `CallHooks` ask the
hooks, and `tool_execution` words what is raised. A step's calls go through the three phases side
by side (`Batches`). Whatever goes wrong becomes an error result; only a cancellation from outside
gets out, and `Suspend` where the call must wait for somebody's word.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import assert_never, cast

from msgspec.structs import replace

from frostagent.cancellation import BROKEN
from frostagent.engine.authority import led_by
from frostagent.engine.call_hooks import CallHooks
from frostagent.engine.call_state import (
    LEAST_RESULT,
    MAX_RESULT,
    CallStage,
    CallState,
    CallTotals,
    Executed,
    call_key,
    readable,
    told_with_images,
    with_left_out,
    worded_failure,
)
from frostagent.engine.forced_cancel import await_settled
from frostagent.engine.permission_checks import NOT_ALLOWED, PermissionChecks
from frostagent.engine.threads import Progress
from frostagent.engine.tool_execution import Mask, record_failure, run_body
from frostagent.types.arguments import Checked
from frostagent.types.errors import (
    InvalidArguments,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolNotFound,
    ToolTimeout,
)
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.ports import Approver, Clock
from frostagent.types.results import ToolResult
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import Allow, ApprovalRequest, Deny, Pending, Suspend, digest_call
from frostagent.types.tools import Tool, ToolContext

RETRY_AFTER = 0.5  # seconds until a transient failure is tried once more

MAYBE_DONE = "It may have been done all the same: do not repeat it."


class BodyRunner:
    """Runs the bodies of calls, once more where a transient failure does no harm."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def ask_approver(self, flow: CallState, tool: Tool) -> None:
        """Ask the run's `Approver` about the call.

        Raises ToolDenied for a no, or where there is nobody to ask; Suspend where the answer comes
        later.
        """
        context = flow.context
        approver = cast("Approver | None", context.ports.get(Approver))
        if approver is None:
            raise ToolDenied(
                f"{tool.name} must be allowed by somebody, and there is nobody to ask. "
                "Do without it."
            )
        asks = f"{tool.label or tool.name} {json.dumps(flow.input, ensure_ascii=False)}"
        request = ApprovalRequest(
            run_id=context.run_id,
            step=context.step,
            call_id=context.call_id,
            name=tool.name,
            arguments=deepcopy(flow.input),
            asks=readable(asks, MAX_RESULT),
            conversation=context.conversation,
            asker=context.asker,
            context=context,
        )
        match await approver.approve(request):
            case Allow():
                flow.context = replace(context, allowed=True)
            case Deny(reason=reason):
                raise ToolDenied(NOT_ALLOWED.format(reason=reason))
            case Pending(seconds=seconds):
                raise Suspend(asks, seconds=seconds)
            case other:
                assert_never(other)

    async def run(self, flow: CallState, tool: Tool, checked: Checked) -> object:
        """The tool's answer, or what it makes of its own failure. Raises ToolTimeout, and whatever
        the tool raises.
        """
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
                    return await await_settled(recovered, name=f"the way out of tool {tool.name}")
        except TimeoutError:
            if not deadline.expired():
                raise
            advice = MAYBE_DONE if tool.may_have_happened else "Do not repeat it unchanged."
            raise ToolTimeout(f"{tool.name} timed out after {tool.timeout:g} s. {advice}") from None

    async def _try(self, flow: CallState, tool: Tool, checked: Checked) -> object:
        try:
            return await run_body(tool, flow.context, dict(checked.arguments))
        except (ToolFailed, ConnectionError, TimeoutError) as error:
            if not tool.may_be_retried or (isinstance(error, ToolFailed) and not error.transient):
                raise
        await self._clock.sleep(RETRY_AFTER)
        return await run_body(tool, flow.context, dict(checked.arguments))


LAST_HOOKS = 0.5  # seconds that the after hooks of what was cancelled have together: a stop waits

CANCELLED = "the call was cancelled."
ASKS_TWICE = (
    "the tool asked to be allowed what it had been allowed. "
    "Do not repeat the call; say that it did not work."
)


class Calls:
    """The way of a call of one of `tools`, by name. `mask` takes the secrets out of what tools say
    was wrong.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        rules: PermissionChecks,
        interception: CallHooks,
        clock: Clock,
        mask: Mask,
    ) -> None:
        self._tools = tools
        self._rules = rules
        self._interception = interception
        self._bodies = BodyRunner(clock=clock)
        self._clock = clock
        self._mask = mask

    def find(self, name: str) -> Tool | None:
        """The tool of this name, if there is one."""
        return self._tools.get(name)

    # --- begin ------------------------------------------------------------------------------------

    def start(
        self, call: ToolCall, context: ToolContext, pending: PendingCall | None = None
    ) -> CallState:
        """The call, at its beginning; `pending` is what it had waited for, in an earlier segment of
        its run.
        """
        since = pending.since if pending else 0.0
        earlier = max(0.0, self._clock.now() - since) if since else 0.0
        return CallState(call, context, self._clock.monotonic(), earlier=earlier, waited=earlier)

    async def begin(
        self, flow: CallState, tally: CallTotals, *, pending: PendingCall | None = None
    ) -> None:
        """Everything before the body; a flow that has a result then needs none.

        `pending` is what the call had waited for, until it was allowed: its before hooks have been
        asked then.
        """
        flow.owes_after = pending is not None
        try:
            flow.tool = self._look_up(flow.call.name)
            await self._rules.admit(flow, flow.tool, tally, pending=pending)
        except BROKEN as error:
            record_failure(flow, error, mask=self._mask)

    def _look_up(self, name: str) -> Tool:
        if tool := self.find(name):
            return tool
        names = sorted(self._tools)
        near = difflib.get_close_matches(name, names, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ToolNotFound(
            f'tool not found: "{name[:64]}".{hint} Available: {", ".join(names) or "none"}.'
        )

    # --- run --------------------------------------------------------------------------------------

    async def run(self, flow: CallState) -> None:
        """The body, unless there is a result already. Raises Suspend where somebody must allow the
        call first.
        """
        if flow.result is not None or flow.tool is None or flow.checked is None:
            return
        began = 0.0
        try:
            if flow.needs_word:
                flow.doing = CallStage.ASKING
                await self._bodies.ask_approver(flow, flow.tool)
            flow.doing, flow.ran, began = CallStage.RUNNING, True, self._clock.monotonic()
            answer = await self._bodies.run(flow, flow.tool, flow.checked)
            result = worded_failure(ToolResult.of(answer))
            flow.result = with_left_out(result, flow.checked) if flow.checked.unknown else result
        except Suspend:
            flow.ran = False
            if not flow.context.allowed:
                raise
            record_failure(flow, ToolFailed(ASKS_TWICE))
        except BROKEN as error:
            record_failure(flow, error, mask=self._mask)
        finally:
            self._measure(flow, began)
            if isinstance(flow.context.reports, Progress):
                flow.context.reports.close()

    def _measure(self, flow: CallState, began: float) -> None:
        """Note the seconds of its body, and of its wait until that, or until it was refused."""
        ended = self._clock.monotonic()
        flow.seconds = ended - began if flow.ran else 0.0
        flow.waited = flow.earlier + (began if flow.ran else ended) - flow.started

    def break_off(self, flow: CallState, what: str) -> None:
        """The call has ended in the middle; of what was under way nobody knows."""
        if not flow.ran:
            self._measure(flow, 0.0)
        doubtful = flow.ran and flow.tool is not None and flow.tool.may_have_happened
        flow.refuse(ToolCancelled(f"{what} {MAYBE_DONE}" if doubtful else what))

    def pending(self, flow: CallState, asked: Suspend) -> PendingCall:
        """The wait of a call, as data."""
        call, context = flow.call, flow.context
        arguments = json.dumps(flow.input)
        digest = digest_call(
            call, run_id=context.run_id, asker=context.asker.user_id, arguments=arguments
        )
        now = self._clock.now()
        expires, since = now + asked.seconds, now - flow.waited
        asks, led = readable(asked.asks, MAX_RESULT), led_by(context.asker)
        return PendingCall(call, asks, expires, digest, arguments, since=since, led=led)

    # --- finish -----------------------------------------------------------------------------------

    async def finish(self, flow: CallState, tally: CallTotals) -> Executed:
        """The after hooks, then the result as the model reads it; what the tool gave is kept as it
        was before them.
        """
        if flow.tool is not None:
            self._count(flow, flow.tool, tally)
        await self._interception.after(flow, tally)
        return self.close(flow, tally)

    def preview(self, flow: CallState) -> str | None:
        """The result as the model reads it, unless there is none yet, or a hook may still rewrite
        it.
        """
        if flow.result is None or self._interception.will_be_asked_after(flow):
            return None
        return readable(told_with_images(flow.result), MAX_RESULT)

    def close(self, flow: CallState, tally: CallTotals) -> Executed:
        """Give the result the form the model reads, and count its size."""
        result = flow.result or ToolResult()
        most = min(MAX_RESULT, max(LEAST_RESULT, tally.left))
        content = readable(told_with_images(result), most)
        tally.left = max(0, tally.left - len(content))
        images = tuple(image.url for image in result.images)
        return Executed(
            ToolMessage(
                flow.call.id,
                flow.call.name,
                content,
                result.is_error,
                images,
                code=result.code,
                sources=result.sources,
                authority=result.authority,
                tainted=self._rules.brings_outside_words(flow),
                kept=readable(result.kept, most),
            ),
            flow.code,
            flow.seconds,
            flow.waited,
            details=result.details,
            terminate=result.terminate,
            arguments=None if flow.checked is None else flow.checked.plain,
            coerced=() if flow.checked is None else flow.checked.coerced,
        )

    def _count(self, flow: CallState, tool: Tool, tally: CallTotals) -> None:
        tally.repeats.took(tool.name, fits=flow.code != InvalidArguments.code)
        if flow.ran and not tool.side_effects.is_harmless:
            tally.repeats.forget()
        elif (
            flow.ran
            and tool.is_guarded_from_repeats
            and flow.result is not None
            and not flow.result.is_error
        ):
            tally.repeats.keep(call_key(tool.name, flow.input), flow.result)
