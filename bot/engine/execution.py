"""The body of a call: somebody's word first, where one is needed, then the tool's own code within
its deadline.
"""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from typing import assert_never, cast

from msgspec.structs import replace

from bot.domain.arguments import Checked
from bot.domain.errors import ToolDenied, ToolFailed, ToolTimeout
from bot.domain.ports import Approver, Clock
from bot.domain.suspension import Allow, ApprovalRequest, Deny, Pending, Suspend
from bot.domain.tool import Tool
from bot.engine.bodies import run_body
from bot.engine.call_rules import NOT_ALLOWED
from bot.engine.letting_go import settled
from bot.engine.ongoing import MAX_RESULT, Flow, readable

RETRY_AFTER = 0.5  # seconds until a transient failure is tried once more

MAYBE_DONE = "It may have been done all the same: do not repeat it."


class Bodies:
    """Runs the bodies of calls, once more where a transient failure does no harm."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def ask_for_word(self, flow: Flow, tool: Tool) -> None:
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

    async def run(self, flow: Flow, tool: Tool, checked: Checked) -> object:
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
                    return await settled(recovered, name=f"the way out of tool {tool.name}")
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
