"""`/forget`: erases everything stored about a person or this group for good."""

from __future__ import annotations

import logging

from bot.core.command import Asked, Command, command
from bot.core.events import read_id
from bot.core.language import CATALOGUE, Phrase
from bot.core.ports import Members
from bot.memory.forgetting import Forgetting
from frostagent.types.errors import BotError

ME = frozenset({"me", "我"})
GROUP = frozenset({"group", "群"})
HOW = Phrase(
    "/忘记 我：删掉关于你的一切。主人还可以：/忘记 #2、/忘记 群",
    "/forget me erases everything stored about you. Owners also: /forget #2, /forget group",
)
NOT_YOURS = Phrase("只有主人能删别人的。", "Only an owner can do that for others.")
NOBODY = Phrase("这里没有这个编号。", "Nobody here has that number.")
DONE = Phrase(
    "删好了：{rows} 条记录。以前的备份里可能还有。",
    "Erased: {rows} records. Older backups may still have them.",
)
FAILED = Phrase("现在删不了，稍后再试。", "It cannot be erased now, try again later.")
CATALOGUE.register(__name__, globals())

WITHIN = 120.0  # seconds: if interrupted, memory would still have what the journal has lost

logger = logging.getLogger(__name__)


def forget_command(forgetting: Forgetting, members: Members) -> Command:
    """Everyone may erase their own data, owners also that of `#2` or of the whole group; any other
    words get a hint.
    """

    async def erase(asked: Asked, user: int | None) -> str:
        try:
            if user is None:
                rows = await forgetting.group(asked.where.session_id, said=asked.said)
            else:
                rows = await forgetting.person(user, said=asked.said)
        except BotError as error:
            logger.warning("nothing could be forgotten: %s", error)
            return FAILED.format(asked.language)
        return DONE.format(asked.language, rows=rows)

    about = ("我：删掉关于你的一切", "me: erase everything about you")

    @command("forget", "忘记", about=about, within=WITHIN, lasts=True)
    async def forget(asked: Asked) -> str:
        # More words probably mean something narrower, and this cannot be undone.
        whom = asked.words[0].casefold() if len(asked.words) == 1 else ""
        if whom in ME:
            return await erase(asked, asked.user_id)
        if not whom.startswith("#") and whom not in GROUP:
            return HOW.format(asked.language)
        if not asked.asker.is_owner:
            return NOT_YOURS.format(asked.language)
        if whom in GROUP:
            return await erase(asked, None) if asked.where.is_group else HOW.format(asked.language)
        number = read_id(whom[1:]) or 0
        user = members.user_id(asked.where, number)
        return NOBODY.format(asked.language) if user is None else await erase(asked, user)

    return forget
