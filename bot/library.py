"""Deprecated: import from `frostagent`."""

from bot.domain import renamed
from frostagent import *  # noqa: F403  # all names, as they were here
from frostagent import __all__ as __all__  # noqa: PLC0414  # exported, too

renamed("bot.library", "frostagent")
