"""Replies of owners to what waits for their decision: each handler is asked in turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.conversation.intake.server_clock import ServerClock
from bot.core.events import MessageReceived
from bot.core.language import join_pairs
from bot.memory.history import History
from bot.policy.approval import WHICH, quote_in
from bot.policy.fallback_replies import is_quoted
from bot.speaking.postbox import Postbox
from frostagent.text.language import Language, fill_pair, text_in


@dataclass(frozen=True, slots=True)
class Meant:
    """Something that waits, which a word that names nothing may be about: its `name`, and that word
    with the name. `take` decides it; `is_sure` is False if the word may as well be about something
    else, so that even the only one is asked about.
    """

    name: str
    example: str
    take: Callable[[], bool]
    is_sure: bool = True


class ReplyHandler(Protocol):
    """Takes an owner's reply to one kind of thing that waits for them."""

    def take_reply(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Whether this message of an owner's is such an answer, by the name it gives or by what it
        quotes, None if nothing of ours; then it is done with. Never waits.
        """
        ...

    def meant_by(self, message: MessageReceived) -> Sequence[Meant]:
        """All that this message of an owner's may be about if it names nothing, and quotes nothing
        or what cannot be read; empty if it is no answer. Never waits.
        """
        ...


LookUp = Callable[[MessageReceived], Awaitable[MessageReceived | None]]
"""What a message quotes there, as the server knows it; None if nobody knows."""


class OwnerReplies:
    """Gives an owner's reply to the first handler that knows what it means.

    A reply that names nothing decides the only thing that waits; if several wait, the owner is
    asked which. It is never left to the model, which would claim that it is done.
    """

    def __init__(
        self,
        *handlers: ReplyHandler,
        owners: frozenset[int],
        history: History,
        look_up: LookUp,
        server_clock: ServerClock,
        is_finishing: Callable[[], bool],
        postbox: Postbox,
        tongue: Language = Language.CHINESE,
    ) -> None:
        self._handlers = handlers
        self._owners = owners
        self._history = history
        self._look_up = look_up
        self._server_clock = server_clock
        self._is_finishing = is_finishing
        self._postbox = postbox
        self._tongue = tongue

    def take(self, message: MessageReceived) -> bool:
        """Whether somebody waited for it; then it is done with.

        A quote of what is not in memory is none here: see `take_later`. While the service stops
        nothing is taken: the answer is the next one's.
        """
        if self._is_finishing():
            return False
        self._server_clock.record_arrival(message)
        if not self._is_owners(message):
            return False
        quote = quote_in(message)
        quoted = self._history.known(message.conversation, quote)
        return self._is_taken(message, quoted) or (not quote and self._is_meant(message))

    async def take_later(self, message: MessageReceived) -> bool:
        """The same, where there is time to look up what it quotes: in the journal, and only of what
        may be an answer at the server. If nobody knows, its quote says nothing.
        """
        if not self._is_owners(message):
            return False
        quote = quote_in(message)
        quoted = await self._history.find(message.conversation, quote) if quote else None
        if self._is_taken(message, quoted):
            return True
        if not quote or quoted is not None or not self._meant_by(message):
            return False
        quoted = await self._look_up(message)
        if quoted is not None:
            return self._is_taken(message, quoted)
        return self._is_meant(message)

    def _is_owners(self, message: MessageReceived) -> bool:
        return message.sender.user_id in self._owners and not message.is_own

    def _is_taken(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        quoted = quoted if quoted is not None and quoted.is_own else None
        return any(one.take_reply(message, quoted) for one in self._handlers)

    def _meant_by(self, message: MessageReceived) -> list[Meant]:
        return [meant for one in self._handlers for meant in one.meant_by(message)]

    def _is_meant(self, message: MessageReceived) -> bool:
        """Whether something waits that it may be about: the only one has it."""
        match self._meant_by(message):
            case []:
                return False
            case [Meant(is_sure=True) as only]:
                return only.take()
            case several:
                names = join_pairs([(one.name, one.name) for one in several])
                words = text_in(
                    self._tongue, fill_pair(WHICH, names=names, example=several[0].example)
                )
                quote = message.message_id if is_quoted(message) else ""
                self._postbox.post(message.conversation, words, quote=quote)
                return True
