"""The commands `mcp list` and `mcp try`, and the doctor's check of MCP servers. Each server is
connected for the command only, independently of a running bot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from bot.cli.checks import Check, ok, warning
from bot.cli.inspection import Ask, TerminalApprover
from bot.cli.layout import columns, joined
from bot.core.conversation import NOWHERE
from bot.core.language import CATALOGUE, Bilingual, Phrase
from bot.mcp_servers import ServerStatus, build_server, describe
from config.mcp_servers import ServerRow, read_servers
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.server_tools import ServerTools
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.ports import Approver
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker
from frostagent.types.tools import ToolContext

PATIENCE: Final = 20.0  # seconds for a server to connect
CHECKED_WITHIN: Final = 12.0  # seconds to connect, in the doctor

OFFERS: Final = Phrase(
    "{server}：{count} 个工具，约 {tokens} token", "{server}: {count} tools, about {tokens} tokens"
)
AWAY: Final = Phrase("{server} 连不上：{why}", "{server} {why}")
LEFT_OUT: Final = Phrase("{server} 有工具没用上：{what}", "{server}: left out: {what}")
HEADS: Final = (
    Phrase("服务器", "SERVER"),
    Phrase("信任", "TRUST"),
    Phrase("谁能用", "AUDIENCE"),
    Phrase("群", "GROUPS"),
    Phrase("工具", "TOOLS"),
    Phrase("token", "TOKENS"),
    Phrase("状态", "STATE"),
)
ALL_GROUPS: Final = Phrase("全部", "all")
CONNECTED: Final = Phrase("已连接", "connected")
NO_TOOLS: Final = Phrase("没有工具", "no tools")
NO_SERVERS: Final = Phrase(
    "没有 MCP 服务器：MCP_FILE 没设，或者里面是空的。写法见 docs/zh/mcp.md。",
    "There are no MCP servers: MCP_FILE is not set, or it is empty. See docs/mcp.md.",
)
UNKNOWN: Final = Phrase("没有服务器 {server}", "there is no server {server}")
KNOWN: Final = Phrase("现有：{servers}", "The servers are: {servers}")
SEE_FILE: Final = Phrase("先按 docs/zh/mcp.md 写好 MCP_FILE", "Set MCP_FILE as docs/mcp.md says")
SEE_ITS_OWN: Final = Phrase("看它自己的文档", "See its own documentation")
SEE_MCP: Final = Phrase(
    "用 python -m bot mcp try {server} 再看；写法见 docs/zh/mcp.md",
    "See python -m bot mcp try {server}; docs/mcp.md says how it is written",
)
CATALOGUE.register(__name__, globals())


def rows_of(settings: Settings) -> Mapping[str, ServerRow]:
    """The servers of MCP_FILE. Raises ConfigError."""
    rows, problems = read_servers(settings.mcp_file, settings.mcp_keys)
    if problems:
        raise ConfigError(*problems)
    return rows


async def look_at(rows: Mapping[str, ServerRow], *, seconds: float) -> list[ServerStatus]:
    """Connect to all servers concurrently, for this many seconds at most, and return their
    status.
    """
    clock, ids = SystemClock(), RandomIds()
    made = [
        (name, row, build_server(name, row, clock=clock, ids=ids)) for name, row in rows.items()
    ]
    tools = Toolset()
    kept = [(name, row, server, ServerTools(tools, server)) for name, row, server in made]
    async with background(*(server.run() for _, _, server in made)):
        async with asyncio.TaskGroup() as group:
            tries = [group.create_task(server.first_try()) for _, _, server in made]
            _, waiting = await asyncio.wait(tries, timeout=seconds) if tries else ((), ())
            for each in waiting:
                each.cancel()
        return [describe(*each) for each in kept]


def list_servers(settings: Settings) -> list[ServerStatus]:
    """Connect to each server of MCP_FILE and return its status. Raises ConfigError."""
    return asyncio.run(look_at(rows_of(settings), seconds=PATIENCE))


def servers_to_text(statuses: Sequence[ServerStatus]) -> Bilingual:
    """A line for each server, in columns, and a line for each skipped tool."""
    if not statuses:
        return NO_SERVERS.fill()
    heads = [head.fill() for head in HEADS]
    rows = [
        (
            one.name,
            one.trust,
            one.audience,
            ",".join(map(str, one.groups)) or ALL_GROUPS.fill(),
            str(len(one.tools)),
            str(one.tokens),
            one.reason or CONNECTED.fill(),
        )
        for one in statuses
    ]
    lines = [columns([heads, *rows])]
    for one in statuses:
        lines += [LEFT_OUT.fill(server=one.name, what=why) for why in one.skipped]
    return joined(lines)


def servers_to_data(statuses: Sequence[ServerStatus]) -> list[dict[str, Any]]:
    """The statuses as data for JSON."""
    return [asdict(one) for one in statuses]


async def try_server(
    settings: Settings, name: str, tool: str, arguments: str, *, ask: Ask | None
) -> Bilingual | ToolResult:
    """The tools of a server, a line each; with a `tool`, the result of calling it with an owner's
    rights. Raises ConfigError for a server that is not in the file or cannot be reached.
    """
    rows = rows_of(settings)
    if name not in rows:
        remedy = KNOWN.fill(servers=", ".join(rows)) if rows else SEE_FILE.fill()
        raise ConfigError(Problem("MCP_FILE", UNKNOWN.fill(server=name[:32]), remedy))
    server = build_server(name, rows[name], clock=SystemClock(), ids=RandomIds())
    tools = Toolset()
    kept = ServerTools(tools, server)
    async with background(server.run()):
        try:
            async with asyncio.timeout(PATIENCE):
                await server.first_try()
        except TimeoutError:
            pass
        status = describe(name, rows[name], server, kept)
        if not tool and not status.reason:
            lines = [
                (each.name, str(each.permission), each.description.partition("\n")[0][:100])
                for each in tools.list()
                if each.server
            ]
            left_out = [LEFT_OUT.fill(server=name, what=why) for why in status.skipped]
            return joined([columns(lines) if lines else NO_TOOLS.fill(), *left_out])
        if not status.reason:
            full = tool if tools.get(tool) is not None else f"{name}_{tool}"
            ports: dict[type, object] = {} if ask is None else {Approver: TerminalApprover(ask)}
            context = ToolContext(
                run_id="mcp",
                step=1,
                call_id="call",
                conversation=str(NOWHERE),
                asker=Asker("0", "operator", is_owner=True),
                deadline=SystemClock().monotonic() + rows[name].timeout,
                ports=ports,
            )
            return await tools.execute(full, arguments, context)
    raise ConfigError(Problem(name, status.reason, SEE_ITS_OWN.fill()))


async def check_servers(settings: Settings) -> list[Check]:
    """A check for each server of MCP_FILE."""
    rows, problems = read_servers(settings.mcp_file, settings.mcp_keys)
    if problems:
        return [warning("mcp", problem.what, problem.fix) for problem in problems]
    checks = []
    for one in await look_at(rows, seconds=CHECKED_WITHIN) if rows else ():
        fix = SEE_MCP.fill(server=one.name)
        if one.reason:
            checks.append(warning("mcp", AWAY, fix, server=one.name, why=one.reason))
            continue
        checks.append(ok("mcp", OFFERS, server=one.name, count=len(one.tools), tokens=one.tokens))
        if one.skipped:
            what = "; ".join(one.skipped[:3])
            checks.append(warning("mcp", LEFT_OUT, fix, server=one.name, what=what))
    return checks
