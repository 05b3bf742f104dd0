"""After a connection was lost: what was said meanwhile, once, for each group that is in use.

OneBot servers do not repeat what nobody listened to; NapCat and LLBot can be asked for the history. Old messages are
only heard; a question to the bot that is younger than two minutes is answered, once, like any other. Histories also
show what became of sends that nobody confirmed, in private too.
"""

from __future__ import annotations

import logging
import math

from bot.dispatcher import YOUNG, Arrival, Dispatcher
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.events import Conversation
from bot.domain.ports import Clock, Transport
from bot.outbox import Outbox

logger = logging.getLogger(__name__)

MAX_GROUPS = 30  # the latest ones
MESSAGES = 50  # of each
UNSUPPORTED = (404, 1404)  # the action is not known
ACTIVE = 24 * 3600.0  # seconds a group counts as in use


class Catchup:
    """Looks at the histories of an account's groups whenever the account comes (back)."""

    def __init__(self, *, transport: Transport, dispatcher: Dispatcher, outbox: Outbox, clock: Clock) -> None:
        self._transport = transport
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._clock = clock

    async def run(self) -> None:
        """Catch up for each account that connects, one after the other, until cancelled."""
        while True:
            arrival = await self._dispatcher.next_connected()
            try:
                await self._catch_up(arrival)
            except NotConnected:
                logger.info("account %d is gone again before its groups were caught up", arrival.account)
            except Exception:
                logger.exception("catching up for account %d failed", arrival.account)

    async def _catch_up(self, arrival: Arrival) -> None:
        now = self._clock.now()
        groups = [
            (where, heard)
            for where, heard in arrival.heard
            if where.platform_id == arrival.account and heard >= now - ACTIVE
        ]
        groups.sort(key=lambda group: group[1], reverse=True)
        for where, heard in groups[:MAX_GROUPS]:
            # What is young is looked at in any case: it may have been missed before something that was heard.
            if not await self._catch_up_with(where, min(heard, now - YOUNG)):
                return
        looked_at = {where for where, _ in groups[:MAX_GROUPS]}
        for where in self._outbox.in_doubt(arrival.account):
            if where not in looked_at and not await self._catch_up_with(where, math.inf):
                return

    async def _catch_up_with(self, where: Conversation, since: float) -> bool:
        """What was said in one place since then; False if this server cannot tell histories at all."""
        try:
            history = await self._transport.get_history(where, count=MESSAGES)
        except ActionRefused as error:
            logger.info("no history of %s: %s", where, error)
            return error.retcode not in UNSUPPORTED
        except ActionUnanswered as error:
            logger.info("no history of %s: %s", where, error)
            return True
        self._outbox.compare(history)
        for message in history:
            if not message.is_own and message.time >= since:
                self._dispatcher.take_missed(message)
        return True
