"""The checks before a call's body, in order (`CallChecks`).

A check lets the call continue, sets its result, or raises the `ToolError` that refuses it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from copy import deepcopy
from typing import TypeAlias, cast

from msgspec.structs import replace

from frostagent.engine.authority import may_call, must_be_confirmed
from frostagent.engine.call_state import (
    CallStage,
    CallState,
    CallTotals,
    RepeatedCall,
    TooManyRepeats,
    call_key,
    metadata_of,
)
from frostagent.engine.tool_execution import Mask, await_settled, error_text
from frostagent.types.arguments import parse_arguments
from frostagent.types.errors import (
    InvalidArguments,
    ToolCancelled,
    ToolDenied,
    ToolRateLimited,
    ToolUnavailable,
)
from frostagent.types.hooks import BeforeCall, Block, Change, Hook, StopRun, verified
from frostagent.types.ports import Clock, ShadowMode, Speaker, Subagents
from frostagent.types.results import ToolResult
from frostagent.types.tools import Tool
from frostagent.types.traits import Permission, Rate
from frostagent.words import words_in_force

Check: TypeAlias = Callable[[CallState, Tool, CallTotals], Awaitable[None] | None]


class Quotas:
    """When each rate-limited tool was called, as far back as its rate reaches."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[float]] = {}

    def take(self, name: str, rate: Rate, *, now: float) -> float:
        """Count one call and return 0, or return the seconds until a call is allowed, uncounted."""
        calls = self._calls.setdefault(name, deque())
        begin = now - rate.seconds
        while calls and calls[0] <= begin:
            calls.popleft()
        if len(calls) >= rate.calls:
            return calls[0] - begin  # the same expression as in the comparison: never rounds to 0
        calls.append(now)
        return 0.0


class CallChecks:
    """The checks of a registry and its parts, with one quota for each tool name.

    `deny` and `approve` name tools that the operator forbids or wants approved, `configured` the
    settings that are present. `mask` removes secrets from errors of tools. Raises TypeError for an
    invalid hook.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        hooks: Sequence[Hook] = (),
        deny: Collection[str] = (),
        approve: Collection[str] = (),
        configured: Collection[str] = (),
        mask: Mask = str,
    ) -> None:
        self.clock = clock
        self.hooks = verified(hooks)
        self.mask = mask
        self._denied = frozenset(deny)
        self._approved = frozenset(approve)
        self._configured = frozenset(configured)
        self._wary = False
        self._quotas = Quotas()
        self._in_order: tuple[Check, ...] = (
            self._require_what_it_needs,
            self._refuse_closed,
            self._read_arguments,
            self._run_guards,
            self._ask_before_hooks,
            self._require_audience,
            self._refuse_denied,
            self._refuse_repeated,
            self._hold_back_in_shadow_mode,
            self._take_quota,
            self._decide_approval,
        )

    async def check(self, state: CallState, tool: Tool, totals: CallTotals) -> None:
        """Run the checks until one gives a result or raises its refusal, or all have passed."""
        for check in self._in_order:
            if (waited := check(state, tool, totals)) is not None:
                await waited
            if state.result is not None:
                return

    # --- the tool and its arguments ---------------------------------------------------------------

    def _require_what_it_needs(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        if lacks := self.lacks(tool, state.context.ports):
            raise ToolUnavailable(f"{tool.name} cannot run here: it {lacks}. Do without it.")

    def lacks(self, tool: Tool, ports: Collection[type]) -> str:
        """What the tool needs and does not have; empty if nothing."""
        if not (tool.needs or tool.requires):
            return ""
        missing = [need.__name__ for need in tool.needs if need not in ports]
        unset = [name for name in tool.requires if name not in self._configured]
        needs, requires, words = ", ".join(missing), ", ".join(unset), words_in_force()
        if missing and unset:
            return words.needs_and_requires.format(needs=needs, requires=requires)
        if missing:
            return words.needs.format(needs=needs)
        return words.requires.format(requires=requires) if unset else ""

    def _refuse_closed(self, state: CallState, tool: Tool, totals: CallTotals) -> None:
        if totals.repeats.is_closed(tool.name):
            raise InvalidArguments(state.context.words.closed.format(name=tool.name))

    def _read_arguments(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        """After a wait, use the approved arguments, which a hook may have changed."""
        if state.pending is not None and state.pending.arguments:
            state.checked = tool.validate(parse_arguments(state.pending.arguments))
        else:
            state.stage = CallStage.PREPARING
            state.checked = tool.read(state.call.arguments)

    # --- checks by users --------------------------------------------------------------------------

    async def _run_guards(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        """Run the tool's own checks; a ValueError means wrong arguments."""
        state.stage = CallStage.CHECKING
        arguments = state.checked.arguments if state.checked else {}
        for guard in tool.guards:
            try:
                answer = guard(state.context, arguments)
                await await_settled(answer, name=f"a check of tool {tool.name}")
            except ValueError as wrong:
                words = error_text(wrong, self.mask)
                raise InvalidArguments(words, fields=(words,)) from wrong

    async def _ask_before_hooks(self, state: CallState, tool: Tool, totals: CallTotals) -> None:
        """Skipped after a wait. Arguments changed by a hook are validated and checked again."""
        state.owes_after = True
        if state.pending is not None:
            return
        for hook in self.hooks:
            if hook.before_call is None:
                continue
            state.stage = CallStage.HOOK
            event = BeforeCall(
                name=tool.name, input=deepcopy(state.input), metadata=metadata_of(state.context)
            )
            match await await_settled(hook.before_call(event), name=f"a hook before {tool.name}"):
                case None:
                    pass
                case Block(reason=reason):
                    raise ToolDenied(f"the tool call was blocked: {reason}")
                case Change(arguments=arguments):
                    state.checked = tool.validate(arguments)
                    await self._run_guards(state, tool, totals)
                case StopRun() as stop:
                    totals.stop = totals.stop or stop
                    raise ToolCancelled(state.context.words.stopped)
                case other:
                    kind = type(other).__name__
                    raise TypeError(
                        f"a before hook answers Block, Change, StopRun or nothing, not {kind}"
                    )

    # --- permission -------------------------------------------------------------------------------

    def _require_audience(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        context = state.context
        audience = context.terms.audience(tool.name, tool.audience)
        if not may_call(context.asker, audience):
            who = audience.value.replace("_", " ")
            raise ToolDenied(context.words.only_for.format(name=tool.name, who=who))

    def _refuse_denied(self, state: CallState, tool: Tool, __: CallTotals) -> None:
        if self.permission(tool) is Permission.DENY:
            raise ToolDenied(state.context.words.denied.format(name=tool.name))

    def permission(self, tool: Tool) -> Permission:
        """What the operator set for this tool, else what it declares; deny wins."""
        if tool.name in self._denied:
            return Permission.DENY
        return Permission.REQUIRE_APPROVAL if tool.name in self._approved else tool.permission

    @property
    def named(self) -> frozenset[str]:
        """The tools that the operator denies or wants approved, registered or not."""
        return self._denied | self._approved

    def _refuse_repeated(self, state: CallState, tool: Tool, totals: CallTotals) -> None:
        """A second equal call gets the first result; later ones are refused (`Repeats`)."""
        if not tool.is_guarded_from_repeats:
            return
        match totals.repeats.judge(call_key(tool.name, state.input)):
            case RepeatedCall(result=result):
                known = state.context.words.known
                state.result = replace(result, content=f"{known}\n{result.content}")
            case TooManyRepeats(times=times, is_last=is_last):
                totals.is_over |= is_last
                words = state.context.words
                raise ToolDenied(words.too_often.format(name=tool.name, times=times))
            case None:
                pass

    def _hold_back_in_shadow_mode(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        """In shadow mode, report the call instead of running it."""
        context = state.context
        shadow = cast("ShadowMode | None", context.ports.get(ShadowMode))
        if shadow is None or not would_act(tool) or not shadow.holds_back(context.conversation):
            return
        call = f"{tool.name} {json.dumps(state.input, ensure_ascii=False)}"
        shadow.note(context.run_id.partition("/")[0], call)
        state.result = ToolResult(context.words.held_back.format(name=tool.name))

    def _take_quota(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        if state.context.allowed or not tool.rate:
            return
        if seconds := self._quotas.take(tool.name, tool.rate, now=self.clock.monotonic()):
            text = (
                f"{tool.name} was called too often. It may be called again in {seconds:.0f} s; "
                "do without it now."
            )
            raise ToolRateLimited(text, seconds=seconds)

    def _decide_approval(self, state: CallState, tool: Tool, _: CallTotals) -> None:
        context = state.context
        audience = context.terms.audience(tool.name, tool.audience)
        state.needs_approval = not context.allowed and (
            must_be_confirmed(context.asker, audience, goes_beyond=tool.goes_beyond)
            or self.permission(tool) is Permission.REQUIRE_APPROVAL
        )

    # --- text from outside ------------------------------------------------------------------------

    def beware(self) -> None:
        """From now on, results count as text from outside, unless the tool's are trusted."""
        self._wary = True

    def brings_outside_words(self, state: CallState) -> bool:
        """Whether the result may contain text from outside. A server's tool always returns such
        text: its errors are the server's words, too.
        """
        if state.result is not None and state.result.tainted:
            return True
        if not state.ran or state.tool is None:
            return False
        return bool(state.tool.server) or (self._wary and not state.tool.trusted_result)


def would_act(tool: Tool) -> bool:
    """Whether the call itself changes something. Tools that send or ask subagents do not count:
    shadow mode applies further down.
    """
    passes_on = tool.stays_here and not {Speaker, Subagents}.isdisjoint(tool.needs)
    return tool.may_have_happened and not passes_on
