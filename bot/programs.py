"""Deprecated: import from `frostagent`."""

from bot.domain import renamed
from frostagent import command_tool

renamed("bot.programs", "frostagent")

__all__ = ["command_tool"]
