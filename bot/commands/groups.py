"""`/groups`: the conversations of a week; and `/live`, `/shadow`, `/off`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from bot.core.command import AWAY, IN_PRIVATE, NOT_NOW, Asked, Command, command
from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, Phrase
from bot.core.query_results import JournalQueries
from bot.memory.modes import NAMES, Mode, Modes
from frostagent.types.traits import Audience

WEEK = 7 * 86_400.0
NOBODY = Phrase("七天里没有人说话。", "No messages in the last seven days.")


def groups_command(books: JournalQueries, modes: Modes) -> Command:
    """The conversations of the last week, busiest first; for owners, in private."""

    def mode(asked: Asked, where: Conversation) -> str:
        how = modes.of(where)
        return "" if how is Mode.LIVE else f", {NAMES[how].format(asked.language)}"

    @command(
        "groups",
        "群列表",
        about=("在哪些地方有人说话（私聊里看）", "where people talk to me (in private)"),
        audience=Audience.OWNER,
    )
    async def groups(asked: Asked) -> str:
        if asked.where.is_group:
            return IN_PRIVATE.format(asked.language)
        found = await books.places(since=asked.now - WEEK)
        if found is None:
            return AWAY.format(asked.language)
        lines = [
            f"{(IN_GROUP if one.where.is_group else IN_PRIVATE_CHAT).format(asked.language)}"
            f" {one.where.session_id}: {one.messages}, "
            f"{time.strftime('%m-%d %H:%M', time.localtime(one.last))}{mode(asked, one.where)}"
            for one in found
        ]
        return "\n".join(lines) or NOBODY.format(asked.language)

    return groups


LONGEST = 18  # digits of a group's number
WHICH = Phrase(
    "在群里发，或私聊里带上群号：/{name} 4242", "In a group, or with its number: /{name} 4242"
)
DONE = {
    Mode.LIVE: Phrase("好，群 {group} 上线了。", "OK, I answer in group {group}."),
    Mode.SHADOW: Phrase(
        "好，群 {group} 里我的回答先作为草稿给主人看，说发才发。",
        "OK, in group {group} my answers go to my owners as drafts first.",
    ),
    Mode.OFF: Phrase("好，群 {group} 里我只看不说。", "OK, in group {group} I only read."),
}
IN_GROUP, IN_PRIVATE_CHAT = Phrase("群", "group"), Phrase("私聊", "private")
CATALOGUE.register(__name__, globals())

Lift: TypeAlias = Callable[[], None]
"""Drops the drafts of conversations that are no longer in shadow mode."""
Change: TypeAlias = Callable[[Asked, Mode], Awaitable[str]]
"""Sets the mode of the named group; returns the answer."""


def mode_commands(modes: Modes, lift: Lift) -> tuple[Command, ...]:
    """`/live`, `/shadow` and `/off`."""
    change = partial(_set, modes, lift)
    return live_command(change), shadow_command(change), off_command(change)


def live_command(change: Change) -> Command:
    """Answer in a group. For owners, in the group or with its number."""

    @command("live", "上线", about=("让我在群里回答", "answer in a group"), audience=Audience.OWNER)
    async def live(asked: Asked) -> str:
        return await change(asked, Mode.LIVE)

    return live


def shadow_command(change: Change) -> Command:
    """Send answers to the owners as drafts first."""

    @command(
        "shadow",
        "影子",
        about=("回答先作为草稿给主人看", "show owners drafts first"),
        audience=Audience.OWNER,
    )
    async def shadow(asked: Asked) -> str:
        return await change(asked, Mode.SHADOW)

    return shadow


def off_command(change: Change) -> Command:
    """Only read in a group."""

    @command(
        "off", "忽略", about=("让我在群里只看不说", "only read in a group"), audience=Audience.OWNER
    )
    async def off(asked: Asked) -> str:
        return await change(asked, Mode.OFF)

    return off


async def _set(modes: Modes, lift: Lift, asked: Asked, mode: Mode) -> str:
    where, words = asked.where, asked.words
    if len(words) == 1 and words[0].isascii() and words[0].isdecimal() and len(words[0]) <= LONGEST:
        where = Conversation(where.platform_id, "group", int(words[0]))
    elif words or not where.is_group:
        return WHICH.format(asked.language, name=mode.value)
    if not await modes.keep(where, mode):
        return NOT_NOW.format(asked.language)
    lift()
    return DONE[mode].format(asked.language, group=where.session_id)
