"""Sends that may have been delivered: nobody has answered, and they are looked for in what QQ
shows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable

from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import SendChanged, SendState
from bot.domain.ports import Clock
from bot.memory.latest import Kept
from bot.policy.answered import SKEW
from bot.policy.sent_match import is_same_message
from bot.speaking.sends import Rows, Send

MAX_SENDS = 200
MAX_CONFIRMED = 5000
MISSING = "the history shows that it was not delivered"


class Unconfirmed:
    """The sends whose fate nobody knows, and the messages by which others were confirmed: each
    confirms one.
    """

    def __init__(self, *, rows: Rows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._sends: deque[Send] = deque(maxlen=MAX_SENDS)
        self._confirmed = Kept[tuple[Conversation, str], None](MAX_CONFIRMED)
        self._news: asyncio.Queue[Conversation] = asyncio.Queue()

    def add(self, send: Send) -> None:
        """Look out for a send from now on: nobody knows what became of it."""
        send.doubted = self._clock.now()
        self._sends.append(send)
        self._news.put_nowait(send.action.conversation)

    def look_again(self) -> None:
        """Name every place once more: with a new connection its history may be read."""
        for where in {send.action.conversation for send in self._sends}:
            self._news.put_nowait(where)

    async def next(self) -> Conversation:
        """Wait for a place where something is to be looked for: now, or soon."""
        return await self._news.get()

    def places(self, account: int) -> tuple[Conversation, ...]:
        """The conversations of this account with sends in doubt, each once."""
        places = (send.action.conversation for send in self._sends)
        return tuple(dict.fromkeys(where for where in places if where.platform_id == account))

    @property
    def sends(self) -> list[Send]:
        """All of them, the oldest first."""
        return list(self._sends)

    def at(self, where: Conversation) -> list[Send]:
        """The sends in doubt there."""
        return [send for send in self._sends if send.action.conversation == where]

    def holds(self, send: Send) -> bool:
        """Whether the send is still in doubt."""
        return send in self._sends

    def confirm(self, send: Send, message_id: str) -> None:
        """Note that the send is this message."""
        self._confirmed.keep((send.action.conversation, message_id), None)

    def is_known(self, message: MessageReceived) -> bool:
        """Whether a send of this process was confirmed by it."""
        return (message.conversation, message.message_id) in self._confirmed

    def compare(
        self, history: Iterable[MessageReceived], sends: Callable[[Conversation], Iterable[Send]]
    ) -> None:
        """Find those of the sends in a place that QQ shows as said."""
        for message in history:
            if not message.is_own or not message.has_identity or self.is_known(message):
                continue  # words of the bot without an id may be those that failed
            for send in sends(message.conversation):
                if (
                    send.found is None
                    and message.time >= send.at - SKEW
                    and is_same_message(message, send.action)
                ):
                    self._found(send, message.message_id)
                    break

    def _found(self, send: Send, message_id: str) -> None:
        send.found = message_id
        self.confirm(send, message_id)
        if send in self._sends:
            self._sends.remove(send)
            self._rows.changed(send, SendState.CONFIRMED, message_id=message_id)

    def lost(self, sends: Collection[Send]) -> tuple[SendChanged, ...]:
        """Look no more for these, which were never delivered; the entries for the caller to write
        down.
        """
        for send in sends:
            self._sends.remove(send)
            send.state = SendState.DROPPED
        now = self._clock.now()
        return tuple(
            SendChanged(send_id=send.send_id, state=send.state, at=now, reason=MISSING)
            for send in sends
        )
