"""Who may do what: authority comes from user ids in the settings, never from what somebody says.
Pure.

A run has the least authority of everyone whose words are in its prompt: who asks, who is quoted or
forwarded, who made the card that is shared; who was overheard since the last run, who spoke in an
earlier round, who is mentioned by a name they chose; and of what tools bring, from then on. Words
alone give none; it comes from user ids (owners) and from QQ (a group's admins).

A run may speak freely where it was asked. Elsewhere, or to everybody, it needs approval, and the
approver is shown what is said and where, in full, in words of ours (`confirmation_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace

from bot.core.events import MessageReceived, Sender
from bot.core.language import CATALOGUE
from bot.core.segments import Card, File, Link, Markdown, Transfer
from frostagent.engine.authority import lowest_authority, may_call
from frostagent.text.language import Language, Phrase
from frostagent.types.conversation import Conversation
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.runs import Asker
from frostagent.types.speech import Attachment, Face, Mention, MentionAll, Quote, SendSegment, Text
from frostagent.types.suspension import Suspend
from frostagent.types.traits import Audience

MAX_VOICES = 5  # people who are named to whoever is asked about a call


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
    left = lowest_authority((asker.authority, asker.overheard))
    return asker.is_owner and left is Audience.OWNER


def highest_authority(where: Conversation, owners: Collection[int]) -> Audience:
    """The most authority that anybody can have there."""
    if where.is_group:
        return Audience.OWNER if owners else Audience.GROUP_ADMIN
    return Audience.OWNER if where.session_id in owners else Audience.EVERYONE


def asker_of(
    message: MessageReceived,
    *,
    owners: Collection[int],
    lines: Sequence[MessageReceived] = (),
    quoted: MessageReceived | None = None,
    forwarded: Sequence[object] = (),
    overheard: Sequence[MessageReceived] = (),
    earlier: Callable[[], Collection[int]] | None = None,
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
    if message.cap:
        passed_on.append(Audience(message.cap))
    if quoted is not None and not quoted.is_own:
        passed_on.append(authority_of(quoted.sender, where=where, owners=owners))
    overheard = [one for one in overheard if not one.is_own]
    around = [authority_of(one.sender, where=where, owners=owners) for one in overheard]
    named = {user_id for one in (*said, *overheard) for user_id in _named(one)}
    if earlier is not None:
        named.update(earlier())
    known = {sender.user_id, message.self_id, *owners}
    around += [Audience.EVERYONE] if named - known else []
    others = (*((quoted,) if quoted is not None else ()), *overheard)
    senders = {one.sender.user_id: one.sender for one in others}
    voices = [_account(sender) for user_id, sender in senders.items() if user_id not in known]
    voices += map(str, sorted(named - known - {0} - senders.keys()))
    return replace(
        asker,
        authority=lowest_authority(passed_on),
        overheard=lowest_authority(around),
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


WAIT = 600.0  # seconds an owner has to answer

MEDIA = {
    "image": Phrase("图片", "picture"),
    "record": Phrase("语音", "voice"),
    "video": Phrase("视频", "video"),
    "file": Phrase("文件", "file"),
}
TO_GROUP = Phrase("发到群 {place}：{said}", "Say in group {place}: {said}")
TO_PERSON = Phrase("发到私聊 {place}：{said}", "Say to {place} in private: {said}")
TO_ALL = Phrase("@全体成员 ", "@all ")
QUOTING = Phrase("[引用 {id}]", "[quote {id}]")
FACE = Phrase("[表情 {id}]", "[face {id}]")
CATALOGUE.register(__name__, globals())
NOT_THERE = (
    "only the bot's owner may have messages sent to other chats, and only in his own words alone; "
    "leave session out to speak here"
)
NOT_ALL = (
    "only the bot's owner and the admins of this group may have everybody mentioned (@all), in "
    "their own words"
)


def check_reach(
    asker: Asker,
    segments: Iterable[SendSegment],
    *,
    active: Conversation,
    target: Conversation,
    allowed: bool,
    tongue: Language = Language.CHINESE,
) -> None:
    """Let it be said there, or not: by the run of `asker` in `active`, which may be `allowed` to.
    Whoever is asked about it reads Chinese, or English.

    Raises InvalidArguments for a place that is none, ToolDenied, and Suspend where somebody must
    allow it first.
    """
    if target.session_id <= 0 and target != active:
        raise InvalidArguments(f"session: there is no {target.message_type} {target.session_id}")
    said = tuple(segments)
    to_all = any(isinstance(segment, MentionAll) for segment in said)
    if not may_write_to(asker, active=active, target=target):
        raise ToolDenied(NOT_THERE)
    if to_all and not may_mention_all(asker, where=target):
        raise ToolDenied(NOT_ALL)
    if (to_all or target != active) and not allowed:
        raise Suspend(confirmation_text(said, target, tongue=tongue), seconds=WAIT)


def confirmation_text(
    segments: Iterable[SendSegment], target: Conversation, *, tongue: Language = Language.CHINESE
) -> str:
    """The text that shows people what is to be said where: `发到群 4242：words [图片 cat.png]`."""
    line = TO_GROUP if target.is_group else TO_PERSON
    return line.format(
        tongue,
        place=target.session_id,
        said="".join(_shown(segment, tongue) for segment in segments),
    )


def _shown(segment: SendSegment, tongue: Language) -> str:
    match segment:
        case Text(text=text):
            return text
        case Mention(user_id=user_id):
            return f"@{user_id} "
        case MentionAll():
            return TO_ALL.format(tongue)
        case Quote(message_id=message_id):
            return QUOTING.format(tongue, id=message_id)
        case Face(id=number):
            return FACE.format(tongue, id=number)
        case Attachment(kind=kind, source=source, name=name):
            shown = source if source.startswith(("http://", "https://")) else name
            return f"[{MEDIA[kind].format(tongue)} {shown}]"
        case _:
            assert_never(segment)
