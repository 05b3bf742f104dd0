"""`/quiet`: for a while the bot answers only who certainly means it (BOT_QUIET_MODE). `/mute` and
`/unmute`: it says nothing in a conversation until it is let speak again.
"""

from __future__ import annotations

from bot.core.command import NOT_NOW, Asked, Command, at_time, command
from bot.quiet.quiet_hours import QuietHours
from bot.quiet.rule import parse_duration
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
STILL_QUIET = (
    "好；不过按设置现在是安静时段，到点之前照旧安静。",
    "Fine, but these are quiet hours of the settings: it stays quiet until they end.",
)
ALWAYS = ("按设置一直安静", "always quiet by the settings")
NOT = ("现在不在安静时段", "it is not quiet now")
MUTED = ("现在被禁声，/解除禁声 恢复", "muted, /unmute ends it")
MUTE_DONE = (
    "好，我不再说话，谁叫都不答；/解除禁声 恢复。",
    "Fine, I say nothing more, whoever asks; /unmute ends it.",
)
LIFTED = ("好，我又能说话了。", "Fine, I speak again.")


def quiet_commands(quiet_hours: QuietHours) -> tuple[Command, ...]:
    """All three, for a group's admins."""
    return quiet_command(quiet_hours), mute_command(quiet_hours), unmute_command(quiet_hours)


def quiet_command(quiet_hours: QuietHours) -> Command:
    """It says what holds afterwards; a silence stays until it is ended by `/unmute`."""

    def state(asked: Asked) -> str:
        if not quiet_hours.holds_in(asked.where):
            return asked.either(*NOT)
        if not (ends := quiet_hours.end(asked.where)):
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
        if quiet_hours.is_muted(asked.where):
            return asked.either(*MUTED)
        if not words:
            return f"{state(asked)}\n{asked.either(*HOW)}"
        if words.casefold() in OFF:
            if not await quiet_hours.end_override(asked.where):
                return asked.either(*NOT_NOW)
            is_hour = quiet_hours.is_hour(asked.where, asked.now)
            return asked.either(*(STILL_QUIET if is_hour else ENDED))
        minutes = parse_duration(words)
        if minutes is None:
            return asked.either(*BAD)
        until = asked.now + minutes * 60
        if not await quiet_hours.keep_quiet(asked.where, until):
            return asked.either(*NOT_NOW)
        told = GOES_ON if quiet_hours.is_hour(asked.where, until) else DONE
        return asked.either(*told).format(until=at_time(until, asked.now))

    return quiet


def mute_command(quiet_hours: QuietHours) -> Command:
    """What is being answered is said; what waits is not."""

    @command(
        "mute",
        "禁声",
        about=("让我一直不说话", "say nothing any more"),
        audience=Audience.GROUP_ADMIN,
    )
    async def mute(asked: Asked) -> str:
        return asked.either(*(MUTE_DONE if await quiet_hours.mute(asked.where) else NOT_NOW))

    return mute


def unmute_command(quiet_hours: QuietHours) -> Command:
    """It ends `/quiet`, too, but no quiet hours of the settings."""

    @command(
        "unmute",
        "解除禁声",
        about=("让我恢复说话", "speak again"),
        audience=Audience.GROUP_ADMIN,
    )
    async def unmute(asked: Asked) -> str:
        if not await quiet_hours.end_override(asked.where):
            return asked.either(*NOT_NOW)
        is_hour = quiet_hours.is_hour(asked.where, asked.now)
        return asked.either(*(STILL_QUIET if is_hour else LIFTED))

    return unmute
