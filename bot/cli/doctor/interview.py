"""Asks a connected OneBot server for its name and version and whether QQ is logged in. On demand it
sends a picture as base64, which is how pictures reach a server that cannot see the bot's files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from adapters.onebot.accounts import Peer
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.protocol import ActionReply, read_groups, read_message_id
from bot.cli.checks import LOG_IN, Check, failure, ok, warning
from bot.cli.doctor.configuration import check_groups
from bot.core.errors import ActionUnanswered, NotConnected, TransportError
from bot.core.language import CATALOGUE, Bilingual, Phrase
from config.settings import Settings

Ask: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[ActionReply]]
"""Calls an action of the server by its name on the wire. Raises TransportError."""

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwAQMAAABtzGvEAAAABlBMVEXq9P8vb7UbdkDxAAAAc0lEQVR42o3Pyw2A"
    "IBAE0EESuBhsgCI8crQUSqAESqMUSrADhXX83djLSwj7GWC8JmBrWKA2NFA6WXVU0fkF1UpHNEJywjoLwQs+fHFJ"
    "MFGwVdB98nK02m/4+HxhA9v/M7mIa3kET7oO/F/NKAzGmAw9WidN/SCJkVpb7QAAAABJRU5ErkJggg=="
)
"""A snowflake: PNG, 48 x 48 pixels, 190 bytes."""

WORDS = "FrostAgent doctor: 测试图片 a test picture"

STRANGER = ("无法获取用户信息", "好友", "friend")
"""Parts of the errors of servers when the account may not write to a person."""

NOT_KEPT = ("识别URL失败", "文件下载失败", "ENOSPC", "EACCES", "EROFS", "ENOENT")
"""Parts of NapCat's errors when it could not read a file (onebot.md 2)."""

BEFRIEND = Phrase(
    "让双方在 QQ 上加为好友，或者在 BOT_OWNERS 里写一个已是好友的主人",
    "Make them friends on QQ, or name an owner in BOT_OWNERS who is one",
)
MAKE_ROOM = Phrase(
    "看看 OneBot 服务的磁盘有没有空间、挂载能不能写，并把它升级；"
    "如果它在另一台机器上，请保持 MEDIA_SEND=base64：它看不到机器人的文件",
    "Check that the OneBot server's disk has space and its volumes can be written, and update"
    " it; if it runs on another machine, keep MEDIA_SEND=base64: it cannot see the bot's"
    " files",
)
LOOK = Phrase(
    "到那个聊天里看一眼。如果没有收到，就是风控拦下了图片："
    "让真人在常用的地方用这个账号几天，并调低 BOT_SEND_RATE",
    "Look at that chat. If nothing arrived, risk control holds pictures back: use the account"
    " by hand for some days, from a place QQ knows, and lower BOT_SEND_RATE",
)
READ_ITS_LOG = Phrase(
    "看看 OneBot 服务的日志，以及它支不支持 base64 图片（新版都支持）",
    "Check the OneBot server's log, and whether it accepts base64 pictures at all: newer ones do",
)


REFUSED: Final = Phrase(
    "没能发给 {whom}（{code}：{why}）", "could not be sent to {whom} ({code}: {why})"
)
HUNG_UP: Final = Phrase(
    "发不出去：OneBot 服务挂断了", "could not be sent: the OneBot server closed the connection"
)
UNCONFIRMED: Final = Phrase(
    "发给了 {whom}，但 OneBot 服务没说到没到",
    "was sent to {whom}, but the OneBot server does not say whether it arrived",
)
TAKEN_AS_BASE64: Final = Phrase(
    "以 base64 交给 OneBot 服务，发给了 {whom}", "was accepted as base64 and sent to {whom}"
)
PICTURE_DROPPED: Final = Phrase(
    "图片丢了：{whom} 只收到旁边的文字", "was dropped: only the text beside it was sent to {whom}"
)
FOUND_AGAIN: Final = Phrase("{sent}；get_image 找得到", "{sent}; get_image finds it")
NO_REASON: Final = Phrase("没说原因", "no reason given")
SENT_UNCONFIRMED: Final = Phrase(
    "发给了 {whom}，但 QQ 没有及时确认", "was sent to {whom}, but QQ did not confirm it in time"
)
SILENT_AT_PLACE: Final = Phrase(
    "{place} 接受了连接，但什么也不答复", "{place} accepts the connection but answers nothing"
)
TAKES_TOKEN: Final = Phrase(
    "{server}（{place}）认我们的令牌", "{server} at {place} accepts our token"
)
ACCOUNT_ONLINE: Final = Phrase("账号 {account} 在线", "account {account} is online")
ACCOUNT_OFFLINE: Final = Phrase("账号 {account} 不在线", "account {account} is offline")
OFFLINE: Final = Phrase("账号不在线", "the account is offline")
NO_LOGIN_INFO: Final = Phrase(
    "{place} 没说登录的是谁、在不在线",
    "{place} does not say which account is logged in, or whether it is online",
)
UNSENT_OFFLINE: Final = Phrase("没有发送：账号不在线", "was not sent: the account is offline")
UNSENT_NO_OWNER: Final = Phrase("没有发送：不知道发给谁", "was not sent: there is no recipient")
NAME_OWNER: Final = Phrase("在 BOT_OWNERS 里写上主人的 QQ 号", "Name an owner in BOT_OWNERS")


async def check_picture(ask: Ask, *, account: int, owners: Collection[int]) -> Check:
    """Send a picture to an owner, or to the account itself, and check whether it was accepted."""
    to = min(owners, default=account)
    whom = Bilingual("the account itself", "账号自己") if to == account else str(to)
    message = [
        {"type": "text", "data": {"text": WORDS}},
        {"type": "image", "data": {"file": f"base64://{PICTURE}"}},
    ]
    try:
        reply = await ask("send_private_msg", {"user_id": to, "message": message})
    except NotConnected:
        return failure(
            "picture",
            HUNG_UP,
            READ_ITS_LOG,
        )
    except ActionUnanswered:
        return warning(
            "picture",
            UNCONFIRMED,
            LOOK,
            whom=whom,
        )
    if reply.ok:
        return await _find(ask, read_message_id(reply.data), whom)
    return _refused(reply, whom)


async def _find(ask: Ask, message_id: str, whom: str) -> Check:
    """Whether the picture is in the message and the server still has it."""
    sent = ok(
        "picture",
        TAKEN_AS_BASE64,
        whom=whom,
    )
    message = await _fields(ask, "get_msg", {"message_id": message_id})
    match message.get("message"):
        case list(segments):
            pictures = [
                segment.get("data") or {} for segment in segments if segment.get("type") == "image"
            ]
        case _:
            return sent  # the server does not show what it sent
    if not pictures:
        return failure(
            "picture",
            PICTURE_DROPPED,
            READ_ITS_LOG,
            whom=whom,
        )
    found = await _fields(ask, "get_image", {"file": pictures[0].get("file", "")})
    return ok("picture", FOUND_AGAIN, sent=sent.said) if found else sent


def _refused(reply: ActionReply, whom: str) -> Check:
    said = REFUSED.fill(whom=whom, code=reply.retcode, why=reply.wording[:160] or NO_REASON)
    if reply.may_be_done("send_msg"):
        return warning(
            "picture",
            SENT_UNCONFIRMED,
            LOOK,
            whom=whom,
        )
    if any(words in reply.wording for words in STRANGER):
        return warning("picture", said, BEFRIEND)
    return failure(
        "picture",
        said,
        MAKE_ROOM if any(words in reply.wording for words in NOT_KEPT) else READ_ITS_LOG,
    )


async def _fields(ask: Ask, action: str, params: Mapping[str, object]) -> dict[str, Any]:
    """The fields of an answer; empty if the server gives none."""
    try:
        reply = await ask(action, params)
    except TransportError:
        return {}
    return reply.data if reply.ok and isinstance(reply.data, dict) else {}


ANSWERED_WITHIN = 3.0  # seconds
SENT_WITHIN = 18.0  # seconds; NapCat waits 10 s for QQ before it answers a send (onebot.md 6.15)
QUESTIONS = ("get_version_info", "get_status", "get_login_info")
A_SERVER = Bilingual("a OneBot server", "某个 OneBot 服务")
RESTART = Phrase("重启 OneBot 服务", "Restart the OneBot server")
CATALOGUE.register(__name__, globals())


class Interview:
    """One interview of one server. Its results are in `told`, even if the server disconnects
    half-way.
    """

    def __init__(self, peer: Peer, calls: OneBotCalls, *, place: str) -> None:
        """`place` is the server's address for messages; the deadline of `calls` must be SENT_WITHIN
        or more.
        """
        self._peer = peer
        self._calls = calls
        self._place = place
        self.told: list[Check] = []

    async def hold(self, settings: Settings, *, send_image: bool = False) -> None:
        """Ask everything concurrently, within one deadline; then send the picture if possible."""
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._fields(question)) for question in QUESTIONS]
            groups = group.create_task(self._groups())
        version, status, login = (task.result() for task in asked)
        if version is status is login is None:
            self.told.append(
                failure(
                    "onebot",
                    SILENT_AT_PLACE,
                    RESTART,
                    place=self._place,
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
        self.told.append(
            ok(
                "onebot",
                TAKES_TOKEN,
                server=name,
                place=self._place,
            )
        )
        account = login.get("user_id")
        match status.get("online"):
            case True if account:
                self.told.append(
                    ok(
                        "account",
                        ACCOUNT_ONLINE,
                        account=account,
                    )
                )
            case False if account:
                self.told.append(
                    failure(
                        "account",
                        ACCOUNT_OFFLINE,
                        LOG_IN,
                        account=account,
                    )
                )
            case False:
                self.told.append(failure("account", OFFLINE, LOG_IN))
            case _:
                self.told.append(
                    warning(
                        "account",
                        NO_LOGIN_INFO,
                        LOG_IN,
                        place=self._place,
                    )
                )

    async def _send_image(self, online: object, account: object, owners: Collection[int]) -> None:
        if online is False:
            self.told.append(
                warning(
                    "picture",
                    UNSENT_OFFLINE,
                    LOG_IN,
                )
            )
            return
        number = int(account) if isinstance(account, int | str) and str(account).isdecimal() else 0
        if not (number or owners):
            self.told.append(
                warning(
                    "picture",
                    UNSENT_NO_OWNER,
                    NAME_OWNER,
                )
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
        """The account's groups with their number of members; empty without an answer."""
        try:
            reply = await self._ask("get_group_list", {})
        except TransportError:
            return []
        groups = read_groups(reply.data if reply.ok else None, account=0)
        return [(group.conversation.session_id, group.people) for group in groups]

    async def _fields(self, question: str) -> dict[str, Any] | None:
        """The fields of an answer, empty for a refusal; None without an answer."""
        try:
            reply = await self._ask(question, {})
        except TransportError:
            return None
        return reply.data if reply.ok and isinstance(reply.data, dict) else {}
