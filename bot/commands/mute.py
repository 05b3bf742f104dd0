"""`/mute` and `/unmute`: the bot says nothing in a conversation until it is let speak again."""

from __future__ import annotations

from bot.commands.phrases import NOT_NOW, STILL_QUIET
from bot.core.command import Asked, Command, command
from bot.memory.quiet_overrides import IsHour, QuietOverride, QuietOverrides
from frostagent.types.traits import Audience

DONE = (
    "好，我不再说话，谁叫都不答；/解除禁声 恢复。",
    "Fine, I say nothing more, whoever asks; /unmute ends it.",
)
LIFTED = ("好，我又能说话了。", "Fine, I speak again.")


def mute_command(quiet_overrides: QuietOverrides) -> Command:
    """For a group's admins. What is being answered is said; what waits is not."""

    @command(
        "mute",
        "禁声",
        about=("让我一直不说话", "say nothing any more"),
        audience=Audience.GROUP_ADMIN,
    )
    async def mute(asked: Asked) -> str:
        kept = await quiet_overrides.keep(asked.where, QuietOverride(is_mute=True))
        return asked.either(*(DONE if kept else NOT_NOW))

    return mute


def unmute_command(quiet_overrides: QuietOverrides, is_hour: IsHour) -> Command:
    """For a group's admins; it ends `/quiet`, too, but no quiet hours of the settings."""

    @command(
        "unmute",
        "解除禁声",
        about=("让我恢复说话", "speak again"),
        audience=Audience.GROUP_ADMIN,
    )
    async def unmute(asked: Asked) -> str:
        if not await quiet_overrides.end(asked.where):
            return asked.either(*NOT_NOW)
        return asked.either(*(STILL_QUIET if is_hour(asked.where, asked.now) else LIFTED))

    return unmute
