"""Whether a call may run: the operator's word, what is there for it, its checks and hooks, who
asks, how often.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection
from typing import Final, cast

from msgspec.structs import replace

from frostagent.engine.authority import Overrides, may_call, must_be_confirmed
from frostagent.engine.call_hooks import CallHooks
from frostagent.engine.call_state import (
    CallStage,
    CallState,
    CallTotals,
    RepeatedCall,
    TooManyRepeats,
    call_key,
)
from frostagent.text.language import Phrase
from frostagent.types.arguments import parse_arguments
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolRateLimited, ToolUnavailable
from frostagent.types.ports import Clock, ShadowMode, Speaker, Subagents
from frostagent.types.results import ToolResult
from frostagent.types.runs import PendingCall
from frostagent.types.tools import Tool
from frostagent.types.traits import Permission, Rate


class Quotas:
    """Remembers when each limited tool was called; no more than its rate has calls."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[float]] = {}

    def take(self, name: str, rate: Rate, *, now: float) -> float:
        """Take one call; 0 where it may be made, else the seconds until one may, and nothing is
        taken.
        """
        calls = self._calls.setdefault(name, deque())
        begin = now - rate.seconds
        while calls and calls[0] <= begin:
            calls.popleft()
        if len(calls) >= rate.calls:
            return calls[0] - begin  # compared and taken alike: never rounded to 0
        calls.append(now)
        return 0.0


LACKS_PORTS: Final = Phrase("需要 {needs}", "needs {needs}")
LACKS_SETTINGS: Final = Phrase("要设置 {requires}", "requires {requires} (not configured)")
LACKS_BOTH: Final = Phrase(
    "需要 {needs}，还要设置 {requires}", "needs {needs} and requires {requires} (not configured)"
)
KNOWN = (
    "(You had called this before, with the same arguments: this is what it gave. "
    "Do not call it again.)"
)
TOO_OFTEN = (
    "{name} was called with the same arguments {times} times. "
    "Use what it gave, and do not call it again."
)
DENIED = "{name} may not be run. Do without it."
NOT_ALLOWED = "the tool call was denied: {reason}"
ONLY_FOR = "{name} is only for {who}s, in their own words alone. Tell the asker so."
HELD_BACK = (
    "({name} was not run: in this chat the bot's owner is only told what would be done. He may do "
    "it; do not say that it is done, and do not call it again.)"
)
CLOSED = (
    "{name} was called with wrong arguments three times in a row: it is not run any more. "
    "Do without it."
)


class PermissionChecks:
    """The rules that a call meets before its body runs; tools of one name share a quota.

    `configured` names what the operator has set up, for tools that require it.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        interception: CallHooks,
        overrides: Overrides,
        configured: Collection[str],
    ) -> None:
        self._clock = clock
        self._interception = interception
        self._overrides = overrides
        self._configured = frozenset(configured)
        self._wary = False
        self._quotas = Quotas()

    @property
    def named(self) -> frozenset[str]:
        """The tools that the operator denies or wants approved, there or not."""
        return self._overrides.deny | self._overrides.approve

    def permission(self, tool: Tool) -> Permission:
        """The operator's word on this tool, else what it declares."""
        return self._overrides.permission(tool.name, tool.permission)

    def beware(self) -> None:
        """From now on what tools bring is taken for words from outside, unless their results are
        trusted.
        """
        self._wary = True

    def brings_outside_words(self, flow: CallState) -> bool:
        """Whether words from outside may be in what the call gave."""
        if flow.result is not None and flow.result.tainted:
            return True
        ran = self._wary and flow.ran and flow.tool is not None
        return ran and flow.tool is not None and not flow.tool.trusted_result

    def lacks(self, tool: Tool, ports: Collection[type]) -> str:
        """The reason why the tool cannot run at all; empty where there is none."""
        if not (tool.needs or tool.requires):
            return ""
        missing = [need.__name__ for need in tool.needs if need not in ports]
        unset = [name for name in tool.requires if name not in self._configured]
        needs, requires = ", ".join(missing), ", ".join(unset)
        if missing and unset:
            return LACKS_BOTH.fill(needs=needs, requires=requires)
        if missing:
            return LACKS_PORTS.fill(needs=needs)
        return LACKS_SETTINGS.fill(requires=requires) if unset else ""

    async def admit(
        self, flow: CallState, tool: Tool, tally: CallTotals, *, pending: PendingCall | None
    ) -> None:
        """Read the arguments and judge the call; one that is known already gets its result.

        `pending` is what it had waited for: its before hooks were asked then. Raises what stands
        against the call.
        """
        if lacks := self.lacks(tool, flow.context.ports):
            raise ToolUnavailable(f"{tool.name} cannot run here: it {lacks}. Do without it.")
        if tally.repeats.is_closed(tool.name):
            raise InvalidArguments(CLOSED.format(name=tool.name))
        if pending is not None and pending.arguments:
            flow.checked = tool.validate(parse_arguments(pending.arguments))
        else:
            flow.doing = CallStage.PREPARING
            flow.checked = tool.read(flow.call.arguments)
        await self._interception.check(flow, tool, flow.checked)
        flow.owes_after = True
        if pending is None:
            await self._interception.before(flow, tool, tally)
        self._permit(flow, tool, tally)

    def _is_held_back(self, flow: CallState, tool: Tool) -> bool:
        """Whether nothing is done there: the owners are told, and so is the model."""
        context = flow.context
        shade = cast("ShadowMode | None", context.ports.get(ShadowMode))
        if shade is None or not shade.is_active_in(context.conversation):
            return False
        call = f"{tool.name} {json.dumps(flow.input, ensure_ascii=False)}"
        shade.note(context.run_id.partition("/")[0], call)
        flow.result = ToolResult(HELD_BACK.format(name=tool.name))
        return True

    def _permit(self, flow: CallState, tool: Tool, tally: CallTotals) -> None:
        context = flow.context
        audience = context.terms.audience(tool.name, tool.audience)
        if not may_call(context.asker, audience, where=context.conversation):
            raise ToolDenied(ONLY_FOR.format(name=tool.name, who=audience.value.replace("_", " ")))
        permission = self.permission(tool)
        if permission is Permission.DENY:
            raise ToolDenied(DENIED.format(name=tool.name))
        if tool.is_guarded_from_repeats:
            match tally.repeats.judge(call_key(tool.name, flow.input)):
                case RepeatedCall(result=result):
                    flow.result = replace(result, content=f"{KNOWN}\n{result.content}")
                    return
                case TooManyRepeats(times=times, is_last=is_last):
                    tally.is_over |= is_last
                    raise ToolDenied(TOO_OFTEN.format(name=tool.name, times=times))
                case None:
                    pass
        if would_act(tool) and self._is_held_back(flow, tool):
            return
        if not context.allowed:
            self._take_quota(tool)
        unsure = must_be_confirmed(context.asker, audience, goes_beyond=tool.goes_beyond)
        flow.needs_word = (
            unsure or permission is Permission.REQUIRE_APPROVAL
        ) and not context.allowed

    def _take_quota(self, tool: Tool) -> None:
        if not tool.rate:
            return
        if seconds := self._quotas.take(tool.name, tool.rate, now=self._clock.monotonic()):
            text = (
                f"{tool.name} was called too often. It may be called again in {seconds:.0f} s; "
                "do without it now."
            )
            raise ToolRateLimited(text, seconds=seconds)


def would_act(tool: Tool) -> bool:
    """Whether a call changes something by itself: what is said by others, or done, is asked there
    again.
    """
    passes_on = tool.stays_here and not {Speaker, Subagents}.isdisjoint(tool.needs)
    return tool.may_have_happened and not passes_on
