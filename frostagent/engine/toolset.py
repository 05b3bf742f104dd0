"""The tools of a program: a registry made of plain settings, whose tools can be run by their
names.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from frostagent.clock import SystemClock
from frostagent.engine.authority import Overrides
from frostagent.engine.call_checks import CallChecks
from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.callbacks import ApprovalHandler, FunctionApprover, as_approver
from frostagent.engine.registry import Registry
from frostagent.engine.tool_execution import Mask
from frostagent.types.conversation import Conversation
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.hooks import Hooks
from frostagent.types.messages import ToolCall
from frostagent.types.ports import Approver, Clock
from frostagent.types.results import Image, ToolResult
from frostagent.types.runs import Asker, PendingCall
from frostagent.types.tools import ToolContext

NOWHERE = Conversation(0, "private", 0)
CANNOT_WAIT = "it must be allowed first, and a call outside a run cannot wait for that"


class Toolset(Registry):
    """The name-keyed registry of tools: each a `Tool`, a typed function, or an object that says all
    about itself.

    `deny` and `approve` are the operator's word on tools, by name; `configured` the names of what
    is configured, for tools that require it. `hooks` are those of the calls and, in an engine, of
    its requests and steps. The `approver`, a function too, is asked about calls by name and in the
    runs of agents. `mask` takes secrets out of what tools say was wrong. Raises TypeError for what
    is no tool, hook or approver, ConfigError for two tools of one name.
    """

    def __init__(
        self,
        tools: Iterable[object] = (),
        *,
        clock: Clock | None = None,
        deny: Collection[str] = (),
        approve: Collection[str] = (),
        configured: Collection[str] = (),
        hooks: Sequence[Hooks] = (),
        approver: Approver | ApprovalHandler | None = None,
        mask: Mask = str,
    ) -> None:
        checks = CallChecks(
            clock=clock or SystemClock(),
            hooks=hooks,
            overrides=Overrides(frozenset(deny), frozenset(approve)),
            configured=configured,
            mask=mask,
        )
        super().__init__(tools, checks=checks)
        self._approver = as_approver(approver)

    @property
    def approver(self) -> Approver | None:
        """Who is asked about calls that need somebody's word; None where nobody is."""
        return self._approver

    def beware(self) -> None:
        """From now on, once a tool has brought words from outside, calls with effects beyond the
        conversation need somebody's word.
        """
        self.checks.beware()

    def set_approval_handler(self, handler: ApprovalHandler) -> None:
        """Let a function say whether a call may run: True, or no. It gets the call's context, its
        name and arguments, or the last two where it takes no more. Raises TypeError for one that
        takes neither.
        """
        self._approver = FunctionApprover(handler)

    def get_executor(self, name: str) -> Callable[..., Awaitable[ToolResult]] | None:
        """A function that runs the tool of this name: `execute` bound to it, never the bare body.
        None where there is none.
        """
        if name not in self._tools:
            return None

        async def execute(
            arguments: str | Mapping[str, object] = "", context: ToolContext | None = None
        ) -> ToolResult:
            return await self.execute(name, arguments, context)

        return execute

    async def execute(
        self,
        name: str,
        arguments: str | Mapping[str, object] = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run a tool by name as an engine would: the whole way, with hooks and permissions. Every
        failure is a result.

        The approver is the context's, else that of the toolset. Outside a run a call that would
        have to wait for somebody's word is denied.
        """
        context = context or ToolContext(
            run_id="",
            step=0,
            call_id="call",
            conversation=NOWHERE,
            asker=Asker(0),
            deadline=self.checks.clock.monotonic(),
        )
        if self._approver is not None and Approver not in context.ports:
            context = replace(context, ports={**context.ports, Approver: self._approver})
        batch = Batch([ToolCall(context.call_id, name, "")])
        try:
            raw = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
            batch = Batch([ToolCall(context.call_id, name, raw)])
        except (TypeError, ValueError, RecursionError) as error:
            batch.deny(0, InvalidArguments(f"the arguments are no JSON object ({error})."))
        executor = CallExecutor(self)
        await executor.run(batch, [context])
        for answer in batch.answers():
            if isinstance(answer, PendingCall):
                batch = Batch(batch.calls)
                batch.deny(0, ToolDenied(f"{CANNOT_WAIT} ({answer.asks})"), answer)
                await executor.run(batch, [context])
        ((_, executed),) = batch.finished()
        message = executed.message
        return ToolResult(
            message.content,
            tuple(map(Image, message.images)),
            executed.details,
            executed.terminate,
            message.is_error,
            message.code,
        )
