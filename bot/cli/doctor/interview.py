"""Asks a connected OneBot server what it is and whether QQ is logged in, and, on demand, to send a
picture: base64 is how pictures travel to a server that sees no file of the bot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.peers import Peer
from adapters.onebot.protocol import ActionReply, read_groups, read_message_id
from bot.cli.doctor.checks import LOG_IN, Check, warn, well, wrong
from bot.cli.doctor.chinese import sentence
from bot.cli.doctor.configuration import check_groups
from bot.domain.errors import ActionUnanswered, NotConnected, TransportError
from config.settings import Settings

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
"""What servers say if the account may not write to a person."""

NOT_KEPT = ("识别URL失败", "文件下载失败", "ENOSPC", "EACCES", "EROFS", "ENOENT")
"""What NapCat says if it could not take a file (onebot.md 2)."""

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
    """The fields of an answer; empty if there is no such answer."""
    try:
        reply = await ask(action, params)
    except TransportError:
        return {}
    return reply.data if reply.ok and isinstance(reply.data, dict) else {}


ANSWERED_WITHIN = 3.0  # seconds
SENT_WITHIN = 18.0  # seconds; NapCat waits 10 s for QQ before it answers a send (onebot.md 6.15)
QUESTIONS = ("get_version_info", "get_status", "get_login_info")
A_SERVER = sentence("a OneBot server")
RESTART = "Restart the OneBot server"


class Interview:
    """One conversation with one server. Its results are in `told`, even if the server hangs up in
    the middle.
    """

    def __init__(self, peer: Peer, calls: OneBotCalls, *, place: str) -> None:
        """`place` is where the server is, for the words; the deadline of `calls` must be
        SENT_WITHIN or more.
        """
        self._peer = peer
        self._calls = calls
        self._place = place
        self.told: list[Check] = []

    async def hold(self, settings: Settings, *, send_image: bool = False) -> None:
        """Ask everything at once, so that all of it takes one deadline; then send the picture,
        where it can be.
        """
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._fields(question)) for question in QUESTIONS]
            groups = group.create_task(self._groups())
        version, status, login = (task.result() for task in asked)
        if version is status is login is None:
            self.told.append(
                wrong(
                    "onebot",
                    sentence("{} takes the connection but answers nothing", self._place),
                    RESTART,
                )
            )
            return
        self._judge(version or {}, status or {}, login or {})
        self.told += check_groups(settings, groups.result())
        if send_image:
            await self._send_image(
                (status or {}).get("online"), (login or {}).get("user_id"), settings.bot_owners
            )

    def _judge(
        self, version: dict[str, Any], status: dict[str, Any], login: dict[str, Any]
    ) -> None:
        app, number = version.get("app_name"), version.get("app_version")
        name = f"{app} {number or ''}".strip() if app else A_SERVER
        self.told.append(well("onebot", sentence("{} at {} takes our token", name, self._place)))
        account = login.get("user_id")
        match status.get("online"):
            case True if account:
                said = sentence("account {} is online", account)
                self.told.append(well("account", said))
            case False if account:
                said = sentence("account {} is offline", account)
                self.told.append(wrong("account", said, LOG_IN))
            case False:
                self.told.append(wrong("account", "the account is offline", LOG_IN))
            case _:
                said = sentence(
                    "{} does not say who is logged in, and whether it is online", self._place
                )
                self.told.append(warn("account", said, LOG_IN))

    async def _send_image(self, online: object, account: object, owners: Collection[int]) -> None:
        if online is False:
            self.told.append(warn("picture", "was not sent: the account is offline", LOG_IN))
            return
        number = int(account) if isinstance(account, int | str) and str(account).isdecimal() else 0
        if not (number or owners):
            self.told.append(
                warn("picture", "was not sent: nobody knows to whom", "Name an owner in BOT_OWNERS")
            )
            return
        self.told.append(await check_picture(self._ask, account=number, owners=owners))

    async def _ask(self, action: str, params: Mapping[str, object]) -> ActionReply:
        seconds = SENT_WITHIN if action.startswith("send_") else ANSWERED_WITHIN
        try:
            async with asyncio.timeout(seconds):
                return await self._calls.make(self._peer, action, params)
        except TimeoutError:
            raise ActionUnanswered(f"{action} was not answered in {seconds:.0f} s") from None

    async def _groups(self) -> list[tuple[int, int]]:
        """The groups the account is in, and how many people are there; none without an answer."""
        try:
            reply = await self._ask("get_group_list", {})
        except TransportError:
            return []
        groups = read_groups(reply.data if reply.ok else None, account=0)
        return [(group.conversation.session_id, group.people) for group in groups]

    async def _fields(self, question: str) -> dict[str, Any] | None:
        """The fields of an answer, none where it is a refusal; None where there is no answer."""
        try:
            reply = await self._ask(question, {})
        except TransportError:
            return None
        return reply.data if reply.ok and isinstance(reply.data, dict) else {}
