"""The page of tools: their list, and calls from the page."""

from __future__ import annotations

import asyncio
from typing import Final

from bot.build import App
from bot.configured_tools import TOOL_PORTS, lacking_tools, search_account
from bot.core.console_views import ServerState, ToolAnswer, ToolState, WebState
from bot.core.conversation import NOWHERE
from config.settings import Settings
from frostagent.types.errors import ToolDenied, ToolTimeout
from frostagent.types.ports import Subagents
from frostagent.types.runs import Asker, Terms
from frostagent.types.tools import Tool, ToolContext
from frostagent.types.traits import Audience, Permission, SideEffects
from tools.read_page import read_page
from tools.read_page.pages import Pages
from tools.search_web import search_web
from tools.search_web.search import WebSearch

CALL_SECONDS: Final = 60.0  # that a page waits for a call
CALL_TIMED_OUT: Final = "there was no answer within {seconds:g} s."
NOT_CALLABLE: Final = "{name} is not called from a page ({why})."


def list_tools(app: App) -> tuple[ToolState, ...]:
    """All tools, including unusable ones."""
    cast, toolset = app.personas.cast, app.toolset
    states = []
    for status, tool in zip(toolset.check_availability(TOOL_PORTS), toolset.list(), strict=True):
        audience = cast.audiences.get(tool.name, tool.audience)
        by_group = {
            group: house.audiences.get(tool.name, tool.audience)
            for group, house in sorted(cast.houses.items())
        }
        states.append(
            ToolState(
                name=tool.name,
                about=status.description,
                reason=status.reason,
                permission=str(toolset.permission_of(tool)),
                audience=str(audience),
                elsewhere=tuple((at, str(who)) for at, who in by_group.items() if who != audience),
                quota=(tool.rate.calls, tool.rate.seconds) if tool.rate else None,
                unfit="away" if status.reason else why_not_callable(app, tool),
                parameters=tool.parameters,
            )
        )
    return tuple(states)


def list_servers(app: App) -> tuple[ServerState, ...]:
    """The MCP servers, disconnected ones first."""
    states = [
        ServerState(
            name=one.name,
            trust=one.trust,
            audience=one.audience,
            groups=one.groups,
            reason=one.reason,
            error=one.error,
            tools=len(one.tools),
            tokens=one.tokens,
            skipped=one.skipped,
            calls=one.calls,
            failures=one.failures,
            changed=one.changed,
        )
        for one in app.servers.statuses()
    ]
    return tuple(sorted(states, key=lambda one: not one.reason))


def read_web(settings: Settings, app: App) -> WebState | None:
    """Searching and reading today; None if the settings turn both off."""
    search, pages = app.ports[WebSearch], app.ports[Pages]
    if not settings.has_web or not isinstance(search, WebSearch) or not isinstance(pages, Pages):
        return None
    lacks, service = lacking_tools(settings), search_account(settings).service
    return WebState(
        service=service.name if service else "",
        unsearched=lacks.get(search_web.name, ""),
        unread=lacks.get(read_page.name, ""),
        price=settings.search_price,
        rests=search.rests,
        searches=search.today,
        pages=pages.today,
    )


def why_not_callable(app: App, tool: Tool) -> str:
    """Why a page may not call this tool, in a word; empty if it may.

    A page calls as an unknown person outside any conversation. It may call what that person may
    call in a group, if it changes nothing and costs no request to a model.
    """
    permission = app.toolset.permission_of(tool)
    if permission is Permission.DENY:
        return "denied"
    if not tool.side_effects.is_harmless:
        return "undeclared" if tool.side_effects is SideEffects.UNDECLARED else "effects"
    if permission is Permission.REQUIRE_APPROVAL:
        return "approval"
    if app.personas.cast.audiences.get(tool.name, tool.audience) is not Audience.EVERYONE:
        return "audience"
    if Subagents in tool.needs:
        return "models"
    return "" if all(need in app.ports for need in tool.needs) else "chat"


async def call_tool(app: App, name: str, arguments: str) -> ToolAnswer:
    """Call a tool with JSON arguments as the engine does, by all its rules. Every failure is
    returned as an answer, including that the page may not call the tool.
    """
    toolset, clock, begun = app.toolset, app.clock, app.clock.monotonic()
    tool = toolset.get(name)
    if tool is not None and (why := why_not_callable(app, tool)):
        return ToolAnswer(NOT_CALLABLE.format(name=name, why=why), ToolDenied.code, 0.0)
    context = ToolContext(
        run_id="console",
        step=1,
        call_id="call",
        conversation=str(NOWHERE),
        asker=Asker("0", "console", authority=Audience.EVERYONE, overheard=Audience.EVERYONE),
        deadline=begun + CALL_SECONDS,
        ports={kind: port for kind, port in app.ports.items() if kind is not Subagents},
        terms=Terms(audiences=app.personas.cast.audiences, highest=Audience.EVERYONE),
    )
    try:
        async with asyncio.timeout(CALL_SECONDS):
            result = await toolset.execute(name, arguments, context)
    except TimeoutError:
        return ToolAnswer(
            CALL_TIMED_OUT.format(seconds=CALL_SECONDS), ToolTimeout.code, clock.monotonic() - begun
        )
    code = result.code if result.is_error else "ok"
    return ToolAnswer(result.content, code, clock.monotonic() - begun, len(result.images))
