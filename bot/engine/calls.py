"""One call, from its raw text to its result; everything that runs a tool goes through here.

    begin    look up -> prepare -> mend and validate -> the tool's own checks -> before hooks (changed arguments are
             validated again) -> audience, permission, repeats, quota
    run      somebody's word, where one is needed -> the body with a deadline, once more if that does no harm
    finish   after hooks -> the size -> the result

Others have their say in `bot/engine/interception.py`; what is raised is told in
`bot/engine/failures.py`. A step's calls go through the three phases side by side
(`bot/engine/batches.py`). Whatever goes wrong becomes an error result; only a cancellation from
outside gets out, and `Suspend` where the call must wait for somebody's word.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from typing import assert_never

from msgspec.structs import replace

from bot.domain.arguments import Checked, parse_arguments
from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.errors import (
    InvalidArguments,
    ToolCancelled,
    ToolDenied,
    ToolFailed,
    ToolNotFound,
    ToolRateLimited,
    ToolTimeout,
    ToolUnavailable,
)
from bot.domain.faults import BROKEN
from bot.domain.hooks import Hooks
from bot.domain.ports import Approver, Clock
from bot.domain.result import ToolResult
from bot.domain.run import PendingCall
from bot.domain.suspension import Allow, ApprovalRequest, Deny, Pending, Suspend, digest_call
from bot.domain.tool import Tool, ToolContext
from bot.domain.traits import Permission
from bot.engine.bodies import run_body
from bot.engine.failures import Mask, take
from bot.engine.interception import Interception
from bot.engine.ongoing import (
    LEAST_RESULT,
    MAX_RESULT,
    Doing,
    Executed,
    Flow,
    Tally,
    as_told,
    readable,
    told_with_images,
    with_left_out,
)
from bot.policy.permission import Overrides, may_call, must_be_confirmed
from bot.policy.quota import Quotas
from bot.policy.repeated_calls import Known, TooOften, key_of

LAST_HOOKS = 2.0  # seconds that the after hooks of what was cancelled have together
RETRY_AFTER = 0.5  # seconds until a transient failure is tried once more

CANCELLED = "the call was cancelled."
MAYBE_DONE = "It may have been done all the same: do not repeat it."
ASKS_TWICE = "the tool asked to be allowed what it had been allowed. Do not repeat the call; say that it did not work."
KNOWN = "(You had called this before, with the same arguments: this is what it gave. Do not call it again.)"
TOO_OFTEN = "{name} was called with the same arguments {times} times. Use what it gave, and do not call it again."
CLOSED = "{name} was called with wrong arguments three times in a row: it is not run any more. Do without it."


class Calls:
    """The way of a call. `find` looks a tool up, `names` are all there are; the approver may be set
    later.

    `mask` takes the secrets out of what tools say was wrong.
    """

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
        mask: Mask = str,
    ) -> None:
        self.find = find
        self.approver = approver
        self._names = names
        self._clock = clock
        self._others = Interception(hooks, mask=mask)
        self._mask = mask
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
        unset = [name for name in tool.requires if name not in self._configured]
        told = [f"needs {', '.join(missing)}"] if missing else []
        return " and ".join(
            [*told, f"requires {', '.join(unset)} (not configured)"] if unset else told
        )

    async def execute(
        self, call: ToolCall, context: ToolContext, tally: Tally | None = None
    ) -> Executed:
        """All of it, for one call alone. Raises Suspend where the call must wait for somebody's
        word.
        """
        tally, flow = tally or Tally(), self.start(call, context)
        await self.begin(flow, tally)
        await self.run(flow)
        return await self.finish(flow, tally)

    # --- begin ------------------------------------------------------------------------------------

    def start(
        self, call: ToolCall, context: ToolContext, pending: PendingCall | None = None
    ) -> Flow:
        """The call, at its beginning; `pending` is what it had waited for, in an earlier segment of
        its run.
        """
        since = pending.since if pending else 0.0
        earlier = max(0.0, self._clock.now() - since) if since else 0.0
        return Flow(call, context, self._clock.monotonic(), earlier=earlier, waited=earlier)

    async def begin(self, flow: Flow, tally: Tally, *, pending: PendingCall | None = None) -> None:
        """Everything before the body; a flow that has a result then needs none.

        `pending` is what the call had waited for, until it was allowed: its before hooks have been
        asked then.
        """
        try:
            await self._begin(flow, tally, pending)
        except BROKEN as error:
            take(flow, error, mask=self._mask)

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
            flow.doing = Doing.PREPARING
            flow.checked = tool.read(flow.call.arguments)
        await self._others.check(flow, tool, flow.checked)
        flow.owes_after = True
        if pending is None:
            await self._others.before(flow, tool, tally)
        self._permit(flow, tool, tally)

    def _look_up(self, name: str) -> Tool:
        if tool := self.find(name):
            return tool
        names = sorted(self._names())
        near = difflib.get_close_matches(name, names, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ToolNotFound(
            f'tool not found: "{name[:64]}".{hint} Available: {", ".join(names) or "none"}.'
        )

    def _permit(self, flow: Flow, tool: Tool, tally: Tally) -> None:
        context = flow.context
        if not may_call(context.asker, tool.audience, where=context.conversation):
            audience = tool.audience.value.replace("_", " ")
            raise ToolDenied(
                f"{tool.name} is only for {audience}s, in their own words alone. Tell the asker so."
            )
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
        flow.needs_word = (
            unsure or permission is Permission.REQUIRE_APPROVAL
        ) and not context.allowed

    # --- run --------------------------------------------------------------------------------------

    async def run(self, flow: Flow) -> None:
        """The body, unless there is a result already. Raises Suspend where somebody must allow the
        call first.
        """
        if flow.result is not None or flow.tool is None or flow.checked is None:
            return
        began = 0.0
        try:
            if flow.needs_word:
                flow.doing = Doing.ASKING
                await self._ask_for_word(flow, flow.tool)
            flow.doing, flow.ran, began = Doing.RUNNING, True, self._clock.monotonic()
            result = as_told(ToolResult.of(await self._body(flow, flow.tool, flow.checked)))
            flow.result = with_left_out(result, flow.checked) if flow.checked.unknown else result
        except Suspend:
            flow.ran = False
            if not flow.context.allowed:
                raise
            take(flow, ToolFailed(ASKS_TWICE))
        except BROKEN as error:
            take(flow, error, mask=self._mask)
        finally:
            self._measure(flow, began)
            if flow.context.reports is not None:
                flow.context.reports.close()

    def _measure(self, flow: Flow, began: float) -> None:
        """What its body took, and what it waited until that, or until it was refused."""
        ended = self._clock.monotonic()
        flow.seconds = ended - began if flow.ran else 0.0
        flow.waited = flow.earlier + (began if flow.ran else ended) - flow.started

    async def _ask_for_word(self, flow: Flow, tool: Tool) -> None:
        if self.approver is None:
            raise ToolDenied(
                f"{tool.name} must be allowed by somebody, and there is nobody to ask. Do without it."
            )
        context, asks = (
            flow.context,
            f"{tool.label or tool.name} {json.dumps(flow.input, ensure_ascii=False)}",
        )
        request = ApprovalRequest(
            run_id=context.run_id,
            step=context.step,
            call_id=context.call_id,
            name=tool.name,
            arguments=deepcopy(flow.input),
            asks=readable(asks, self._max_result),
            conversation=context.conversation,
            asker=context.asker,
            context=context,
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
            return await run_body(tool, flow.context, dict(checked.arguments))
        except (ToolFailed, ConnectionError, TimeoutError) as error:
            if not tool.may_be_retried or (isinstance(error, ToolFailed) and not error.transient):
                raise
        await self._clock.sleep(RETRY_AFTER)
        return await run_body(tool, flow.context, dict(checked.arguments))

    def break_off(self, flow: Flow, what: str) -> None:
        """The call has ended in the middle; of what was under way nobody knows."""
        if not flow.ran:
            self._measure(flow, 0.0)
        doubtful = flow.ran and flow.tool is not None and flow.tool.may_have_happened
        flow.refuse(ToolCancelled(f"{what} {MAYBE_DONE}" if doubtful else what))

    def pending(self, flow: Flow, asked: Suspend) -> PendingCall:
        """What the call waits for."""
        call, context = flow.call, flow.context
        arguments = json.dumps(flow.input)
        digest = digest_call(
            call, run_id=context.run_id, asker=context.asker.user_id, arguments=arguments
        )
        now = self._clock.now()
        expires, since = now + asked.seconds, now - flow.waited
        return PendingCall(
            call, readable(asked.asks, self._max_result), expires, digest, arguments, since=since
        )

    # --- finish -----------------------------------------------------------------------------------

    async def finish(self, flow: Flow, tally: Tally) -> Executed:
        """The after hooks, then the result as the model reads it; what the tool gave is kept as it
        was before them.
        """
        if flow.tool is not None:
            self._count(flow, flow.tool, tally)
        await self._others.after(flow, tally)
        return self.close(flow, tally)

    def preview(self, flow: Flow) -> str | None:
        """The result as the model reads it, unless there is none yet, or a hook may still rewrite
        it.
        """
        if flow.result is None or self._others.will_be_asked_after(flow):
            return None
        return readable(told_with_images(flow.result), self._max_result)

    def close(self, flow: Flow, tally: Tally) -> Executed:
        """Give the result the form the model reads, and count its size."""
        result = flow.result or ToolResult()
        content = readable(
            told_with_images(result), min(self._max_result, max(LEAST_RESULT, tally.left))
        )
        tally.left = max(0, tally.left - len(content))
        images = tuple(image.url for image in result.images)
        return Executed(
            ToolMessage(
                flow.call.id, flow.call.name, content, result.is_error, images, code=result.code
            ),
            flow.code,
            flow.seconds,
            flow.waited,
            details=result.details,
            terminate=result.terminate,
            arguments=None if flow.checked is None else flow.checked.plain,
            coerced=() if flow.checked is None else flow.checked.coerced,
        )

    def _count(self, flow: Flow, tool: Tool, tally: Tally) -> None:
        tally.repeats.took(tool.name, fits=flow.code != InvalidArguments.code)
        if flow.ran and not tool.side_effects.is_harmless:
            tally.repeats.forget()
        elif (
            flow.ran
            and tool.is_guarded_from_repeats
            and flow.result is not None
            and not flow.result.is_error
        ):
            tally.repeats.keep(key_of(tool.name, flow.input), flow.result)
