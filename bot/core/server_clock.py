"""Whether a reply is older than what it replies to, by the server's clock, which differs from ours.

A message found later in a history replies to nothing, whatever its time: there an old message looks
like a new one.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from bot.core.events import Identity, MessageReceived
from frostagent.types.ports import Clock

LATE = 60.0  # seconds behind the quickest: it tells nothing of how quick messages come,
LASTING = 600.0  # unless all have been as late for so long: then a clock was set
CREEP = 1e-4  # of the time that passes: two clocks go apart by less


@dataclass(slots=True)
class Lateness:
    """Of the messages of one account; `quickest` is our time less a message's own."""

    quickest: float = math.inf
    _heard: float = 0.0
    _late_since: float = math.inf

    def record(self, time: float, now: float) -> None:
        """A message of that time, by its server's clock, has come."""
        behind = now - time
        self.quickest += CREEP * (now - self._heard)
        self._heard = now
        if behind < self.quickest + LATE:
            # One whose clock was ahead for a moment does not make all others late.
            believed = behind if self.quickest == math.inf else max(behind, self.quickest - LATE)
            self.quickest, self._late_since = min(believed, self.quickest), math.inf
        elif self._late_since == math.inf:
            self._late_since = now
        elif now - self._late_since > LASTING:
            self.quickest, self._late_since = behind, math.inf

    def least(self, time: float, now: float) -> float:
        """Seconds since a message of that time was said, at least: servers tell whole seconds."""
        return now - time - self.quickest - 1.0


MAX_MISSED = 500
HEARD = 64  # messages by whose times the server's clock is known


class ServerClock:
    """Estimates how far our clock is ahead of the server's, from messages that came as they were
    said.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: deque[float] = deque(
            maxlen=HEARD
        )  # seconds, and what each message took to come
        self._surely: deque[float] = deque(
            maxlen=HEARD
        )  # the same, of messages that were said in this process's time
        self._lateness: defaultdict[int, Lateness] = defaultdict(Lateness)  # by account
        self._missed: dict[Identity, None] = {}

    def record_arrival(self, message: MessageReceived) -> None:
        """A message has come."""
        if not self.is_missed(message):
            self._ahead.append(self._clock.now() - message.time)
            self._lateness[message.self_id].record(message.time, self._clock.monotonic())

    def record_new(self, message: MessageReceived) -> None:
        """A message has come that no server repeats: it was said in this process's time."""
        if not self.is_missed(message):
            self._surely.append(self._clock.now() - message.time)

    def add_missed(self, message: MessageReceived) -> None:
        """The message had not come, and was found in a history."""
        self._missed[message.identity] = None
        if len(self._missed) > MAX_MISSED:
            del self._missed[next(iter(self._missed))]

    def is_missed(self, message: MessageReceived) -> bool:
        return bool(self._missed) and message.identity in self._missed

    def age(self, message: MessageReceived) -> float:
        """Seconds since it was said; by our clock, until something new was heard that tells the
        server's.
        """
        return self._clock.now() - message.time - min(self._surely, default=0.0)

    def by_ours(self, time: float, account: int) -> float:
        """A time of the account's server by our clock, as far as any message tells that."""
        behind = self._lateness[account].quickest
        if behind == math.inf:
            return time
        return time + behind + self._clock.now() - self._clock.monotonic()

    def least(self, message: MessageReceived) -> float:
        """Seconds since it was said, at least, by how quick others came, whatever the clocks say;
        nothing is known of the first one.
        """
        return self._lateness[message.self_id].least(message.time, self._clock.monotonic())

    def is_older(self, message: MessageReceived, asked: float) -> bool:
        """Whether it was said before `asked` (by our clock, in seconds since 1970), or nobody can
        tell.

        A message has the whole second it was said in. A server whose clock is ahead of ours is
        believed to be right.
        """
        ahead = max(0.0, min(self._ahead, default=0.0))
        return self.is_missed(message) or message.time < math.floor(asked - ahead)
