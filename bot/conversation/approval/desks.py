"""Where an owner's word may be waited for; each desk is asked in turn."""

from __future__ import annotations

from typing import Protocol

from bot.conversation.approval.requests import Runs
from bot.conversation.intake.ages import Ages
from bot.domain.events import MessageReceived
from bot.memory.history import History
from bot.policy.approval import quote_in


class Desk(Protocol):
    """Takes what an owner answers to something that waits for him."""

    def take(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Whether this message of an owner's is such an answer; then it is done with. `quoted` is
        what it quotes, None for nothing that anybody knows. Never waits.
        """
        ...


class Desks:
    """An owner's word at the first desk that knows what it means."""

    def __init__(
        self, *desks: Desk, owners: frozenset[int], history: History, ages: Ages, runs: Runs
    ) -> None:
        self._desks = desks
        self._owners = owners
        self._history = history
        self._ages = ages
        self._runs = runs

    def take(self, message: MessageReceived) -> bool:
        """Whether somebody waited for it; then it is done with.

        A quote of what is not in memory is none here: see `take_later`. While the service stops
        nothing is taken: the answer is the next one's.
        """
        if self._runs.finishing:
            return False
        self._ages.hear(message)
        if not self._is_owners(message):
            return False
        quoted = self._history.known(message.conversation, quote_in(message))
        return self._is_taken(message, quoted)

    async def take_later(self, message: MessageReceived) -> bool:
        """The same, where there is time to look up what it quotes."""
        if not self._is_owners(message):
            return False
        quote = quote_in(message)
        quoted = await self._history.find(message.conversation, quote) if quote else None
        return self._is_taken(message, quoted)

    def _is_owners(self, message: MessageReceived) -> bool:
        return message.sender.user_id in self._owners and not message.is_own

    def _is_taken(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        quoted = quoted if quoted is not None and quoted.is_own else None
        return any(desk.take(message, quoted) for desk in self._desks)
