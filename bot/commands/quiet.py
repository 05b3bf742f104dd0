"""`/quiet`: for a while the bot answers only who certainly means it (BOT_QUIET_MODE)."""

from __future__ import annotations

from bot.commands.phrases import NOT_NOW, STILL_QUIET, at_time
from bot.core.command import Asked, Command, command
from bot.memory.quiet_overrides import End, IsHour, QuietOverride, QuietOverrides
from bot.policy.quiet import parse_duration
from frostagent.types.traits import Audience

OFF = frozenset({"off", "0", "关", "取消", "结束"})

HOW = (
    "安静一会儿：/安静 2小时；提前结束：/安静 关",
    "/quiet 2h for a while, /quiet off ends it",
)
BAD = (
    "时间写成 30分钟、2小时、1天，最长 30 天。",
    "Write a time as 30m, 2h or 1d, at most 30 days.",
)
DONE = ("好，安静到 {until}；期间我照样看消息。", "Fine, quiet until {until}; I go on reading.")
ENDED = ("好，不再安静了。", "Fine, quiet no more.")
GOES_ON = (
    "好，安静到 {until}；那时按设置还在安静时段，到点之前照旧安静。",
    "Fine, quiet until {until}, and on until the quiet hours of the settings end.",
)
ALWAYS = ("按设置一直安静", "always quiet by the settings")
NOT = ("现在不在安静时段", "it is not quiet now")
MUTED = ("现在被禁声，/解除禁声 恢复", "muted, /unmute ends it")


def quiet_command(quiet_overrides: QuietOverrides, is_hour: IsHour, end: End) -> Command:
    """For a group's admins. It says what holds afterwards; a silence stays until it is ended by
    its own word.
    """

    def is_muted(asked: Asked) -> bool:
        wish = quiet_overrides.of(asked.where)
        return wish is not None and wish.is_mute

    def state(asked: Asked) -> str:
        if quiet_overrides.of(asked.where) is None and not is_hour(asked.where, asked.now):
            return asked.either(*NOT)
        if not (ends := end(asked.where)):
            return asked.either(*ALWAYS)
        until = at_time(ends, asked.now)
        return asked.either(f"安静到 {until}", f"quiet until {until}")

    @command(
        "quiet",
        "安静",
        about=("让我安静一会儿，如 /安静 2小时", "keep quiet for a while, as /quiet 2h"),
        audience=Audience.GROUP_ADMIN,
    )
    async def quiet(asked: Asked) -> str:
        words = "".join(asked.words)
        if is_muted(asked):
            return asked.either(*MUTED)
        if not words:
            return f"{state(asked)}\n{asked.either(*HOW)}"
        if words.casefold() in OFF:
            if not await quiet_overrides.end(asked.where):
                return asked.either(*NOT_NOW)
            return asked.either(*(STILL_QUIET if is_hour(asked.where, asked.now) else ENDED))
        minutes = parse_duration(words)
        if minutes is None:
            return asked.either(*BAD)
        wish = QuietOverride(is_mute=False, until=asked.now + minutes * 60)
        if not await quiet_overrides.keep(asked.where, wish):
            return asked.either(*NOT_NOW)
        told = GOES_ON if is_hour(asked.where, wish.until) else DONE
        return asked.either(*told).format(until=at_time(wish.until, asked.now))

    return quiet
