"""The tools that scenarios need: one that answers, one that takes its time, one that hangs, one that
wants an owner's word.
"""

from __future__ import annotations

import asyncio

from frostagent.types.tools import tool


@tool(side_effects="read")
async def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word}: found"


@tool(side_effects="read")
async def take_time(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return f"that took {seconds:g} s"


@tool(timeout=600)
async def hang() -> str:
    """Never comes back."""
    await asyncio.sleep(10**9)
    return "it came back"


@tool(permission="require_approval", side_effects="external")
async def wipe_disk(disk: str) -> str:
    """Wipes a disk."""
    return f"{disk} is wiped"


@tool(side_effects="external")
async def post(words: str) -> str:
    """Tells the whole world."""
    return f"posted: {words}"


@tool(side_effects="read", trusted_result=True)
async def count_beans() -> str:
    """Counts our own beans."""
    return "7 beans"


@tool(audience="owner", side_effects="read")
async def open_safe() -> str:
    """Opens the safe."""
    return "the safe is open"
