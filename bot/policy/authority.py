"""Whose words a question is made of, and how much authority is left to it. Pure.

A run has the least authority of everyone whose words are in its prompt: who asks, who is quoted or
forwarded, who made the card that is shared; who was overheard since the last run, who spoke in an
earlier round, who is mentioned by a name he chose; and of what tools bring, from then on. Words
alone give none; it comes from user ids (owners) and from QQ (a group's admins).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from bot.domain.chat import Message, ToolMessage
from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.run import Asker
from bot.domain.segments import Card, File, Link, Markdown, Mention, Transfer
from bot.domain.traits import Audience

MAX_VOICES = 5  # people who are named to whoever is asked about a call
RANKS = (Audience.EVERYONE, Audience.GROUP_ADMIN, Audience.OWNER)


def reaches(authority: Audience, audience: Audience) -> bool:
    """Whether this authority is enough for what is for that audience."""
    return RANKS.index(authority) >= RANKS.index(audience)


def least(authorities: Iterable[Audience]) -> Audience:
    """The lowest of them; where there are none, nothing is in the way."""
    return min(authorities, key=RANKS.index, default=Audience.OWNER)


def authority_of(sender: Sender, *, where: Conversation, owners: Collection[int]) -> Audience:
    """The authority of somebody who asks for something himself, there."""
    if sender.user_id in owners:
        return Audience.OWNER
    is_admin = where.is_group and sender.role in {"owner", "admin"}
    return Audience.GROUP_ADMIN if is_admin else Audience.EVERYONE


def acts_as_owner(asker: Asker) -> bool:
    """Whether a run begins with an owner's whole authority. Nothing that others chose may be in its
    prompt then, such as the group's name, which its admins set.
    """
    left = least((asker.authority, asker.overheard))
    return asker.is_owner and left is Audience.OWNER


def highest(where: Conversation, owners: Collection[int]) -> Audience:
    """The most authority that anybody can have there."""
    if where.is_group:
        return Audience.OWNER if owners else Audience.GROUP_ADMIN
    return Audience.OWNER if where.session_id in owners else Audience.EVERYONE


def lowered(asker: Asker, before: Iterable[Message], results: Iterable[Message]) -> Asker:
    """The asker with no more authority than the results of his run have; it is known which tools
    brought words from outside, in rounds before it, too.
    """
    told = [one for one in results if isinstance(one, ToolMessage)]
    authority = least((asker.authority, *(one.authority for one in told)))
    read = tuple(dict.fromkeys((*asker.read, *outside((*before, *told)))))
    if authority is asker.authority and read == asker.read:
        return asker
    return replace(asker, authority=authority, read=read)


def outside(messages: Iterable[Message]) -> Iterator[str]:
    """The tools that brought words from outside into these messages."""
    return (one.name for one in messages if isinstance(one, ToolMessage) and one.tainted)


def nobody() -> Collection[int]:
    """Nobody: there is no earlier round."""
    return ()


def asker_of(
    message: MessageReceived,
    *,
    owners: Collection[int],
    lines: Sequence[MessageReceived] = (),
    quoted: MessageReceived | None = None,
    forwarded: Sequence[object] = (),
    overheard: Sequence[MessageReceived] = (),
    earlier: Callable[[], Collection[int]] = nobody,
) -> Asker:
    """Who asks, and what is left of his authority beside the words of others in his prompt.

    Who wrote inside a merged forward or a card is what its maker says: anybody can make one in
    anybody's name. `lines` are his own beside the message. The bot's own words are nobody's:
    quoting it is how people answer it. `earlier` gives the numbers of those who spoke in earlier
    rounds, 0 for whom nobody knows; it is asked only where there is authority to be lost.
    """
    where, sender = message.conversation, message.sender
    asker = Asker(sender.user_id, sender.name, sender.role, is_owner=sender.user_id in owners)
    if authority_of(sender, where=where, owners=owners) is Audience.EVERYONE:
        return asker
    said = (message, *lines, quoted) if quoted is not None else (message, *lines)
    shared = any(
        isinstance(segment, Card | Link | Markdown) for one in said for segment in one.segments
    )
    passed_on = [Audience.EVERYONE] if forwarded or shared else []
    if quoted is not None and not quoted.is_own:
        passed_on.append(authority_of(quoted.sender, where=where, owners=owners))
    overheard = [one for one in overheard if not one.is_own]
    around = [authority_of(one.sender, where=where, owners=owners) for one in overheard]
    named = {user_id for one in (*said, *overheard) for user_id in _named(one)} | set(earlier())
    known = {sender.user_id, message.self_id, *owners}
    around += [Audience.EVERYONE] if named - known else []
    others = (*((quoted,) if quoted is not None else ()), *overheard)
    senders = {one.sender.user_id: one.sender for one in others}
    voices = [_account(sender) for user_id, sender in senders.items() if user_id not in known]
    voices += map(str, sorted(named - known - {0} - senders.keys()))
    return replace(
        asker,
        authority=least(passed_on),
        overheard=least(around),
        voices=tuple(voices[:MAX_VOICES]),
    )


def _account(sender: Sender) -> str:
    return f"{sender.name}({sender.user_id})"


def _named(message: MessageReceived) -> Iterator[int]:
    """Whose names are in a message beside its sender's; 0 for what somebody else may have named."""
    for segment in message.segments:
        match segment:
            case Mention(user_id=user_id, name=name) if name.strip() not in {"", str(user_id)}:
                yield user_id
            case Card() | Link() | Markdown() | File() | Transfer():
                yield 0
            case _:
                pass
