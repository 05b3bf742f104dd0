"""Who may use a command: QQ numbers and roles say that, never words. Pure."""

from __future__ import annotations

from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.domain.traits import Audience


def may_use(asker: Asker, audience: Audience, *, where: Conversation) -> bool:
    """Whether somebody may use what is for this audience there; in private everybody is his own
    admin.
    """
    match audience:
        case Audience.EVERYONE:
            return True
        case Audience.GROUP_ADMIN:
            return asker.is_owner or not where.is_group or asker.role in {"owner", "admin"}
        case Audience.OWNER:
            return asker.is_owner
