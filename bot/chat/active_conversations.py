"""The connected accounts, the conversations in which each is used, and the names of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.lru import LRU
from bot.policy.message_trimming import MAX_NAME
from frostagent.types.ports import Clock

MAX_PLACES = 2000


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request to catch up with conversations of an account, before new work begins in them: it
    has connected, or is already. `heard` are the conversations with the times of their last
    messages.
    """

    account: int
    heard: tuple[tuple[Conversation, float], ...]


Arrive: TypeAlias = Callable[[Arrival], None]


class ActiveConversations:
    """Remembers conversations by their latest message, and passes to `arrive` those to catch up
    with, before any message of a new connection. `arrive` must not wait.
    """

    def __init__(self, *, arrive: Arrive, clock: Clock) -> None:
        self._arrive = arrive
        self._clock = clock
        self._heard = LRU[Conversation, float](MAX_PLACES)
        self._names = LRU[Conversation, str](MAX_PLACES)
        self.accounts: set[int] = set()

    def note_message(self, message: MessageReceived) -> None:
        self._note(message.conversation, message.time)

    def name_group(self, where: Conversation, name: str) -> None:
        name = name[:MAX_NAME]
        if name and self._names.get(where) != name:
            self._names.keep(where, name)

    def group_name(self, where: Conversation) -> str:
        """The name of a group; empty if it is unknown."""
        return self._names.get(where, "")

    def with_group_name(self, message: MessageReceived) -> MessageReceived:
        """The message with its group's name, which many servers report only in their list of
        groups.
        """
        where = message.conversation
        if message.group_name:
            self.name_group(where, message.group_name)
            return message
        name = self._names.get(where)
        return replace(message, group_name=name) if name else message

    def connected(self, account: int) -> None:
        """Catch up: an account has (re)connected, or its server was silent for a while."""
        # Recorded now: the first new message of a group must not hide the missed ones before it.
        self._arrive(Arrival(account, tuple(self._heard.items())))

    def learn(self, known: Iterable[tuple[Conversation, float]]) -> None:
        """Take over the conversations of an earlier process, and catch up with them for connected
        accounts.
        """
        known = tuple(known)
        for where, time in known:
            self._note(where, time)
        for account in self.accounts:
            self._arrive(Arrival(account, known))

    def in_use(self, account: int) -> dict[Conversation, float]:
        """The conversations of the account, with the times of their last messages."""
        return {where: at for where, at in self._heard.items() if where.platform_id == account}

    def heard(self) -> Mapping[Conversation, float]:
        """All conversations, with the times of their last messages."""
        return self._heard

    def look_at(self, where: Conversation) -> None:
        """Catch up with this conversation now."""
        self._arrive(Arrival(where.platform_id, ((where, self._clock.now()),)))

    def _note(self, where: Conversation, time: float) -> None:
        self._heard.keep(where, max(time, self._heard.get(where, 0.0)))
