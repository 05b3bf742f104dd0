"""Who may do what: authority comes from user ids in the settings, never from what somebody says."""

from __future__ import annotations

from bot.domain.events import Conversation
from bot.domain.run import Asker


def may_write_to(asker: Asker, *, active: Conversation, target: Conversation) -> bool:
    """Whether a run asked for by `asker` in `active` may say something in `target`.

    Only an owner reaches another conversation, and only from the same account.
    """
    return target == active or (asker.is_owner and target.platform_id == active.platform_id)
