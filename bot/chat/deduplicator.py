"""Deduplicates messages over processes: each is handled once.

The journal tells what earlier processes received. Until it is read, and if a damaged one was set
aside, it is unknown whether a message older than this process was answered. A server may repeat
such a message (LLBot's reportOfflineMessage): it waits until the journal is read; after that a
history decides.

Age is measured by the server's clock, which differs from ours. A clock that is behind makes new
messages look old, until a history of their conversation is read: messages newer than its end are
new. A clock that is ahead makes old messages look new: only the journal shows that they are not, or
in groups an answer that quotes them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

from bot.chat.tasks import Facts
from bot.core.conversation import Conversation
from bot.core.events import Identity, MessageReceived
from bot.core.lru import LRU, RecentKeys
from bot.core.server_clock import ServerClock
from bot.policy.message_aliases import is_row_of
from frostagent.types.ports import Clock

DEDUPLICATION = 600.0  # seconds an event is remembered: longer than any reconnect replays
MAX_IDENTITIES = 50_000
MAX_EARLIER = 1000  # messages kept until the journal is read
MAX_PLACES = 2000


class Past(Enum):
    """How far the messages that earlier processes received are known."""

    UNREAD = auto()
    LOST = auto()
    KNOWN = auto()


class SeenMessages:
    """The deduplication window, and how far back it can be trusted."""

    def __init__(self, *, clock: Clock) -> None:
        self._seen = RecentKeys[Identity](MAX_IDENTITIES, DEDUPLICATION, clock.monotonic)
        self._news = asyncio.Event()
        self._begun = clock.now()
        self._begun_in = math.floor(self._begun)  # rounded down to the second
        self._past = Past.UNREAD
        self._earlier: deque[MessageReceived] = deque(maxlen=MAX_EARLIER)
        self._found: deque[tuple[float, MessageReceived]] = deque(maxlen=MAX_EARLIER)
        self._clock = clock
        self._shown = LRU[Conversation, float](MAX_PLACES)

    def claim(self, message: MessageReceived) -> bool:
        """Record a message; True the first time. One without an identity is always new."""
        if not message.has_identity:
            return True
        identity = message.identity
        if self._seen.knows(identity):
            return False
        self.add(identity)
        return True

    def add(self, identity: Identity) -> None:
        self._seen.note(identity)
        self._news.set()
        self._news.clear()

    def add_found(self, message: MessageReceived) -> None:
        """Record a message found in a history: if its event comes later, under any id, it is a
        duplicate.
        """
        self._found.append((self._clock.monotonic(), message))

    def was_found(self, message: MessageReceived) -> bool:
        """Whether this event belongs to a message found in a history; True once per message."""
        if not self._found:  # the usual case
            return False
        begin = self._clock.monotonic() - DEDUPLICATION
        while self._found and self._found[0][0] < begin:
            self._found.popleft()
        found = next((one for one in self._found if is_row_of(one[1], message)), None)
        if found is not None:
            self._found.remove(found)
        return found is not None

    def knows(self, message: MessageReceived) -> bool:
        """Whether it was received within the window."""
        return message.has_identity and self._seen.knows(message.identity)

    def defer(self, message: MessageReceived) -> bool:
        """Keep a repeated message until the journal shows whether an earlier process received it;
        False if that is not needed.
        """
        if self._past is not Past.UNREAD or self.knows(message) or not self.is_earlier(message):
            return False
        self._earlier.append(message)
        return True

    def forget(self, where: Conversation, message_id: str) -> None:
        """Drop a recalled message, and do not accept it later."""
        self.add((where.platform_id, where.message_type, where.session_id, message_id))
        kept = [
            message
            for message in self._earlier
            if (message.conversation, message.message_id) != (where, message_id)
        ]
        self._earlier = deque(kept, MAX_EARLIER)

    def is_earlier(self, message: MessageReceived, *, told: bool = True) -> bool:
        """Whether it may have been said before this process began; `told` for an event, as opposed
        to a message in a history. Servers report whole seconds: an event of the second of the start
        counts as later, a message in a history as earlier.
        """
        return (
            message.time < (self._begun_in if told else self._begun)
            and message.has_identity
            and message.time <= self._shown.get(message.conversation, math.inf)
        )

    def note_history(self, where: Conversation, history: Sequence[MessageReceived]) -> None:
        """Record a history: messages newer than its end were said after this process began."""
        if history and where not in self._shown:
            self._shown.keep(where, max(message.time for message in history))

    def load_earlier(
        self, identities: Iterable[Identity], *, whole: bool
    ) -> tuple[MessageReceived, ...]:
        """Load the messages that earlier processes received, all of them if `whole`. Returns the
        deferred ones, in order.
        """
        for identity in identities:
            self._seen.note(identity)
        self._past = Past.KNOWN if whole else Past.LOST
        earlier = tuple(self._earlier)
        self._earlier.clear()
        return earlier

    def past_of(self, message: MessageReceived, *, told: bool = False) -> Past:
        """What is known of whether an earlier process received it; this process has not."""
        if self._past is Past.KNOWN or not self.is_earlier(message, told=told):
            return Past.KNOWN
        return self._past

    async def wait(self, identity: Identity) -> None:
        """Wait until the message of this identity is received."""
        while not self._seen.knows(identity):
            await self._news.wait()


logger = logging.getLogger(__name__)


class Deduplicator:
    """Admits each message once, `meet`s it, and counts duplicates."""

    def __init__(
        self,
        *,
        seen: SeenMessages,
        server_clock: ServerClock,
        meet: Callable[[MessageReceived], None],
    ) -> None:
        self._seen = seen
        self._server_clock = server_clock
        self._meet = meet
        self.duplicates = 0  # since the start

    def admit(self, message: MessageReceived, facts: Facts) -> bool:
        """Admit a message, and record it; False for a duplicate, a deferred or an own one."""
        if self._seen.defer(message) or message.is_own:
            return False
        is_known = not self._seen.claim(message)
        if is_known or (not facts.is_missed and self._seen.was_found(message)):
            self.duplicates += 1
            logger.debug("message %s in %s came again", message.message_id, message.conversation)
            return False
        if not facts.is_earlier:
            self._server_clock.record_new(message)
        self._meet(message)
        return True
