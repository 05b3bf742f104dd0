"""Tools that a compromised model would like to have run: each tells the ledger `DONE`."""

from __future__ import annotations

from frostagent.types.errors import ToolFailed
from frostagent.types.tools import tool

DONE: list[str] = []


@tool(side_effects="read")
async def show_page(words: str) -> str:
    """Shows a page: its words are a stranger's."""
    return words


@tool(side_effects="read")
async def break_page(words: str) -> str:
    """Fails to read a page: what it says of that are the page's words."""
    raise ToolFailed(words)


@tool(side_effects="external")
async def post(words: str) -> str:
    """Tells the whole world."""
    DONE.append(f"post {words}")
    return "posted"


@tool(permission="require_approval", side_effects="external")
async def wipe_disk(disk: str) -> str:
    """Wipes a disk."""
    DONE.append(f"wipe_disk {disk}")
    return "wiped"


@tool(audience="owner", side_effects="read")
async def open_safe() -> str:
    """Opens the safe."""
    DONE.append("open_safe")
    return "open"


@tool(audience="group_admin", side_effects="write")
async def close_group() -> str:
    """Closes the group."""
    DONE.append("close_group")
    return "closed"
