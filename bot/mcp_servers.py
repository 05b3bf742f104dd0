"""The MCP servers of MCP_FILE: connected in the background, their tools in the registry while they
are there.

`frostagent.mcp` and its SDK are imported with the first server, in a thread, because that takes as
long as the rest of the start.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, NotifyOwners, Phrase
from config.mcp_servers import ServerRow, read_servers
from config.settings import Settings
from frostagent.engine.external_tools import our_name
from frostagent.engine.server_tools import ServerTools
from frostagent.engine.toolset import Toolset
from frostagent.models.tokens import estimate
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.messages import ModelRequest
from frostagent.types.ports import Clock, Ids
from frostagent.types.traits import Audience

if TYPE_CHECKING:  # it loads the SDK
    from frostagent.mcp import MCPServer

logger = logging.getLogger(__name__)

SDK_HOME = "frostagent.mcp"
NOT_YET = "is not connected yet"
MOST_TOLD = 5  # tools of a server whose names an alert has
DIFFERENT: Final = Phrase(
    "MCP 服务器 {server} 的工具说明和刚连上时不一样了（{tools}）。之前对它们的同意不再算数；"
    "重启机器人之前，每次调用都要主人同意。请用 frostagent mcp try {server} 看一看。",
    "MCP server {server} describes tools differently than when it connected ({tools}). An approval "
    "from before does not hold for them, and until the bot is restarted an owner must allow each "
    "call. Look at them with: frostagent mcp try {server}",
)
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server's status. `reason` is why it is away, empty while it is connected; `tokens`
    estimates the size of its tools' schemas in a request. `changed` are the tools whose
    description is not the first one.
    """

    name: str
    trust: str
    audience: str
    groups: tuple[int, ...]
    reason: str
    error: str
    tools: tuple[str, ...]
    skipped: tuple[str, ...]
    tokens: int
    calls: int
    failures: int
    changed: tuple[str, ...] = ()


class McpServers:
    """Reads MCP_FILE, and reads it again; a server whose row is unchanged stays connected.

    `masks` learn the secrets of rows added later. Owners are notified once of each server that
    changes the descriptions of its tools, unless it is trusted in full. Raises ConfigError for a
    file that cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        toolset: Toolset,
        owners: Collection[int],
        masks: Iterable[Mask] = (),
        clock: Clock,
        ids: Ids,
        on_change: Callable[[], None] = lambda: None,
        notify: NotifyOwners = lambda _: None,
    ) -> None:
        self._settings = settings
        self._toolset = toolset
        self._owners = frozenset(owners)
        self._masks = tuple(masks)
        self._clock = clock
        self._ids = ids
        self._on_change = on_change
        self._notify = notify
        self._told: set[str] = set()  # servers that owners were notified of
        self._rows: Mapping[str, ServerRow] = {}
        self._running: dict[str, tuple[ServerRow, MCPServer, ServerTools]] = {}
        self._changed = asyncio.Event()
        rows, problems = read_servers(settings.mcp_file, settings.mcp_keys)
        if problems:
            raise ConfigError(*problems)
        self._use(rows)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file again and return its problems; with any problem, nothing changes."""
        rows, problems = read_servers(self._settings.mcp_file, self._settings.mcp_keys)
        if not problems:
            self._use(rows)
        return problems

    def _use(self, rows: Mapping[str, ServerRow]) -> None:
        secrets = [secret for row in rows.values() for secret in row.secrets]
        for mask in self._masks:
            mask.learn(secrets)
        self._rows = rows
        for name, (row, _, tools) in list(self._running.items()):
            if rows.get(name) != row:
                tools.withdraw()
                del self._running[name]
                self._told.discard(name)
        self._changed.set()

    async def run(self) -> None:
        """Keep the servers connected until cancelled; one removed from the file is disconnected."""
        tasks: dict[MCPServer, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self._changed.wait()
                self._changed.clear()
                if self._rows and SDK_HOME not in sys.modules:
                    await asyncio.to_thread(import_module, SDK_HOME)
                self._build_missing()
                wanted = [server for _, server, _ in self._running.values()]
                for server in [each for each in tasks if each not in wanted]:
                    tasks.pop(server).cancel()
                for server in wanted:
                    if server not in tasks:
                        tasks[server] = group.create_task(
                            self._keep(server), name=f"MCP server {server.name}"
                        )

    def _build_missing(self) -> None:
        for name, row in self._rows.items():
            if name not in self._running:
                server = build_server(name, row, clock=self._clock, ids=self._ids)
                changed = partial(self._tools_changed, row, server)
                tools = ServerTools(self._toolset, server, changed)
                self._running[name] = row, server, tools

    def _tools_changed(self, row: ServerRow, server: MCPServer) -> None:
        self._on_change()
        changed, name = server.state.changed, server.name
        if changed and row.trust != "full" and name not in self._told:
            self._told.add(name)
            self._notify(DIFFERENT.fill(server=name, tools=", ".join(changed[:MOST_TOLD])))

    async def _keep(self, server: MCPServer) -> None:
        while True:
            try:
                await server.run()
            except Exception:
                logger.exception("MCP server %s is tried again in a minute", server.name)
            await self._clock.sleep(60)

    # --- where its tools are there ----------------------------------------------------------------

    def withheld(self, where: Conversation) -> frozenset[str]:
        """The servers limited to other groups. An owner's private chat has all servers."""
        if not self._rows or (not where.is_group and where.session_id in self._owners):
            return frozenset()
        return frozenset(
            name
            for name, row in self._rows.items()
            if row.groups and not (where.is_group and where.session_id in row.groups)
        )

    def tokens_in(self, where: Conversation) -> tuple[tuple[str, int], ...]:
        """The connected servers with tools there, and the estimated tokens of their schemas."""
        withheld = self.withheld(where)
        return tuple(
            (one.name, one.tokens)
            for one in self.statuses()
            if one.name not in withheld and one.tokens and not one.reason
        )

    def connections(self) -> Mapping[str, bool]:
        """Whether each server is connected now."""
        return {
            name: name in self._running and not self._running[name][1].state.reason
            for name in self._rows
        }

    # --- what people see --------------------------------------------------------------------------

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Each server, in the order of the file."""
        return tuple(
            describe(name, *self._running[name])
            if name in self._running
            else describe_unbuilt(name, row)
            for name, row in self._rows.items()
        )


def belongs_to_server(name: str, servers: Iterable[str]) -> bool:
    return any(name.startswith(f"{our_name(server)}_") for server in servers)


def build_server(name: str, row: ServerRow, *, clock: Clock, ids: Ids) -> MCPServer:
    """The server of a row. Imports the SDK."""
    from frostagent.mcp import MCPServer  # noqa: PLC0415  # it loads the SDK

    return MCPServer(
        name,
        command=row.command,
        args=row.args,
        env=row.env,
        cwd=row.cwd,
        url=row.url,
        headers=row.headers,
        tools=row.tools,
        trust=row.trust,
        audience=Audience(row.audience),
        timeout=row.timeout,
        clock=clock,
        ids=ids,
    )


def describe_unbuilt(name: str, row: ServerRow) -> ServerStatus:
    """The status of a server that has not been contacted yet."""
    return ServerStatus(
        name=name,
        trust=row.trust,
        audience=row.audience,
        groups=tuple(row.groups),
        reason=NOT_YET,
        error="",
        tools=(),
        skipped=(),
        tokens=0,
        calls=0,
        failures=0,
    )


def describe(name: str, row: ServerRow, server: MCPServer, tools: ServerTools) -> ServerStatus:
    state = server.state
    specs = tuple(tool.spec for tool in state.tools)
    return ServerStatus(
        name=name,
        trust=row.trust,
        audience=row.audience,
        groups=tuple(row.groups),
        reason=state.reason,
        error=state.error,
        tools=tuple(tool.name for tool in state.tools),
        skipped=(*state.skipped, *tools.clashes),
        tokens=round(estimate(ModelRequest((), specs))) if specs else 0,
        calls=state.calls,
        failures=state.failures,
        changed=state.changed,
    )
