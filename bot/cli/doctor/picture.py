"""A small picture, sent when it is asked for: base64 is how pictures travel to a server that sees
no file of ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

from adapters.onebot.protocol import ActionReply, read_message_id
from bot.cli.doctor.checks import Check, warn, well, wrong
from bot.cli.doctor.chinese import sentence
from bot.domain.errors import ActionUnanswered, NotConnected, TransportError

Ask: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[ActionReply]]
"""Asks the server something, by the action's name on the wire. Raises TransportError."""

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwAQMAAABtzGvEAAAABlBMVEXq9P8vb7UbdkDxAAAAc0lEQVR42o3Pyw2A"
    "IBAE0EESuBhsgCI8crQUSqAESqMUSrADhXX83djLSwj7GWC8JmBrWKA2NFA6WXVU0fkF1UpHNEJywjoLwQs+fHFJ"
    "MFGwVdB98nK02m/4+HxhA9v/M7mIa3kET7oO/F/NKAzGmAw9WidN/SCJkVpb7QAAAABJRU5ErkJggg=="
)
"""A snowflake of 48 x 48 dots, PNG, 190 bytes."""

WORDS = "FrostAgent doctor: 测试图片 a test picture"

STRANGER = ("无法获取用户信息", "好友", "friend")
"""What servers say where the account may not write to somebody."""

NOT_KEPT = ("识别URL失败", "文件下载失败", "ENOSPC", "EACCES", "EROFS", "ENOENT")
"""What NapCat says where it could not take a file (onebot.md 2)."""

BEFRIEND = "Let them be friends on QQ, or name an owner in BOT_OWNERS who is one"
MAKE_ROOM = (
    "See that the OneBot server's disk has room and its volumes can be written, and update it; "
    "where it runs on another machine, leave MEDIA_SEND=base64: it sees no file of the bot"
)
LOOK = (
    "Look into that chat. If nothing is there, risk control holds pictures back: let a person use "
    "the account for some days, from a place QQ knows, and lower BOT_SEND_RATE"
)
READ_ITS_LOG = (
    "See what the OneBot server's log says, and whether it takes base64 pictures at all: newer "
    "ones do"
)


async def check_picture(ask: Ask, *, account: int, owners: Collection[int]) -> Check:
    """Send a picture to an owner, else to the account itself; whether it was taken."""
    to = min(owners, default=account)
    whom = sentence("the account itself") if to == account else str(to)
    message = [
        {"type": "text", "data": {"text": WORDS}},
        {"type": "image", "data": {"file": f"base64://{PICTURE}"}},
    ]
    try:
        reply = await ask("send_private_msg", {"user_id": to, "message": message})
    except NotConnected:
        return wrong("picture", "could not be sent: the OneBot server hung up", READ_ITS_LOG)
    except ActionUnanswered:
        return warn(
            "picture",
            sentence("was sent to {}, but the OneBot server does not say whether it arrived", whom),
            LOOK,
        )
    if reply.ok:
        return await _find(ask, read_message_id(reply.data), whom)
    return _refused(reply, whom)


async def _find(ask: Ask, message_id: str, whom: str) -> Check:
    """Whether the picture is in the message, and whether the server still has it."""
    sent = well("picture", sentence("was taken as base64 and sent to {}", whom))
    message = await _fields(ask, "get_msg", {"message_id": message_id})
    match message.get("message"):
        case list(segments):
            pictures = [
                segment.get("data") or {} for segment in segments if segment.get("type") == "image"
            ]
        case _:
            return sent  # the server does not show what it sent
    if not pictures:
        return wrong(
            "picture",
            sentence("was dropped: only the words beside it were sent to {}", whom),
            READ_ITS_LOG,
        )
    found = await _fields(ask, "get_image", {"file": pictures[0].get("file", "")})
    return well("picture", sentence("{}; get_image finds it", sent.said)) if found else sent


def _refused(reply: ActionReply, whom: str) -> Check:
    said = sentence(
        "could not be sent to {} ({}: {})",
        whom,
        reply.retcode,
        reply.wording[:160] or sentence("no reason given"),
    )
    if reply.may_be_done("send_msg"):
        return warn(
            "picture", sentence("was sent to {}, but QQ did not confirm it in time", whom), LOOK
        )
    if any(words in reply.wording for words in STRANGER):
        return warn("picture", said, BEFRIEND)
    return wrong(
        "picture",
        said,
        MAKE_ROOM if any(words in reply.wording for words in NOT_KEPT) else READ_ITS_LOG,
    )


async def _fields(ask: Ask, action: str, params: Mapping[str, object]) -> dict[str, Any]:
    """The fields of an answer; none where there is no such answer."""
    try:
        reply = await ask(action, params)
    except TransportError:
        return {}
    return reply.data if reply.ok and isinstance(reply.data, dict) else {}
