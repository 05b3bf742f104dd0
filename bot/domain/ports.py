"""Deprecated: import ports of the engine (`Clock`, `Speaker` ...) from `frostagent.types.ports`,
the others (`Web` ...) from `bot.core.ports`.
"""

from bot.core.ports import *  # noqa: F403  # all names, as they were here
from bot.domain import renamed
from frostagent.types.ports import *  # noqa: F403  # all names, as they were here

renamed("bot.domain.ports", "bot.core.ports, or frostagent.types.ports")
