"""A private line to the owner: what only they can mend, at most once in ten minutes for each kind of trouble."""

from __future__ import annotations

import logging

from bot.domain.actions import SendMessage
from bot.domain.events import Conversation
from bot.domain.ports import Clock
from bot.domain.segments import Text
from bot.outbox import Outbox

logger = logging.getLogger(__name__)

QUIET = 600.0  # seconds between two lines of one kind


class Owner:
    """Writes to every owner from the account that connected last, at the latest when one connects.

    Without owners the log has to do.
    """

    def __init__(self, *, owners: frozenset[int], outbox: Outbox, clock: Clock) -> None:
        self._owners = sorted(owners)
        self._outbox = outbox
        self._clock = clock
        self._told: dict[str, float] = {}
        self._untold: dict[str, str] = {}
        self._account = 0

    def connected(self, account: int) -> None:
        """An account can speak (again)."""
        self._account = account
        untold, self._untold = self._untold, {}
        for text in untold.values():
            self._say(text)

    def tell(self, kind: str, text: str) -> None:
        """Say it, unless that was done lately; never waits, never raises."""
        logger.warning("for the owner (%s): %s", kind, text)
        now = self._clock.monotonic()
        if now - self._told.get(kind, -QUIET) < QUIET:
            return
        self._told[kind] = now
        if self._account:
            self._say(text)
        else:
            self._untold[kind] = text

    def _say(self, text: str) -> None:
        for owner in self._owners:
            where = Conversation(self._account, "private", owner)
            self._outbox.post(SendMessage(where, (Text(text),)))
