"""Tools with effects that are seen outside: what rings is a line in the ledger beside the file this is copied to."""

from __future__ import annotations

from pathlib import Path

from frostagent.types.tools import tool

LEDGER = Path(__file__).with_name("ledger")


def write_down(what: str) -> str:
    """One line more; it is there when this returns, whatever dies then."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{what}\n")
    return "done"


@tool(side_effects="external", trusted_result=True)
async def ring_bell(token: str) -> str:
    """Ring the bell.

    Args:
        token: For which question.
    """
    return write_down(f"ring {token}")


@tool(trusted_result=True)
async def strike_gong(token: str) -> str:
    """Strike the gong; it does not say what it does to the world.

    Args:
        token: For which question.
    """
    return write_down(f"strike {token}")
