"""Resolves what a message refers to: the message it quotes, the messages inside what it forwards.

Looks in the memory first, then asks the OneBot server, for a short time only; what cannot be found is left out.
"""

from __future__ import annotations

import asyncio
import logging

from bot.domain.errors import ActionUnanswered, TransportError
from bot.domain.events import MessageReceived
from bot.domain.ports import Transport
from bot.domain.segments import Forward, Quote
from bot.history import History
from bot.prompt.compose import Question

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds for all look-ups of one message together


class Perception:
    """Turns a message into a question with its context."""

    def __init__(self, *, transport: Transport, history: History, patience: float = PATIENCE) -> None:
        self._transport = transport
        self._history = history
        self._patience = patience

    async def quotes_the_bot(self, message: MessageReceived, message_id: str) -> bool:
        """Whether the quoted message is the bot's own; False when nobody knows.

        Raises NotConnected: the next connection may tell.
        """
        try:
            async with asyncio.timeout(self._patience):
                try:
                    quoted = await self._quoted(message, message_id)
                except ActionUnanswered:  # the connection broke meanwhile; is there another one?
                    quoted = await self._quoted(message, message_id)
        except (ActionUnanswered, TimeoutError) as error:
            logger.info("cannot look up the quoted message %s: %s", message_id, error)
            return False
        return quoted is not None and quoted.is_own

    async def perceive(self, message: MessageReceived) -> Question:
        """The message with what it quotes and forwards, as far as the server still knows it."""
        if not any(isinstance(segment, Quote | Forward) for segment in message.segments):
            return Question(message)
        quoted: MessageReceived | None = None
        forwarded: tuple[MessageReceived, ...] = ()
        try:
            async with asyncio.timeout(self._patience):
                quoted = await self._quoted_by(message)
                forwarded = await self._forwarded(message, quoted)
        except (TransportError, TimeoutError) as error:
            # What was found before stays: a forward that cannot be opened does not cost the quote.
            logger.info("cannot look up all that message %s refers to: %s", message.message_id, error)
        return Question(message, quoted, forwarded)

    async def _quoted_by(self, message: MessageReceived) -> MessageReceived | None:
        for segment in message.segments:
            if isinstance(segment, Quote):
                return await self._quoted(message, segment.message_id)
        return None

    async def _forwarded(self, message: MessageReceived, quoted: MessageReceived | None) -> tuple[MessageReceived, ...]:
        """What the message forwards, or the one it quotes: the first forward there is."""
        for segment in (*message.segments, *(quoted.segments if quoted else ())):
            if isinstance(segment, Forward):
                return await self._transport.get_forward(message.self_id, segment.id)
        return ()

    async def _quoted(self, message: MessageReceived, message_id: str) -> MessageReceived | None:
        known = await self._history.find(message.conversation, message_id)
        return known or await self._transport.get_message(message.self_id, message_id)
