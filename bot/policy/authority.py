"""Whose words a question is made of, and how much authority is left to it. Pure.

A run has the least authority of everyone whose words are in its question: who asks, who is quoted, who is forwarded,
who was overheard since the last run. Words alone give none; it comes from user ids (owners) and from QQ (a group's
admins).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.run import Asker
from bot.domain.traits import Audience

RANKS = (Audience.EVERYONE, Audience.GROUP_ADMIN, Audience.OWNER)


def reaches(authority: Audience, audience: Audience) -> bool:
    """Whether this authority is enough for what is for that audience."""
    return RANKS.index(authority) >= RANKS.index(audience)


def least(authorities: Iterable[Audience]) -> Audience:
    """The lowest of them; where there are none, nothing is in the way."""
    return min(authorities, key=RANKS.index, default=Audience.OWNER)


def authority_of(sender: Sender, *, where: Conversation, owners: Collection[int]) -> Audience:
    """What somebody may have done by himself, there."""
    if sender.user_id in owners:
        return Audience.OWNER
    is_admin = where.is_group and sender.role in {"owner", "admin"}
    return Audience.GROUP_ADMIN if is_admin else Audience.EVERYONE


def asker_of(
    message: MessageReceived,
    *,
    owners: Collection[int],
    quoted: MessageReceived | None = None,
    forwarded: Sequence[MessageReceived] = (),
    overheard: Sequence[MessageReceived] = (),
) -> Asker:
    """Who asks, and what is left of his authority beside the words of others in his question.

    Who wrote inside a merged forward is what its maker says: anybody can make one in anybody's name. The bot's own
    words are nobody's: quoting it is how people answer it.
    """
    where, sender = message.conversation, message.sender
    asker = Asker(sender.user_id, sender.name, sender.role, is_owner=sender.user_id in owners)
    if quoted is None and not forwarded and not overheard:
        return asker
    passed_on = [Audience.EVERYONE] if forwarded else []
    if quoted is not None and not quoted.is_own:
        passed_on.append(authority_of(quoted.sender, where=where, owners=owners))
    around = (authority_of(one.sender, where=where, owners=owners) for one in overheard)
    return replace(asker, authority=least(passed_on), overheard=least(around))
