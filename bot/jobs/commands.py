"""`/reminders`: lists and cancels reminders."""

from __future__ import annotations

from bot.core.command import AWAY, NOT_NOW, Asked, Command, command
from bot.core.language import CATALOGUE, Phrase
from bot.jobs.reminders import JobBook
from frostagent.engine.authority import may_call
from frostagent.types.errors import ToolFailed
from frostagent.types.traits import Audience

CANCEL = frozenset({"取消", "删除", "cancel", "delete"})
ALL = frozenset({"all", "全部"})
HOW = Phrase(
    "/提醒：你定的提醒；/提醒 取消 J7；管理员：/提醒 all",
    "/reminders lists yours; /reminders cancel J7; admins: /reminders all",
)
NO_SUCH = Phrase("没有这个提醒，或者不归你管。", "There is no such reminder, or it is not yours.")
NOT_YOURS = Phrase("只有管理员能看所有人的。", "Only admins see everybody's.")
CATALOGUE.register(__name__, globals())


def reminders_command(book: JobBook) -> Command:
    """Lists the asker's reminders in this conversation. Admins can list everyone's there, and
    owners in private those of all conversations.
    """

    async def show(asked: Asked, maker: int) -> str:
        is_everywhere = not (maker or asked.where.is_group)
        account = asked.where.platform_id
        found = (
            await book.everywhere(account)
            if is_everywhere
            else await book.visible(asked.where, maker)
        )
        if found is None:
            return AWAY.format(asked.language)
        return book.told(found, asked.language, places=is_everywhere)

    async def cancel(asked: Asked, number: str) -> str:
        try:
            job = await book.find(asked.asker, asked.where, number)
            if job is None:
                return NO_SUCH.format(asked.language)
            return await book.end(job, asked.language)
        except ToolFailed:
            return NOT_NOW.format(asked.language)

    about = ("[取消 J7]：定好的提醒", "[cancel J7]: what is set")

    @command("reminders", "提醒", about=about)
    async def reminders(asked: Asked) -> str:
        match [word.casefold() for word in asked.words]:
            case []:
                return await show(asked, asked.user_id)
            case [word, number] if word in CANCEL:
                return await cancel(asked, number)
            case [word] if word in ALL:
                if not may_call(asked.asker, Audience.GROUP_ADMIN):
                    return NOT_YOURS.format(asked.language)
                return await show(asked, 0)
            case _:
                return HOW.format(asked.language)

    return reminders
