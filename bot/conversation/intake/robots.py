"""Who turned out to be a robot, and who is still to be asked about: each once."""

from __future__ import annotations

import asyncio

from cachetools import LRUCache

from bot.domain.events import Conversation, MessageReceived

MAX_MET = 20_000
MAX_ASKED = 100  # who wait to be asked about: of more, nobody asks


class Robots:
    """Remembers them by their numbers. Never waits for an answer: who is asked about may have been
    answered once.
    """

    def __init__(self) -> None:
        self.known: LRUCache[int, None] = LRUCache(MAX_MET)
        self._met: LRUCache[tuple[int, int], None] = LRUCache(MAX_MET)  # by account
        self._asked: asyncio.Queue[tuple[Conversation, int]] = asyncio.Queue(MAX_ASKED)

    def meet(self, message: MessageReceived) -> None:
        """Somebody woke the bot in a group."""
        where, sender = message.conversation, message.sender.user_id
        if where.is_group and (where.platform_id, sender) not in self._met:
            self._met[where.platform_id, sender] = None
            if not self._asked.full():
                self._asked.put_nowait((where, sender))

    async def next(self) -> tuple[Conversation, int]:
        """Who is to be asked about next, and where they were met."""
        return await self._asked.get()
