"""After a connection was lost: what was said meanwhile, once, for each conversation that is in use.

OneBot servers do not repeat what nobody listened to; NapCat and LLBot can be asked for the history. Old messages are
only heard; a question to the bot that is younger than two minutes is answered, once, like any other. Histories also
show what became of sends that nobody confirmed.
"""

from __future__ import annotations

import asyncio
import logging
import math

from bot.dispatcher import DEDUPLICATION, YOUNG, Arrival, Dispatcher
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock, Store, Transport
from bot.outbox import Outbox

logger = logging.getLogger(__name__)

MAX_PLACES = 30  # the latest ones
MESSAGES = 50  # of each
UNSUPPORTED = (404, 1404)  # the action is not known
ACTIVE = 24 * 3600.0  # seconds a conversation counts as in use


class Catchup:
    """Looks at the histories of an account's conversations whenever the account comes (back)."""

    def __init__(
        self, *, transport: Transport, dispatcher: Dispatcher, outbox: Outbox, store: Store, clock: Clock
    ) -> None:
        self._transport = transport
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Catch up for each account that connects, beside the others, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._catch_up(await self._dispatcher.next_connected()))

    async def _catch_up(self, arrival: Arrival) -> None:
        try:
            await self._look_at_all(arrival)
        except NotConnected:
            logger.info("account %d is gone again before it was caught up with", arrival.account)
        except Exception:
            logger.exception("catching up for account %d failed", arrival.account)

    async def _look_at_all(self, arrival: Arrival) -> None:
        now = self._clock.now()
        in_use = [
            (where, heard)
            for where, heard in arrival.heard
            if where.platform_id == arrival.account and heard >= now - ACTIVE
        ]
        in_use.sort(key=lambda place: place[1], reverse=True)
        # What is young is looked at in any case: it may have been missed before something that was heard.
        places = {where: min(heard, now - YOUNG) for where, heard in in_use[:MAX_PLACES]}
        for where in self._outbox.in_doubt(arrival.account):
            places.setdefault(where, math.inf)
        unsupported: set[bool] = set()
        for where, since in places.items():
            if where.is_group not in unsupported and not await self._look_at(where, since):
                unsupported.add(where.is_group)

    async def _look_at(self, where: Conversation, since: float) -> bool:
        """What was said in one place since then; False if this server cannot tell histories of its kind."""
        try:
            history = await self._transport.get_history(where, count=MESSAGES)
        except ActionRefused as error:
            logger.info("no history of %s: %s", where, error)
            return error.retcode not in UNSUPPORTED
        except ActionUnanswered as error:
            logger.info("no history of %s: %s", where, error)
            return True
        self._outbox.compare(history)
        for message in await self._new(where, [one for one in history if not one.is_own and one.time >= since]):
            self._dispatcher.take_missed(message)
        return True

    async def _new(self, where: Conversation, found: list[MessageReceived]) -> list[MessageReceived]:
        """Those that nobody has heard yet; of what is older than the dispatcher's memory, only the store knows."""
        if not found:
            return []
        heard = await self._store.heard(where, [message.message_id for message in found])
        if heard is None:
            begin = self._clock.now() - DEDUPLICATION
            return [message for message in found if message.time > begin]
        return [message for message in found if message.message_id not in heard]
