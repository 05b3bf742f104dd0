"""Asks a connected OneBot server what it is and whether QQ is logged in, and, on demand, to send a
picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.peers import Peer
from adapters.onebot.protocol import ActionReply, read_groups
from bot.cli.doctor.checks import LOG_IN, Check, warn, well, wrong
from bot.cli.doctor.chinese import sentence
from bot.cli.doctor.limits import judge_groups
from bot.cli.doctor.picture import check_picture
from bot.domain.errors import ActionUnanswered, TransportError
from config.settings import Settings

ANSWERED_WITHIN = 3.0  # seconds
SENT_WITHIN = 18.0  # seconds; NapCat waits 10 s for QQ before it answers a send (onebot.md 6.15)
QUESTIONS = ("get_version_info", "get_status", "get_login_info")
A_SERVER = sentence("a OneBot server")
RESTART = "Restart the OneBot server"


class Interview:
    """One conversation with one server. What it brings is in `told`, also where the server hangs up
    in the middle.
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
        self.told += judge_groups(settings, groups.result())
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
