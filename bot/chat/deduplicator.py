"""Which messages were taken, by this process and by those before it: each is handled once.

Of what those before it took, the journal tells. Until it was read, and where a damaged one was set
aside, nobody knows whether a message older than this process was answered. A server may repeat such
a message (LLBot's reportOfflineMessage): until the journal was read it waits, and after that it is
for a history to say.

What is older is told by the server's clock, which is not ours. One that is behind makes new
messages look old, until a history of their place was read: what is newer than its end was said
since. One that is ahead makes old messages look new: only the journal tells that they are not, or
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
MAX_EARLIER = 1000  # messages kept until the journal was read
MAX_PLACES = 2000


class Past(Enum):
    """How much is known of the messages that earlier processes took."""

    UNREAD = auto()
    LOST = auto()
    KNOWN = auto()


class SeenMessages:
    """The de-duplication window, and how far back it can be trusted."""

    def __init__(self, *, clock: Clock) -> None:
        self._seen = RecentKeys[Identity](MAX_IDENTITIES, DEDUPLICATION, clock.monotonic)
        self._news = asyncio.Event()
        self._begun = clock.now()
        self._begun_in = math.floor(self._begun)  # the second
        self._past = Past.UNREAD
        self._earlier: deque[MessageReceived] = deque(maxlen=MAX_EARLIER)
        self._found: deque[tuple[float, MessageReceived]] = deque(maxlen=MAX_EARLIER)
        self._clock = clock
        self._shown = LRU[Conversation, float](MAX_PLACES)

    def claim(self, message: MessageReceived) -> bool:
        """Take a message: True the first time. One without an identity is always new."""
        if not message.has_identity:
            return True
        identity = message.identity
        if self._seen.knows(identity):
            return False
        self.add(identity)
        return True

    def add(self, identity: Identity) -> None:
        """It was taken."""
        self._seen.note(identity)
        self._news.set()
        self._news.clear()

    def add_found(self, message: MessageReceived) -> None:
        """It was found in a history, and taken: should its event come after all, under whatever id,
        it is no new one.
        """
        self._found.append((self._clock.monotonic(), message))

    def was_found(self, message: MessageReceived) -> bool:
        """Whether this event is of a message that was found in a history; each is of one event."""
        if not self._found:  # as nearly always
            return False
        begin = self._clock.monotonic() - DEDUPLICATION
        while self._found and self._found[0][0] < begin:
            self._found.popleft()
        found = next((one for one in self._found if is_row_of(one[1], message)), None)
        if found is not None:
            self._found.remove(found)
        return found is not None

    def knows(self, message: MessageReceived) -> bool:
        """Whether it was taken lately."""
        return message.has_identity and self._seen.knows(message.identity)

    def defer(self, message: MessageReceived) -> bool:
        """Whether a message that a server tells now is kept until the journal says if an earlier
        process took it.
        """
        if self._past is not Past.UNREAD or self.knows(message) or not self.is_earlier(message):
            return False
        self._earlier.append(message)
        return True

    def forget(self, where: Conversation, message_id: str) -> None:
        """It was taken back: it is not to be taken any more, where it is kept or comes only now."""
        self.add((where.platform_id, where.message_type, where.session_id, message_id))
        kept = [
            message
            for message in self._earlier
            if (message.conversation, message.message_id) != (where, message_id)
        ]
        self._earlier = deque(kept, MAX_EARLIER)

    def is_earlier(self, message: MessageReceived, *, told: bool = True) -> bool:
        """Whether it may have been said before this process began; `told` is a message that a
        server tells now.

        Servers tell times in whole seconds. What is told now of the second of the start counts as
        said after it, what is found in a history as said before it.
        """
        return (
            message.time < (self._begun_in if told else self._begun)
            and message.has_identity
            and message.time <= self._shown.get(message.conversation, math.inf)
        )

    def note_history(self, where: Conversation, history: Sequence[MessageReceived]) -> None:
        """A history was read: what is newer than its end was said after this process began."""
        if history and where not in self._shown:
            self._shown.keep(where, max(message.time for message in history))

    def load_earlier(
        self, identities: Iterable[Identity], *, whole: bool
    ) -> tuple[MessageReceived, ...]:
        """The journal was read: this is what earlier processes took, all of it where it is whole.

        What was deferred until now, in order.
        """
        for identity in identities:
            self._seen.note(identity)
        self._past = Past.KNOWN if whole else Past.LOST
        earlier = tuple(self._earlier)
        self._earlier.clear()
        return earlier

    def past_of(self, message: MessageReceived, *, told: bool = False) -> Past:
        """How much is known of whether an earlier process took this message; this one has not."""
        if self._past is Past.KNOWN or not self.is_earlier(message, told=told):
            return Past.KNOWN
        return self._past

    async def wait(self, identity: Identity) -> None:
        """Return once the message of this identity was taken."""
        while not self._seen.knows(identity):
            await self._news.wait()


logger = logging.getLogger(__name__)


class Deduplicator:
    """Lets each message in once, `meet`s it, and counts those that come again."""

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
        """Whether this message is taken now; from then on it is known."""
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
