"""`/stop`, for /help: what goes on is stopped before any command is looked at
(bot/conversation/interruptions/stopping.py); here it is answered where nothing goes on.
"""

from __future__ import annotations

from bot.domain.command import Asked, Command, command

NOTHING = ("我现在没有在忙什么。", "There is nothing to stop.")


@command("stop", about=("让我停下正在做的事", "end what I am doing"))
async def _stop(asked: Asked) -> str:
    return asked.either(*NOTHING)


def stop_command() -> Command:
    """For everybody: whose question may be ended is decided where it is."""
    return _stop
