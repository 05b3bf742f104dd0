"""`stay_silent`: ends the run without a message, if no answer is wanted."""

from __future__ import annotations

from frostagent.types.ports import Speaker
from frostagent.types.results import ToolResult
from frostagent.types.tools import tool


@tool(needs=(Speaker,), side_effects="none", alone=True, trusted_result=True)
async def stay_silent() -> ToolResult:
    """Say nothing, and end here. For when people talk about you or among themselves, and want no
    answer from you; never because something failed. Call it alone, in the place of an answer.
    """
    return ToolResult(terminate=True)
