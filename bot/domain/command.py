"""Deprecated: import from `bot.core.command`."""

from bot.core.command import *  # noqa: F403  # all names, as they were here
from bot.domain import renamed

renamed("bot.domain.command", "bot.core.command")
