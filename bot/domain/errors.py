"""Deprecated: import the errors of tools and models from `frostagent`, those of QQ from
`bot.core.errors`.
"""

from bot.core.errors import *  # noqa: F403  # all names, as they were here
from bot.domain import renamed
from frostagent.types.errors import *  # noqa: F403  # all names, as they were here

renamed("bot.domain.errors", "frostagent")
