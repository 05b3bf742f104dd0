"""The tool `subscribe`: reports new entries of a feed to a chat."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.core.jobs import Subscriptions
from frostagent.types.results import ToolResult
from frostagent.types.tools import ToolContext, tool


@tool(
    needs=(Subscriptions,), side_effects="write", stays_here=True, trusted_result=True, timeout=30
)
async def subscribe(
    context: ToolContext,
    url: str,
    minutes: Annotated[int, Field(ge=10, le=1440)] = 30,
    summary: bool = False,
) -> ToolResult:
    """Tell this chat from now on what is new in a feed (RSS, Atom, JSON Feed): for admins. It is
    listed and cancelled with remind.

    Args:
        url: The address of the feed itself.
        minutes: How often it is read.
        summary: Tell one line about each new entry, too. It costs the chat a little.
    """
    port = context.port(Subscriptions)
    return await port.subscribe(context, url, minutes=minutes, summary=summary)
