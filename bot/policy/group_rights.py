"""Who may have what done to whom in a group: by the roles QQ knows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.events import Role
from bot.domain.group_acts import GroupAct, Mute, Pin, Recall, SetCard

RANKS: dict[Role, int] = {"unknown": 0, "member": 1, "admin": 2, "owner": 3}
NOT_ASKER = "only the group's admins and the bot's owner may have that done. Tell the asker so"
NOT_BOT = "the bot is no admin of this group, so QQ lets it do nothing of that. Say so"
NOT_ABOVE = "the bot's role is not above that person's, so QQ lets it do nothing to him. Say so"
NOT_EQUALS = "the asker's role is not above that person's. Tell the asker so"
NOT_ITSELF = "the bot does not mute itself"


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of the bot, of the asker and of whom it is done to, or whose message it is."""

    bot: Role
    asker: Role
    whose: Role
    is_owner: bool = False  # the asker is one of the bot's
    is_bots: bool = False  # it is done to the bot itself, or to a message of its own
    is_askers: bool = False


def against(act: GroupAct, roles: Roles) -> str:
    """Why it may not be done; empty where it may."""
    bot, asker, whose = (RANKS[role] for role in (roles.bot, roles.asker, roles.whose))
    if not roles.is_owner and asker < RANKS["admin"]:
        return NOT_ASKER
    if isinstance(act, Mute) and roles.is_bots:
        return NOT_ITSELF
    if not roles.is_bots or isinstance(act, Pin):
        if bot < RANKS["admin"]:
            return NOT_BOT
        if isinstance(act, Mute | SetCard | Recall) and whose >= bot:
            return NOT_ABOVE
    lower = whose < asker or roles.is_owner or roles.is_askers or roles.is_bots
    return "" if lower or isinstance(act, Pin) else NOT_EQUALS
