"""Where an owner's word may be waited for; each desk is asked in turn."""

from __future__ import annotations

from typing import Protocol

from bot.domain.events import MessageReceived


class Desk(Protocol):
    """Takes what an owner answers to something that waits for him."""

    def take(self, message: MessageReceived) -> bool:
        """Whether this is such an answer; then it is done with. Never waits."""
        ...

    async def take_later(self, message: MessageReceived) -> bool:
        """The same, where there is time to look up what it quotes."""
        ...


class Desks:
    """A word at the first desk that knows what it means."""

    def __init__(self, *desks: Desk) -> None:
        self._desks = desks

    def take(self, message: MessageReceived) -> bool:
        """Whether somebody waited for it; then it is done with."""
        return any(desk.take(message) for desk in self._desks)

    async def take_later(self, message: MessageReceived) -> bool:
        """The same, where there is time to look up what it quotes."""
        for desk in self._desks:
            if await desk.take_later(message):
                return True
        return False
