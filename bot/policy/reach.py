"""How far what a run says may go: where it was asked freely, elsewhere and to everybody only when
allowed. Pure.

Whoever allows it is shown what is said and where, in full, in words of ours (`asks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from bot.domain.actions import Attachment, SendSegment
from bot.domain.errors import InvalidArguments, ToolDenied
from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.domain.segments import Face, Mention, MentionAll, Quote, Text
from bot.domain.suspension import Suspend
from bot.domain.tongue import Tongue
from bot.policy.permission import may_mention_all, may_write_to

WAIT = 600.0  # seconds an owner has to answer

MEDIA = {
    "image": ("图片", "picture"),
    "record": ("语音", "voice"),
    "video": ("视频", "video"),
    "file": ("文件", "file"),
}
TO_GROUP = ("发到群 {place}：{said}", "Say in group {place}: {said}")
TO_PERSON = ("发到私聊 {place}：{said}", "Say to {place} in private: {said}")
TO_ALL = ("@全体成员 ", "@all ")
QUOTING = ("[引用 {id}]", "[quote {id}]")
FACE = ("[表情 {id}]", "[face {id}]")
NOT_THERE = (
    "only the bot's owner may have messages sent to other chats, and only in his own words alone; "
    "leave session out to speak here"
)
NOT_ALL = (
    "only the bot's owner and the admins of this group may have everybody mentioned (@all), in "
    "their own words"
)


def permit(
    asker: Asker,
    segments: Iterable[SendSegment],
    *,
    active: Conversation,
    target: Conversation,
    allowed: bool,
    tongue: Tongue = Tongue.CHINESE,
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
        raise Suspend(asks(said, target, tongue=tongue), seconds=WAIT)


def asks(
    segments: Iterable[SendSegment], target: Conversation, *, tongue: Tongue = Tongue.CHINESE
) -> str:
    """The text that shows people what is to be said where: `发到群 4242：words [图片 cat.png]`."""
    line = (TO_GROUP if target.is_group else TO_PERSON)[tongue]
    return line.format(
        place=target.session_id, said="".join(_shown(segment, tongue) for segment in segments)
    )


def _shown(segment: SendSegment, tongue: Tongue) -> str:
    match segment:
        case Text(text=text):
            return text
        case Mention(user_id=user_id):
            return f"@{user_id} "
        case MentionAll():
            return TO_ALL[tongue]
        case Quote(message_id=message_id):
            return QUOTING[tongue].format(id=message_id)
        case Face(id=number):
            return FACE[tongue].format(id=number)
        case Attachment(kind=kind, source=source, name=name):
            shown = source if source.startswith(("http://", "https://")) else name
            return f"[{MEDIA[kind][tongue]} {shown}]"
        case _:
            assert_never(segment)
