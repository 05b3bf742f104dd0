"""After a connection was lost: what was said meanwhile, once, for each group that is in use.

OneBot servers do not repeat what nobody listened to; NapCat and LLBot can be asked for the history. Old messages are
only heard; a question to the bot that is younger than two minutes is answered, once, like any other.
"""

from __future__ import annotations

import logging

from bot.dispatcher import Dispatcher
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
            account = await self._dispatcher.next_connected()
            try:
                await self._catch_up(account)
            except NotConnected:
                logger.info("account %d is gone again before its groups were caught up", account)
            except Exception:
                logger.exception("catching up for account %d failed", account)

    async def _catch_up(self, account: int) -> None:
        since = self._clock.now() - ACTIVE
        groups = [
            (where, heard)
            for where, heard in self._dispatcher.heard.items()
            if where.platform_id == account and heard >= since
        ]
        groups.sort(key=lambda group: group[1], reverse=True)
        for where, heard in groups[:MAX_GROUPS]:
            if not await self._catch_up_with(where, heard):
                return

    async def _catch_up_with(self, where: Conversation, heard: float) -> bool:
        """One group; False if this server cannot tell histories at all."""
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
            if not message.is_own and message.time >= heard:
                self._dispatcher.take_missed(message)
        return True
