"""Who else has a say in a call: the tool's own checks, the hooks before it, the hooks after it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from msgspec.structs import replace

from frostagent.cancellation import BROKEN
from frostagent.engine.authority import lowest_authority
from frostagent.engine.call_state import (
    CallStage,
    CallState,
    CallTotals,
    metadata_of,
    worded_failure,
)
from frostagent.engine.forced_cancel import await_settled
from frostagent.engine.tool_execution import Mask, error_text, record_failure
from frostagent.types.arguments import Checked
from frostagent.types.errors import InvalidArguments, ToolCancelled, ToolDenied
from frostagent.types.hooks import (
    AfterCall,
    BeforeCall,
    Block,
    Change,
    Hooks,
    Rewrite,
    StopRun,
    verified,
)
from frostagent.types.results import ToolResult
from frostagent.types.tools import Tool

STOPPED = "the run was stopped here: the call was not done."


class CallHooks:
    """The hooks of calls, and the checks of tools. `mask` takes the secrets out of what a check
    says. Raises TypeError for what is no hook.
    """

    def __init__(self, hooks: Sequence[Hooks] = (), *, mask: Mask = str) -> None:
        self.hooks = verified(hooks)
        self._before = tuple(
            hook.before_call for hook in self.hooks if hook.before_call is not None
        )
        self._after = tuple(hook.after_call for hook in self.hooks if hook.after_call is not None)
        self._mask = mask

    def will_be_asked_after(self, flow: CallState) -> bool:
        """Whether somebody may still rewrite the result of this call."""
        return flow.owes_after and bool(self._after)

    async def check(self, flow: CallState, tool: Tool, checked: Checked) -> None:
        """The tool's own checks. Raises what they raise; a ValueError is told as wrong
        arguments.
        """
        flow.doing = CallStage.CHECKING
        for guard in tool.guards:
            try:
                answer = guard(flow.context, checked.arguments)
                await await_settled(answer, name=f"a check of tool {tool.name}")
            except ValueError as wrong:
                words = error_text(wrong, self._mask)
                raise InvalidArguments(words, fields=(words,)) from wrong

    async def before(self, flow: CallState, tool: Tool, tally: CallTotals) -> None:
        """Ask the before hooks. Raises ToolDenied for a blocked call, ToolCancelled where the run
        is to stop.
        """
        for hook in self._before:
            flow.doing = CallStage.HOOK
            event = BeforeCall(
                name=tool.name, input=deepcopy(flow.input), metadata=metadata_of(flow.context)
            )
            match await await_settled(hook(event), name=f"a hook before {tool.name}"):
                case None:
                    pass
                case Block(reason=reason):
                    raise ToolDenied(f"the tool call was blocked: {reason}")
                case Change(arguments=arguments):
                    flow.checked = tool.validate(arguments)
                    await self.check(flow, tool, flow.checked)
                case StopRun() as stop:
                    tally.stop = tally.stop or stop
                    raise ToolCancelled(STOPPED)
                case other:
                    kind = type(other).__name__
                    raise TypeError(
                        f"a before hook answers Block, Change, StopRun or nothing, not {kind}"
                    )

    async def after(self, flow: CallState, tally: CallTotals) -> None:
        """Ask the after hooks, once, where the before hooks were asked; one that breaks is the
        call's failure.
        """
        if not flow.owes_after:
            return
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
                match await await_settled(hook(event), name=f"a hook after {flow.call.name}"):
                    case None:
                        pass
                    case Rewrite(result=rewritten):
                        flow.result = keep_authority(
                            worded_failure(ToolResult.of(rewritten), flow.code), result
                        )
                    case StopRun() as stop:
                        tally.stop = tally.stop or stop
                    case other:
                        kind = type(other).__name__
                        raise TypeError(
                            f"an after hook answers Rewrite, StopRun or nothing, not {kind}"
                        )
            except BROKEN as error:
                done = flow.ran and not result.is_error
                flow.doing = CallStage.HOOK_AFTER if done else CallStage.HOOK
                flow.ran = False  # a broken hook says nothing about the tool
                record_failure(flow, error)
                flow.ran = done


def keep_authority(rewritten: ToolResult, result: ToolResult) -> ToolResult:
    """A result that a hook made has no more authority than that, and is of the same messages; what
    of that was for this run alone is not kept of it either.
    """
    return replace(
        rewritten,
        sources=tuple(dict.fromkeys((*rewritten.sources, *result.sources))),
        authority=lowest_authority((rewritten.authority, result.authority)),
        tainted=rewritten.tainted or result.tainted,
        kept=rewritten.kept or result.kept,
    )
