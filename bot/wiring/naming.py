"""How the bot names itself to others."""

from __future__ import annotations

from bot.runtime.version import version
from config.settings import Settings


def user_agent(settings: Settings) -> str:
    """Who asks, and how to reach whoever runs it."""
    return f"FrostAgent/{version()}" + (
        f" (+{settings.tools_contact})" if settings.tools_contact else ""
    )
