"""The tools as the console shows them, and one of them called from a page: on nobody's authority,
and only where a call changes nothing.
"""

from __future__ import annotations

import asyncio

from bot.domain.errors import ToolDenied, ToolTimeout
from bot.domain.inspection import ToolAnswer, ToolState
from bot.domain.ports import Clock, Subagents
from bot.domain.run import Asker, Terms
from bot.domain.tool import Tool, ToolContext
from bot.domain.traits import Audience, Permission, SideEffects
from bot.engine.toolset import NOWHERE
from bot.memory.personas import Personas
from bot.wiring.means import Means
from bot.wiring.tools import PORTS

WITHIN = 60.0  # seconds that a page waits for a call
LATE = "there was no answer within {seconds:g} s."
UNFIT = "{name} is not called from a page ({why})."


def tools_of(means: Means, personas: Personas) -> tuple[ToolState, ...]:
    """All tools, whether they can be used or not."""
    cast, toolset = personas.cast, means.staff.toolset
    told = []
    for status, tool in zip(toolset.check_availability(PORTS), toolset.list(), strict=True):
        audience = cast.audiences.get(tool.name, tool.audience)
        theirs = {
            group: house.audiences.get(tool.name, tool.audience)
            for group, house in sorted(cast.houses.items())
        }
        told.append(
            ToolState(
                name=tool.name,
                about=status.description,
                reason=status.reason,
                permission=str(toolset.permission_of(tool)),
                audience=str(audience),
                elsewhere=tuple((at, str(who)) for at, who in theirs.items() if who != audience),
                quota=(tool.rate.calls, tool.rate.seconds) if tool.rate else None,
                unfit="away" if status.reason else unfit(means, personas, tool),
                parameters=tool.parameters,
            )
        )
    return tuple(told)


def unfit(means: Means, personas: Personas, tool: Tool) -> str:
    """Why a page may not call this tool; empty where it may.

    A page asks as somebody of whom nothing is known does, nowhere: what he may have called in a
    group it may have called, and of that only what changes nothing and costs no model.
    """
    permission = means.staff.toolset.permission_of(tool)
    if permission is Permission.DENY:
        return "denied"
    if not tool.side_effects.is_harmless:
        return "undeclared" if tool.side_effects is SideEffects.UNDECLARED else "effects"
    if permission is Permission.REQUIRE_APPROVAL:
        return "approval"
    if personas.cast.audiences.get(tool.name, tool.audience) is not Audience.EVERYONE:
        return "audience"
    if Subagents in tool.needs:
        return "models"
    return "" if all(need in means.ports for need in tool.needs) else "chat"


async def call_tool(
    means: Means, personas: Personas, clock: Clock, name: str, arguments: str
) -> ToolAnswer:
    """Call one as the engine does, with all its rules. Every failure is an answer, that it may not
    be called from here, too.
    """
    toolset, begun = means.staff.toolset, clock.monotonic()
    tool = toolset.get(name)
    if tool is not None and (why := unfit(means, personas, tool)):
        return ToolAnswer(UNFIT.format(name=name, why=why), ToolDenied.code, 0.0)
    context = ToolContext(
        run_id="console",
        step=1,
        call_id="call",
        conversation=NOWHERE,
        asker=Asker(0, "console", authority=Audience.EVERYONE, overheard=Audience.EVERYONE),
        deadline=begun + WITHIN,
        ports={kind: port for kind, port in means.ports.items() if kind is not Subagents},
        terms=Terms(audiences=personas.cast.audiences, highest=Audience.EVERYONE),
    )
    try:
        async with asyncio.timeout(WITHIN):
            result = await toolset.execute(name, arguments, context)
    except TimeoutError:
        return ToolAnswer(LATE.format(seconds=WITHIN), ToolTimeout.code, clock.monotonic() - begun)
    code = result.code if result.is_error else "ok"
    return ToolAnswer(result.content, code, clock.monotonic() - begun, len(result.images))
