"""Accounts that came (back), and the places of theirs that are to be caught up with.

From the moment an account is there nothing new is begun in these places: their lanes are held
before any message of the new connection is taken.
"""

from __future__ import annotations

import asyncio
import math

from bot.conversation.intake.places import Arrival
from bot.conversation.queue.lanes import Lanes
from bot.conversation.tasks import YOUNG, Work
from bot.domain.events import Conversation
from bot.domain.ports import Clock
from bot.speaking.unconfirmed import Unconfirmed

MAX_PLACES = 30  # the latest ones
ACTIVE = 24 * 3600.0  # seconds a conversation counts as in use


class CatchupRound:
    """One arrival: the places to look at, each with the time since when, and those whose lanes are
    still held.
    """

    def __init__(self, account: int, since: dict[Conversation, float]) -> None:
        self.account = account
        self.since = since
        self.held = {where for where, begin in since.items() if begin < math.inf}


class Arrivals:
    """The rounds that nobody has begun with, in order."""

    def __init__(self, *, lanes: Lanes[Work], unconfirmed: Unconfirmed, clock: Clock) -> None:
        self._lanes = lanes
        self._unconfirmed = unconfirmed
        self._clock = clock
        self._rounds: asyncio.Queue[CatchupRound] = asyncio.Queue()

    def take(self, arrival: Arrival) -> None:
        """An account is there: nothing new is begun in its conversations before they are caught up
        with.
        """
        round_ = CatchupRound(arrival.account, self._places(arrival))
        for where in round_.held:
            self._lanes.hold(where)
        self._rounds.put_nowait(round_)

    async def next(self) -> CatchupRound:
        """The next round; whoever takes it lets its lanes go on."""
        return await self._rounds.get()

    def _places(self, arrival: Arrival) -> dict[Conversation, float]:
        now = self._clock.now()
        in_use = [
            (where, heard)
            for where, heard in arrival.heard
            if where.platform_id == arrival.account and heard >= now - ACTIVE
        ]
        in_use.sort(key=lambda place: place[1], reverse=True)
        # What is young is looked at in any case: it may have been missed before something that was
        # heard.
        places = {where: min(heard, now - YOUNG) for where, heard in in_use[:MAX_PLACES]}
        for where in self._unconfirmed.places(arrival.account):
            places.setdefault(where, math.inf)
        return places
