"""The language in which owners are told, from the settings."""

from __future__ import annotations

from bot.domain.tongue import Tongue
from config.settings import Settings


def owners_tongue(settings: Settings) -> Tongue:
    """English where BOT_LANGUAGE says so."""
    return Tongue.ENGLISH if settings.bot_language == "en" else Tongue.CHINESE
