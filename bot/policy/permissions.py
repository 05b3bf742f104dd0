"""Who may do what. Authority comes from user ids in the settings, never from what a message says.
Pure.

A run has the least authority of everyone whose words are in its prompt: the asker, quoted and
forwarded people, the maker of a shared card, people overheard since the last run or in earlier
rounds, people mentioned by a name they chose; and, once they return, of its tools' results. Only
user ids (owners) and QQ (a group's admins) give authority.

A run may speak freely where it was asked. To speak elsewhere, or to mention everyone, it needs
approval; the approver sees text and destination in full, worded by the bot (`confirmation_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.segments import Card, File, Link, Markdown, Mention, SendSegment, Transfer
from frostagent.engine.authority import lowest_authority, may_call
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.runs import Asker
from frostagent.types.speech import Attachment, Face, MentionAll, Quote, Text
from frostagent.types.suspension import Suspend
from frostagent.types.traits import Audience

MAX_VOICES = 5  # people named to the approver of a call


def authority_of(sender: Sender, *, where: Conversation, owners: Collection[int]) -> Audience:
    """The authority of a person who asks there, on their own."""
    if sender.user_id in owners:
        return Audience.OWNER
    is_admin = where.is_group and sender.role in {"owner", "admin"}
    return Audience.GROUP_ADMIN if is_admin else Audience.EVERYONE


def acts_as_owner(asker: Asker) -> bool:
    """Whether a run begins with an owner's full authority. Then nothing chosen by others may be in
    its prompt, not even the group's name, which its admins set.
    """
    left = lowest_authority((asker.authority, asker.overheard))
    return asker.is_owner and left is Audience.OWNER


def highest_authority(where: Conversation, owners: Collection[int]) -> Audience:
    """The highest authority that anyone can have there."""
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
    """Return the asker, with the authority left beside the words of others in the prompt.

    Authors inside a merged forward or card are not trusted: anyone can make one in anyone's name.
    `lines` are the asker's own. The bot's answers do not count: people quote them to reply. What it
    passes on does: news of feeds, reminders, answers to commands.
    `earlier` returns the accounts of earlier rounds, 0 for unknown; it is called only if there is
    authority to lose.
    """
    where, sender = message.conversation, message.sender
    role = sender.role if where.is_group else "unknown"  # an admin is one in the group only
    asker = Asker(str(sender.user_id), sender.name, role, is_owner=sender.user_id in owners)
    if authority_of(sender, where=where, owners=owners) is Audience.EVERYONE:
        return asker
    said = (message, *lines, quoted) if quoted is not None else (message, *lines)
    shared = any(
        isinstance(segment, Card | Link | Markdown) for one in said for segment in one.segments
    )
    passed_on = [Audience.EVERYONE] if forwarded or shared else []
    if message.cap:
        passed_on.append(Audience(message.cap))
    if quoted is not None and quoted.is_own:
        passed_on += _passed_on(quoted)
    elif quoted is not None:
        passed_on.append(authority_of(quoted.sender, where=where, owners=owners))
    relayed = [authority for one in overheard if one.is_own for authority in _passed_on(one)]
    overheard = [one for one in overheard if not one.is_own]
    around = [authority_of(one.sender, where=where, owners=owners) for one in overheard]
    named = {user_id for one in (*said, *overheard) for user_id in _named(one)}
    if earlier is not None:
        named.update(earlier())
    known = {sender.user_id, message.self_id, *owners}
    around += relayed + ([Audience.EVERYONE] if named - known else [])
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


def _passed_on(own: MessageReceived) -> Iterator[Audience]:
    """The authority of those whose words the bot passed on in this message of its own."""
    if own.cap:
        yield Audience(own.cap)


def _account(sender: Sender) -> str:
    return f"{sender.name}({sender.user_id})"


def _named(message: MessageReceived) -> Iterator[int]:
    """The people named in a message besides its sender; 0 for names chosen by anyone."""
    for segment in message.segments:
        match segment:
            case Mention(user_id=user_id, name=name) if name.strip() not in {"", str(user_id)}:
                yield user_id
            case Card() | Link() | Markdown() | File() | Transfer():
                yield 0
            case _:
                pass


def may_write_to(asker: Asker, *, active: Conversation, target: Conversation) -> bool:
    """Whether a run in `active` may speak in `target`, elsewhere once that is approved.

    Only an owner reaches another conversation, from the same account, and only without text of
    others in the request. Overheard messages do not matter, because the owner reads the text before
    it is sent.
    """
    alone = asker.is_owner and asker.authority is Audience.OWNER
    return target == active or (alone and target.platform_id == active.platform_id)


def may_mention_all(asker: Asker, *, where: Conversation) -> bool:
    """Whether the run may mention everyone there: for the group's admins and for owners."""
    return where.is_group and may_call(asker, Audience.GROUP_ADMIN)


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
    language: Language = Language.CHINESE,
) -> None:
    """Check that the run in `active` may send this to `target`; `allowed` means it has been
    approved. `language` is the approver's language.

    Raises InvalidArguments for an invalid target, ToolDenied, and Suspend if approval is needed.
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
        raise Suspend(confirmation_text(said, target, language=language), seconds=WAIT)


def confirmation_text(
    segments: Iterable[SendSegment], target: Conversation, *, language: Language = Language.CHINESE
) -> str:
    """What the approver reads of text and destination: `发到群 4242：words [图片 cat.png]`."""
    line = TO_GROUP if target.is_group else TO_PERSON
    return line.format(
        language,
        place=target.session_id,
        said="".join(_shown(segment, language) for segment in segments),
    )


def _shown(segment: SendSegment, language: Language) -> str:
    match segment:
        case Text(text=text):
            return text
        case Mention(user_id=user_id):
            return f"@{user_id} "
        case MentionAll():
            return TO_ALL.format(language)
        case Quote(message_id=message_id):
            return QUOTING.format(language, id=message_id)
        case Face(id=number):
            return FACE.format(language, id=number)
        case Attachment(kind=kind, source=source, name=name):
            shown = source if source.startswith(("http://", "https://")) else name
            return f"[{MEDIA[kind].format(language)} {shown}]"
        case _:
            assert_never(segment)
