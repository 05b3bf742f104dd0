"""Paces messages: by the rates of the conversation and of the account, with a gap between equal
texts, and no faster than a person types.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.outbox.layout import CJK, Parts
from frostagent.types.ports import Clock, Ids
from frostagent.types.speech import Text

BURST: Final = 3  # messages a conversation may get at once, before the rate applies
ACCOUNT: Final = 500  # times a conversation's rate and burst for an account: people are far below
APART: Final = 5.0  # seconds between equal texts in one conversation: repetition looks automatic
JITTER: Final = 0.3  # fraction by which typing time varies

PER_CJK, PER_OTHER = 0.12, 0.03  # seconds a person needs to type a character
LEAST, MOST = 0.6, 3.0  # seconds between two messages of one answer

# Beyond this, keys with a full burst are dropped: they are as good as unknown. A bounded cache
# would drop keys by age alone, and allow a second burst.
MAX_KEYS: Final = 10_000


def typing_pauses(messages: Sequence[Parts]) -> list[float]:
    """The seconds a person needs to type each message; 0 for the first, which took long enough."""
    return [0.0, *(min(max(_typing_time(message), LEAST), MOST) for message in messages[1:])]


def _typing_time(message: Parts) -> float:
    words = "".join(segment.text for segment in message if isinstance(segment, Text))
    cjk = len(CJK.findall(words))
    return cjk * PER_CJK + (len(words) - cjk) * PER_OTHER


class Pacing:
    """Computes how long each message waits. `rate` is the average number of messages a second per
    conversation, after `burst` at once. With rate 0 nothing is limited, not even equal words.
    """

    def __init__(self, *, rate: float, burst: int, clock: Clock, ids: Ids) -> None:
        self._is_limited = rate > 0
        self._clock = clock
        self._ids = ids
        self._conversations = Pace(rate=rate, burst=burst, clock=clock, ids=ids)
        self._accounts = Pace(rate=rate * ACCOUNT, burst=burst * ACCOUNT, clock=clock, ids=ids)
        self._repeatable: dict[tuple[Conversation, str], float] = {}  # from that monotonic time on

    def repeats(self, where: Conversation, words: str) -> bool:
        """Whether these words would wait because the same ones were just sent there."""
        return self._repeatable.get((where, words), 0.0) > self._clock.monotonic()

    def delay(self, message: SendMessage, *, typing: float = 0.0) -> float:
        """The seconds that the message must wait, at least about its `typing` time; counts it as
        sent.
        """
        if not (self._is_limited or typing):
            return 0.0
        typing *= 1 + JITTER * (2 * self._ids.jitter() - 1)
        if not self._is_limited:
            return typing
        where, words = message.conversation, message.words
        delay = max(
            typing, self._conversations.delay(where), self._accounts.delay(where.platform_id)
        )
        if not words.strip():
            return delay
        now = self._clock.monotonic()
        self._repeatable = {said: due for said, due in self._repeatable.items() if due > now}
        due = self._repeatable.get((where, words), now)
        self._repeatable[where, words] = due + APART
        return max(delay, due - now)


class Pace:
    """`rate` messages a second on average for each key, the first `burst` at once; rate 0 is no
    limit.
    """

    def __init__(self, *, rate: float, burst: int, clock: Clock, ids: Ids) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._slack = self._interval * max(burst - 1, 0)
        self._clock = clock
        self._ids = ids
        self._due: dict[Hashable, float] = {}
        self._full = MAX_KEYS

    def delay(self, key: Hashable) -> float:
        """The seconds to wait before the next message of this key; counts it as sent."""
        if not self._interval:
            return 0.0
        now = self._clock.monotonic()
        due = max(self._due.get(key, now), now)
        self._due[key] = due + self._interval
        if len(self._due) > self._full:
            self._due = {key: due for key, due in self._due.items() if due > now}
            self._full = max(MAX_KEYS, 2 * len(self._due))
        wait = due - now - self._slack
        return wait * (1 + self._ids.jitter() / 2) if wait > 0 else 0.0
