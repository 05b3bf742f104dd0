"""Decides whether a reply is older than what it replies to, by the server's clock, which differs
from ours. A message found later in a history is no reply, whatever its time: an old one looks like
a new one there.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from bot.core.events import Identity, MessageReceived
from frostagent.types.ports import Clock

LATE = 60.0  # seconds behind the quickest, from which a message says nothing of the usual delay,
LASTING = 600.0  # unless all have been that late for this many seconds: then a clock was set
CREEP = 1e-4  # of the time that passes: clocks drift apart by less


@dataclass(slots=True)
class Lateness:
    """The lateness of one account's messages; `quickest` is the least difference of our monotonic
    time and a message's own time.
    """

    quickest: float = math.inf
    _heard: float = 0.0
    _late_since: float = math.inf

    def record(self, time: float, now: float) -> None:
        """Record a message with that time of its server, received `now`."""
        behind = now - time
        self.quickest += CREEP * (now - self._heard)
        self._heard = now
        if behind < self.quickest + LATE:
            # A message whose clock was ahead for a moment must not make all others late.
            believed = behind if self.quickest == math.inf else max(behind, self.quickest - LATE)
            self.quickest, self._late_since = min(believed, self.quickest), math.inf
        elif self._late_since == math.inf:
            self._late_since = now
        elif now - self._late_since > LASTING:
            self.quickest, self._late_since = behind, math.inf

    def least(self, time: float, now: float) -> float:
        """The least number of seconds since that time: servers report whole seconds."""
        return now - time - self.quickest - 1.0


MAX_MISSED = 500
HEARD = 64  # messages from which the server's clock is estimated


class ServerClock:
    """Estimates how far our clock is ahead of the server's, from messages that arrived when they
    were said.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: deque[float] = deque(
            maxlen=HEARD
        )  # seconds, including the delay of each message
        self._surely: deque[float] = deque(
            maxlen=HEARD
        )  # likewise, of messages that were certainly said since this process started
        self._lateness: defaultdict[int, Lateness] = defaultdict(Lateness)  # by account
        self._missed: dict[Identity, None] = {}

    def record_arrival(self, message: MessageReceived) -> None:
        if not self.is_missed(message):
            self._ahead.append(self._clock.now() - message.time)
            self._lateness[message.self_id].record(message.time, self._clock.monotonic())

    def record_new(self, message: MessageReceived) -> None:
        """Record a message that was certainly said since this process started, not repeated by a
        server.
        """
        if not self.is_missed(message):
            self._surely.append(self._clock.now() - message.time)

    def add_missed(self, message: MessageReceived) -> None:
        """Record a message that had not arrived, and was found in a history."""
        self._missed[message.identity] = None
        if len(self._missed) > MAX_MISSED:
            del self._missed[next(iter(self._missed))]

    def is_missed(self, message: MessageReceived) -> bool:
        return bool(self._missed) and message.identity in self._missed

    def age(self, message: MessageReceived) -> float:
        """Seconds since it was said; by our clock alone until a new message shows the server's."""
        return self._clock.now() - message.time - min(self._surely, default=0.0)

    def by_ours(self, time: float, account: int) -> float:
        """Convert a time of the account's server to our clock, as far as messages allow."""
        behind = self._lateness[account].quickest
        if behind == math.inf:
            return time
        return time + behind + self._clock.now() - self._clock.monotonic()

    def least(self, message: MessageReceived) -> float:
        """The least number of seconds since it was said, from the delay of other messages and
        independent of clocks; unknown for the first one.
        """
        return self._lateness[message.self_id].least(message.time, self._clock.monotonic())

    def is_older(self, message: MessageReceived, asked: float) -> bool:
        """Whether it was said before `asked` (by our clock, in seconds since 1970), or that is
        unknown. A message's time is a whole second. If the server's clock is ahead of ours, it is
        taken as right.
        """
        ahead = max(0.0, min(self._ahead, default=0.0))
        return self.is_missed(message) or message.time < math.floor(asked - ahead)
