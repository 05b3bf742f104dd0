"""`/groups`: where the bot is in use."""

from __future__ import annotations

import time

from bot.commands.phrases import AWAY, IN_PRIVATE
from bot.domain.books import Books
from bot.domain.command import Asked, Command, command
from bot.domain.events import Conversation
from bot.domain.traits import Audience
from bot.memory.modes import Modes
from bot.policy.new_groups import NAMES, Mode

WEEK = 7 * 86_400.0
NOBODY = ("七天里没有人说话。", "Nobody has said anything for seven days.")


def groups_command(books: Books, modes: Modes) -> Command:
    """The conversations of a week, the busiest first; for owners, in private."""

    def mode(asked: Asked, where: Conversation) -> str:
        how = modes.of(where)
        return "" if how is Mode.LIVE else f", {asked.either(*NAMES[how])}"

    @command(
        "groups",
        "群列表",
        about=("在哪些地方有人说话（私聊里看）", "where it is in use (in private)"),
        audience=Audience.OWNER,
    )
    async def groups(asked: Asked) -> str:
        if asked.where.is_group:
            return asked.either(*IN_PRIVATE)
        found = await books.places(since=asked.now - WEEK)
        if found is None:
            return asked.either(*AWAY)
        lines = [
            f"{asked.either('群' if one.where.is_group else '私聊', one.where.message_type)}"
            f" {one.where.session_id}: {one.messages}, "
            f"{time.strftime('%m-%d %H:%M', time.localtime(one.last))}{mode(asked, one.where)}"
            for one in found
        ]
        return "\n".join(lines) or asked.either(*NOBODY)

    return groups
