"""Resolves what a message refers to: the message it quotes, the messages inside what it forwards.

Looks in the memory first, then asks the OneBot server, for a short time only; what cannot be found is left out.
"""

from __future__ import annotations

import asyncio
import logging

from bot.domain.errors import TransportError
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
        """Whether the quoted message is the bot's own; False when nobody knows."""
        try:
            async with asyncio.timeout(self._patience):
                quoted = await self._quoted(message, message_id)
        except (TransportError, TimeoutError) as error:
            logger.info("cannot look up the quoted message %s: %s", message_id, error)
            return False
        return quoted is not None and quoted.is_own

    async def perceive(self, message: MessageReceived) -> Question:
        """The message with what it quotes and forwards, as far as the server still knows it."""
        if not any(isinstance(segment, Quote | Forward) for segment in message.segments):
            return Question(message)
        try:
            async with asyncio.timeout(self._patience):
                return await self._perceive(message)
        except (TransportError, TimeoutError) as error:
            logger.info("cannot look up what message %s refers to: %s", message.message_id, error)
            return Question(message)

    async def _perceive(self, message: MessageReceived) -> Question:
        quoted: MessageReceived | None = None
        forwards: list[str] = []
        for segment in message.segments:
            match segment:
                case Quote(message_id=message_id) if quoted is None:
                    quoted = await self._quoted(message, message_id)
                case Forward(id=id_):
                    forwards.append(id_)
                case _:
                    pass
        if quoted is not None:
            forwards += [segment.id for segment in quoted.segments if isinstance(segment, Forward)]
        forwarded = await self._transport.get_forward(message.self_id, forwards[0]) if forwards else ()
        return Question(message, quoted, forwarded)

    async def _quoted(self, message: MessageReceived, message_id: str) -> MessageReceived | None:
        known = await self._history.find(message.conversation, message_id)
        return known or await self._transport.get_message(message.self_id, message_id)
