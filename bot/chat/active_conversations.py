"""The accounts, the conversations each is in use in, and the names of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.lru import LRU
from bot.policy.message_trimming import MAX_NAME
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

MAX_PLACES = 2000


@dataclass(frozen=True, slots=True)
class Arrival:
    """An account has connected; `heard` is where it is in use, each with the time of the last
    message before that.

    Or it is there, and these places are to be looked at before anything new is begun in them.
    """

    account: int
    heard: tuple[tuple[Conversation, float], ...]


Arrive: TypeAlias = Callable[[Arrival], None]


class ActiveConversations:
    """Remembers conversations by their latest message, and tells `arrive` which to look at after a
    connection.

    It does so before any message of the new connection; `arrive` must not wait.
    """

    def __init__(self, *, arrive: Arrive, clock: Clock) -> None:
        self._arrive = arrive
        self._clock = clock
        self._heard = LRU[Conversation, float](MAX_PLACES)
        self._names = LRU[Conversation, str](MAX_PLACES)
        self.accounts: set[int] = set()

    def note_message(self, message: MessageReceived) -> None:
        """Something was said there."""
        self._note(message.conversation, message.time)

    def name_group(self, where: Conversation, name: str) -> None:
        """The group is called so, says its server."""
        name = name[:MAX_NAME]
        if name and self._names.get(where) != name:
            self._names.keep(where, name)

    def group_name(self, where: Conversation) -> str:
        """The name of the group; empty if no server has reported it."""
        return self._names.get(where, "")

    def with_group_name(self, message: MessageReceived) -> MessageReceived:
        """The message with its group's name: many servers tell it in their list of groups only."""
        where = message.conversation
        if message.group_name:
            self.name_group(where, message.group_name)
            return message
        name = self._names.get(where)
        return replace(message, group_name=name) if name else message

    def connected(self, account: int) -> None:
        """An account can speak (again), or its server reported nothing for a while: its places are
        to be looked at.
        """
        # Noted now: the first new message of a group must not hide those missed before it.
        self._arrive(Arrival(account, tuple(self._heard.items())))

    def learn(self, known: Iterable[tuple[Conversation, float]]) -> None:
        """An earlier process heard these; accounts that are there already are looked after anew:
        until now nobody knew where they are in use.
        """
        known = tuple(known)
        for where, time in known:
            self._note(where, time)
        for account in self.accounts:
            self._arrive(Arrival(account, known))

    def in_use(self, account: int) -> dict[Conversation, float]:
        """Where the account is in use, each with the time of the last message."""
        return {where: at for where, at in self._heard.items() if where.platform_id == account}

    def look_at(self, where: Conversation) -> None:
        """This place is to be looked at now."""
        self._arrive(Arrival(where.platform_id, ((where, self._clock.now()),)))

    def _note(self, where: Conversation, time: float) -> None:
        self._heard.keep(where, max(time, self._heard.get(where, 0.0)))
