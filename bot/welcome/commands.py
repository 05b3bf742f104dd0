"""`/welcome` and `/farewell`: what is said when somebody joins the group, or leaves it."""

from __future__ import annotations

from bot.core.command import NOT_NOW, Asked, Command, command
from bot.core.language import CATALOGUE
from bot.settings_store import PlaceSetting
from bot.welcome.greeter import FAREWELL, MAX_WORDS, OFF, RUN, WELCOME, Greeter, is_template
from frostagent.text.language import Phrase
from frostagent.types.traits import Audience

OFF_WORDS = frozenset({OFF, "0", "关", "关闭", "取消"})
RUN_WORDS = frozenset({RUN, "自由"})
ONLY_GROUPS = Phrase("这个在群里用。", "That is for groups.")
WELCOME_HOW = Phrase(
    "/欢迎 欢迎 {{name}} 来到 {{group}}；/欢迎 run：让我自己说；/欢迎 关",
    "/welcome Welcome to {{group}}, {{name}}!; /welcome run: in my own words; /welcome off",
)
FAREWELL_HOW = Phrase("/送别 {{name}} 走了；/送别 关", "/farewell {{name}} has left; /farewell off")
IS_OFF = Phrase("现在不说。{how}", "Nothing is said now. {how}")
IS = Phrase("现在说：{words}。{how}", "Now: {words} — {how}")
DONE = Phrase("好，以后说：{words}", "Fine, from now on: {words}")
ENDED = Phrase("好，以后不说了。", "Fine, nothing is said any more.")
TOO_LONG = Phrase("最多 {most} 个字。", "At most {most} characters.")
CATALOGUE.register(__name__, globals())


def welcome_commands(greeter: Greeter) -> tuple[Command, ...]:
    """Both, for a group's admins."""

    async def change(asked: Asked, setting: PlaceSetting[str], how: Phrase) -> str:
        language, where = asked.language, asked.where
        if not where.is_group:
            return ONLY_GROUPS.format(language)
        words = " ".join(asked.words)
        if not words:
            told = greeter.template(setting, where)
            shown = how.format(language)
            if not told:
                return IS_OFF.format(language, how=shown)
            return IS.format(language, words=told, how=shown)
        if words.casefold() in OFF_WORDS:
            is_done = await greeter.choose(setting, where, "")
            return (ENDED if is_done else NOT_NOW).format(language)
        if words.casefold() in RUN_WORDS and setting is WELCOME:
            words = RUN
        if not is_template(words):
            return TOO_LONG.format(language, most=MAX_WORDS)
        if not await greeter.choose(setting, where, words):
            return NOT_NOW.format(language)
        return DONE.format(language, words=words)

    @command(
        "welcome",
        "欢迎",
        about=("新人进群时说什么", "what new members are told"),
        audience=Audience.GROUP_ADMIN,
    )
    async def welcome(asked: Asked) -> str:
        return await change(asked, WELCOME, WELCOME_HOW)

    @command(
        "farewell",
        "送别",
        about=("有人退群时说什么", "what is said when somebody leaves"),
        audience=Audience.GROUP_ADMIN,
    )
    async def farewell(asked: Asked) -> str:
        return await change(asked, FAREWELL, FAREWELL_HOW)

    return welcome, farewell
