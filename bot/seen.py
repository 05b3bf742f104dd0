"""Which messages were taken, by this process and by those before it: each is handled once.

Of what those before it took, the journal tells. Until it was read, and where a damaged one was set aside, nobody knows
whether a message older than this process was answered. A server may repeat such a message (LLBot's
reportOfflineMessage): until the journal was read it waits, and where the journal is lost it is for a history to say.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterable
from enum import Enum, auto

from cachetools import TTLCache

from bot.domain.events import Identity, MessageReceived
from bot.domain.ports import Clock

DEDUPLICATION = 600.0  # seconds an event is remembered: longer than any reconnect replays
MAX_IDENTITIES = 50_000
MAX_EARLIER = 1000  # messages kept until the journal was read


class Past(Enum):
    """What is known of what earlier processes took."""

    UNREAD = auto()
    LOST = auto()
    KNOWN = auto()


class Seen:
    """The de-duplication window, and how far back it can be trusted."""

    def __init__(self, *, clock: Clock) -> None:
        self._seen: TTLCache[Identity, None] = TTLCache(MAX_IDENTITIES, DEDUPLICATION, timer=clock.monotonic)
        self._news = asyncio.Event()
        self._begun = clock.now()
        self._past = Past.UNREAD
        self._earlier: deque[MessageReceived] = deque(maxlen=MAX_EARLIER)
        self.duplicates = 0  # messages that came again, since the start

    def claim(self, message: MessageReceived) -> bool:
        """Take a message: True the first time. One without an identity is always new."""
        if not message.has_identity:
            return True
        if message.identity in self._seen:
            return False
        self.add(message.identity)
        return True

    def add(self, identity: Identity) -> None:
        """It was taken."""
        self._seen[identity] = None
        self._news.set()
        self._news.clear()

    def knows(self, message: MessageReceived) -> bool:
        """Whether it was taken lately."""
        return message.has_identity and message.identity in self._seen

    def put_off(self, message: MessageReceived) -> bool:
        """Whether a message that a server tells now may have been taken by an earlier process: then nothing is done.

        Servers tell times in whole seconds, so what was said in the second of the start counts as said after it.
        """
        if self._past is Past.KNOWN or not message.has_identity or self.knows(message):
            return False
        if message.time >= math.floor(self._begun):
            return False
        if self._past is Past.UNREAD:
            self._earlier.append(message)
        return True

    def read(self, identities: Iterable[Identity], *, whole: bool) -> tuple[MessageReceived, ...]:
        """The journal was read: this is what earlier processes took, all of it where it is whole.

        What was put off until now, in order, if it can be told by now whether it was taken.
        """
        for identity in identities:
            self._seen[identity] = None
        self._past = Past.KNOWN if whole else Past.LOST
        earlier = tuple(self._earlier) if whole else ()
        self._earlier.clear()
        return earlier

    def past_of(self, message: MessageReceived) -> Past:
        """What is known of whether an earlier process took this message, which this one has not."""
        return self._past if message.time < self._begun else Past.KNOWN

    async def wait(self, identity: Identity) -> None:
        """Return once the message of this identity was taken."""
        while identity not in self._seen:
            await self._news.wait()
