"""Who may do what: authority comes from user ids in the settings, never from what somebody says."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.domain.traits import Audience, Permission
from bot.policy.authority import reaches


def may_write_to(asker: Asker, *, active: Conversation, target: Conversation) -> bool:
    """Whether a run asked for by `asker` in `active` may say something in `target`; elsewhere, once
    that is allowed.

    Only an owner reaches another conversation, only from the same account, and only in his own
    words: not where he passes on those of others. What was overheard keeps him from nothing, for he
    reads what is to be said before it is.
    """
    alone = asker.is_owner and asker.authority is Audience.OWNER
    return target == active or (alone and target.platform_id == active.platform_id)


def may_mention_all(asker: Asker, *, where: Conversation) -> bool:
    """Whether a run asked for by `asker` may mention everybody there: for the group's admins and
    for owners.
    """
    return where.is_group and may_call(asker, Audience.GROUP_ADMIN, where=where)


def may_call(asker: Asker, audience: Audience, *, where: Conversation) -> bool:
    """Whether the asker, and everyone whose words he passes on, is one of those that a tool is for.

    Admins are so in their group only.
    """
    if not reaches(asker.authority, audience):
        return False
    match audience:
        case Audience.EVERYONE:
            return True
        case Audience.GROUP_ADMIN:
            return asker.is_owner or (where.is_group and asker.role in {"owner", "admin"})
        case Audience.OWNER:
            return asker.is_owner


def must_be_confirmed(asker: Asker, audience: Audience, *, goes_beyond: bool = False) -> bool:
    """Whether others were overheard before the question that such a tool is not for, or a tool
    brought words from outside and this one is not for everybody, or `goes_beyond` the
    conversation: an owner must allow the call.

    Nobody can help what others say, so it is not refused as it is where the asker himself passes
    their words on.
    """
    if asker.read and (goes_beyond or audience is not Audience.EVERYONE):
        return True
    return not reaches(asker.overheard, audience)


@dataclass(frozen=True, slots=True)
class Overrides:
    """The operator's word on tools, by name: never to be run, only to be run when somebody allows
    it. Deny wins.
    """

    deny: frozenset[str] = frozenset()
    approve: frozenset[str] = frozenset()

    def permission(self, name: str, declared: Permission) -> Permission:
        """The permission that counts: the operator's word, else what the tool declares."""
        if name in self.deny:
            return Permission.DENY
        return Permission.REQUIRE_APPROVAL if name in self.approve else declared
