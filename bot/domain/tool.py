"""Deprecated: import `tool` and its like from `frostagent`."""

from bot.domain import renamed
from frostagent.types.tools import *  # noqa: F403  # all names, as they were here

renamed("bot.domain.tool", "frostagent")
