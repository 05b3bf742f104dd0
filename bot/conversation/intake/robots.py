"""Who turned out to be a robot, and who is still to be asked about: each once."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from bot.domain.events import Conversation, MessageReceived
from bot.memory.latest import Kept

MAX_MET = 20_000
MAX_ASKED = 100  # who wait to be asked about by an account: of more, nobody asks

logger = logging.getLogger(__name__)


class Robots:
    """Remembers them by their numbers. Never waits for an answer: who is asked about may have been
    answered once.
    """

    def __init__(self) -> None:
        self.known = Kept[int, None](MAX_MET)
        self._met = Kept[tuple[int, int], None](MAX_MET)  # by account
        self._asked: asyncio.Queue[tuple[Conversation, int]] = asyncio.Queue()
        self._waiting = Counter[int]()  # who were met and not settled, by account

    def meet(self, message: MessageReceived) -> None:
        """Somebody woke the bot in a group."""
        where, sender = message.conversation, message.sender.user_id
        if where.is_group and (where.platform_id, sender) not in self._met:
            self._met.keep((where.platform_id, sender), None)
            if self._waiting[where.platform_id] < MAX_ASKED:
                self._waiting[where.platform_id] += 1
                self._asked.put_nowait((where, sender))

    async def next(self) -> tuple[Conversation, int]:
        """Who is to be asked about next, and where they were met."""
        return await self._asked.get()

    def settle(self, where: Conversation, user_id: int, *, is_robot: bool) -> None:
        """That one was asked about, or will not be: a robot, as far as anybody says."""
        self._waiting[where.platform_id] -= 1
        if is_robot:
            logger.info("%d in %s is a robot: not answered any more", user_id, where)
            self.known.keep(user_id, None)
