"""`/quiet`: for a while the bot answers only messages that clearly address it (BOT_QUIET_MODE).
`/mute` silences it in a conversation until `/unmute`.
"""

from __future__ import annotations

from bot.core.command import NOT_NOW, Asked, Command, at_time, command
from bot.core.language import CATALOGUE, Phrase
from bot.quiet.quiet_hours import QuietHours
from bot.quiet.rule import parse_duration
from frostagent.types.traits import Audience

OFF = frozenset({"off", "0", "关", "取消", "结束"})

HOW = Phrase(
    "安静一会儿：/安静 2小时；提前结束：/安静 关", "/quiet 2h for a while, /quiet off ends it"
)
BAD = Phrase(
    "时间写成 30分钟、2小时、1天，最长 30 天。", "Write a time as 30m, 2h or 1d, at most 30 days."
)
DONE = Phrase(
    "好，安静到 {until}；期间我照样看消息。", "Fine, quiet until {until}; I go on reading."
)
ENDED = Phrase("好，不再安静了。", "Fine, quiet no more.")
GOES_ON = Phrase(
    "好，安静到 {until}；那时按设置还在安静时段，到点之前照旧安静。",
    "Fine, quiet until {until}, and on until the quiet hours of the settings end.",
)
STILL_QUIET = Phrase(
    "好；不过按设置现在是安静时段，到点之前照旧安静。",
    "Fine, but these are quiet hours of the settings: it stays quiet until they end.",
)
UNTIL = Phrase("安静到 {until}", "quiet until {until}")
ALWAYS = Phrase("按设置一直安静", "always quiet by the settings")
NOT = Phrase("现在不在安静时段", "it is not quiet now")
MUTED = Phrase("现在被禁声，/解除禁声 恢复", "muted, /unmute ends it")
MUTE_DONE = Phrase(
    "好，我不再说话，谁叫都不答；/解除禁声 恢复。",
    "Fine, I say nothing more, whoever asks; /unmute ends it.",
)
LIFTED = Phrase("好，我又能说话了。", "Fine, I speak again.")
CATALOGUE.register(__name__, globals())


def quiet_commands(quiet_hours: QuietHours) -> tuple[Command, ...]:
    return quiet_command(quiet_hours), mute_command(quiet_hours), unmute_command(quiet_hours)


def quiet_command(quiet_hours: QuietHours) -> Command:
    """Its reply states what holds afterwards. It changes nothing in a muted conversation."""

    def state(asked: Asked) -> str:
        if not quiet_hours.holds_in(asked.where):
            return NOT.format(asked.language)
        if not (ends := quiet_hours.end(asked.where)):
            return ALWAYS.format(asked.language)
        return UNTIL.format(asked.language, until=at_time(ends, asked.now))

    @command(
        "quiet",
        "安静",
        about=("让我安静一会儿，如 /安静 2小时", "keep quiet for a while, as /quiet 2h"),
        audience=Audience.GROUP_ADMIN,
    )
    async def quiet(asked: Asked) -> str:
        words = "".join(asked.words)
        if quiet_hours.is_muted(asked.where):
            return MUTED.format(asked.language)
        if not words:
            return f"{state(asked)}\n{HOW.format(asked.language)}"
        if words.casefold() in OFF:
            if not await quiet_hours.end_override(asked.where):
                return NOT_NOW.format(asked.language)
            is_hour = quiet_hours.is_hour(asked.where, asked.now)
            return (STILL_QUIET if is_hour else ENDED).format(asked.language)
        minutes = parse_duration(words)
        if minutes is None:
            return BAD.format(asked.language)
        until = asked.now + minutes * 60
        if not await quiet_hours.keep_quiet(asked.where, until):
            return NOT_NOW.format(asked.language)
        told = GOES_ON if quiet_hours.is_hour(asked.where, until) else DONE
        return told.format(asked.language, until=at_time(until, asked.now))

    return quiet


def mute_command(quiet_hours: QuietHours) -> Command:
    """The answer in progress is still sent; waiting questions are not answered."""

    @command(
        "mute",
        "禁声",
        about=("让我一直不说话", "say nothing any more"),
        audience=Audience.GROUP_ADMIN,
    )
    async def mute(asked: Asked) -> str:
        return (MUTE_DONE if await quiet_hours.mute(asked.where) else NOT_NOW).format(
            asked.language
        )

    return mute


def unmute_command(quiet_hours: QuietHours) -> Command:
    """It also ends `/quiet`, but not the quiet hours of the settings."""

    @command(
        "unmute",
        "解除禁声",
        about=("让我恢复说话", "speak again"),
        audience=Audience.GROUP_ADMIN,
    )
    async def unmute(asked: Asked) -> str:
        if not await quiet_hours.end_override(asked.where):
            return NOT_NOW.format(asked.language)
        is_hour = quiet_hours.is_hour(asked.where, asked.now)
        return (STILL_QUIET if is_hour else LIFTED).format(asked.language)

    return unmute
