"""The registry of tools: which there are, which can be used now, and the one way to run one by its
name.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from bot.domain.chat import ToolCall, ToolSpec
from bot.domain.deadline import last_moments
from bot.domain.errors import ConfigError, InvalidArguments, Problem, ToolDenied
from bot.domain.events import Conversation
from bot.domain.hooks import Hooks, verified
from bot.domain.ports import Approver, Clock
from bot.domain.result import Image, ToolResult
from bot.domain.run import Asker
from bot.domain.suspension import Suspend
from bot.domain.tool import Tool, ToolContext, ToolStatus
from bot.domain.traits import Permission
from bot.engine.bodies import why_not
from bot.engine.callbacks import ApprovalHandler, FunctionApprover, as_approver
from bot.engine.calls import CANCELLED, LAST_HOOKS, Calls
from bot.engine.failures import Mask
from bot.engine.foreign import as_tool
from bot.engine.ongoing import MAX_RESULT, Flow, Tally
from bot.policy.permission import Overrides
from bot.policy.quota import Quotas
from bot.runtime.clock import SystemClock

logger = logging.getLogger(__name__)

NOWHERE = Conversation(0, "private", 0)
CANNOT_WAIT = "it must be allowed first, and a call outside a run cannot wait for that"


class Toolset:
    """The name-keyed registry of tools: each a `Tool`, a typed function, or an object that says all
    about itself.

    `deny` and `approve` are the operator's word on tools, by name; `configured` the names of what
    is configured, for tools that require it. `hooks` are those of the calls and, in an engine, of
    its requests and steps. The `approver` may be set later; a function will do as one
    (`set_approval_handler`). `mask` takes secrets out of what tools say was wrong. Raises TypeError
    for what is no tool, hook or approver, ConfigError for two tools of one name.
    """

    def __init__(
        self,
        tools: Iterable[object] = (),
        *,
        clock: Clock | None = None,
        max_result: int = MAX_RESULT,
        deny: Collection[str] = (),
        approve: Collection[str] = (),
        configured: Collection[str] = (),
        hooks: Sequence[Hooks] = (),
        approver: Approver | ApprovalHandler | None = None,
        quotas: Quotas | None = None,
        mask: Mask = str,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._offered: tuple[Tool, ...] = ()  # those the operator does not deny
        self._equipped: dict[
            tuple[type, ...], tuple[Tool, ...]
        ] = {}  # of them, those that lack nothing; by the ports
        self._definitions: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}
        self._overrides = Overrides(frozenset(deny), frozenset(approve))
        self._clock = clock = clock or SystemClock()
        self._configured = frozenset(configured)
        self._max_result = max_result
        self._mask = mask
        self._missed: set[str] = (
            set()
        )  # tools of which the log knows that something they require is not configured
        self.hooks = verified(hooks)
        self.calls = Calls(
            find=self._tools.get,
            names=self._tools.keys,
            clock=clock,
            hooks=self.hooks,
            overrides=self._overrides,
            configured=configured,
            approver=as_approver(approver),
            max_result=max_result,
            quotas=quotas,
            mask=mask,
        )
        for tool in tools:
            self.register(tool)

    @property
    def approver(self) -> Approver | None:
        """Who is asked about calls that need somebody's word; None where nobody is."""
        return self.calls.approver

    @approver.setter
    def approver(self, approver: Approver | ApprovalHandler | None) -> None:
        self.calls.approver = as_approver(approver)

    def set_approval_handler(self, handler: ApprovalHandler) -> None:
        """Let a function say whether a call may run: True, or no. It gets the call's context, its
        name and arguments, or the last two where it takes no more. Raises TypeError for one that
        takes neither.
        """
        self.calls.approver = FunctionApprover(handler)

    def register(self, source: object, *, replace: bool = False) -> None:
        """Add a tool, whole or not at all.

        Raises ConfigError for a second tool of one name, unless it replaces it on purpose,
        TypeError (UnsuitableType) or ValueError for what cannot be one.
        """
        tool = as_tool(source)
        if tool.name in self._tools and not (replace or tool.replaces):
            raise ConfigError(
                Problem(
                    f"tool {tool.name}",
                    "is registered twice",
                    "Rename one, or register it with replace=True.",
                )
            )
        self._tools[tool.name] = tool
        self._offered = tuple(
            tool
            for tool in self._tools.values()
            if self.calls.permission(tool) is not Permission.DENY
        )
        self._equipped.clear()
        self._definitions.clear()

    def get(self, name: str) -> Tool | None:
        """The tool of this name, if there is one."""
        return self._tools.get(name)

    def list(self) -> tuple[Tool, ...]:
        """All tools, sorted by name."""
        return tuple(self._tools[name] for name in sorted(self._tools))

    def part(self, names: Collection[str]) -> Toolset:
        """The tools of these names, by the same rules and quotas, with nobody to ask: what needs a
        word is denied.
        """
        return Toolset(
            (tool for tool in self.list() if tool.name in names),
            clock=self._clock,
            max_result=self._max_result,
            deny=self._overrides.deny,
            approve=self._overrides.approve,
            configured=self._configured,
            hooks=self.hooks,
            quotas=self.calls.quotas,
            mask=self._mask,
        )

    def permission_of(self, tool: Tool) -> Permission:
        """What counts for this tool: the operator's word, else what it declares."""
        return self.calls.permission(tool)

    def strangers(self) -> tuple[str, ...]:
        """The names the operator denies or wants approved that no tool has, sorted."""
        return tuple(
            sorted((self._overrides.deny | self._overrides.approve).difference(self._tools))
        )

    def definitions(self, ports: Collection[type] = ()) -> tuple[ToolSpec, ...]:
        """What the model is told of: the tools that can be used with these ports now and are not
        denied, by name.

        The same object for the same tools, so that adapters may remember how they wrote it.
        """
        there = tuple(ports)
        if (equipped := self._equipped.get(there)) is None:
            equipped = tuple(tool for tool in self._offered if not self.calls.lacks(tool, there))
            self._equipped[there] = equipped
            self._tell_of_missed()
        names = tuple([tool.name for tool in equipped if not why_not(tool)])
        if (definitions := self._definitions.get(names)) is None:
            definitions = self._definitions[names] = tuple(
                self._tools[name].spec for name in sorted(names)
            )
        return definitions

    def all_definitions(self) -> tuple[ToolSpec, ...]:
        """Every tool as a model would see it, whether it can be used or not, sorted by name."""
        return tuple(tool.spec for tool in self.list())

    def check_availability(self, ports: Collection[type] | None = None) -> tuple[ToolStatus, ...]:
        """Whether each tool can be used now, sorted by name; without `ports`, whatever capabilities
        a run has.
        """
        statuses = []
        for tool in self.list():
            reason = self._why_not(tool, tool.needs if ports is None else ports)
            statuses.append(ToolStatus(tool.name, tool.type, tool.about, not reason, reason))
        return tuple(statuses)

    def lost(self, ports: Collection[type] = ()) -> ToolStatus | None:
        """The first critical tool that cannot be used with these ports now; what the operator
        denies is not missed.
        """
        for tool in self._offered:
            if tool.critical and (reason := self._why_not(tool, ports)):
                return ToolStatus(tool.name, tool.type, tool.about, available=False, reason=reason)
        return None

    def _tell_of_missed(self) -> None:
        """Tell the log, once for each, what is not offered since something it requires is not
        configured.
        """
        for tool in self._offered:
            if tool.name not in self._missed and (reason := self.calls.lacks(tool, tool.needs)):
                self._missed.add(tool.name)
                logger.warning("tool %s is not offered: it %s", tool.name, reason)

    def _why_not(self, tool: Tool, ports: Collection[type]) -> str:
        return self.calls.lacks(tool, ports) or why_not(tool)

    def get_executor(self, name: str) -> Callable[..., Awaitable[ToolResult]] | None:
        """What runs the tool of this name: `execute` bound to it, never the bare body. None where
        there is none.
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

        Outside a run a call that would have to wait for somebody's word is denied.
        """
        context = context or ToolContext(
            run_id="",
            step=0,
            call_id="call",
            conversation=NOWHERE,
            asker=Asker(0),
            deadline=self._clock.monotonic(),
        )
        flow, tally = self.calls.start(ToolCall(context.call_id, name, ""), context), Tally()
        try:
            raw = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        except (TypeError, ValueError, RecursionError) as error:
            flow.refuse(InvalidArguments(f"the arguments are no JSON object ({error})."))
        else:
            flow.call = replace(flow.call, arguments=raw)
            await self._do(flow, tally)
        executed = await self.calls.finish(flow, tally)
        message = executed.message
        return ToolResult(
            message.content,
            tuple(map(Image, message.images)),
            executed.details,
            executed.terminate,
            message.is_error,
            message.code,
        )

    async def _do(self, flow: Flow, tally: Tally) -> None:
        try:
            await self.calls.begin(flow, tally)
            await self.calls.run(flow)
        except Suspend as asked:
            flow.refuse(ToolDenied(f"{CANNOT_WAIT} ({asked})"))
        except BaseException:
            self.calls.break_off(flow, CANCELLED)
            with suppress(TimeoutError):
                async with last_moments(LAST_HOOKS):
                    await self.calls.finish(flow, tally)
            raise
