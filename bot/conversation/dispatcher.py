"""Every event of every connection, handed to the one it concerns.

Never awaits anything: it runs on the connection's own reading loop.
"""

from __future__ import annotations

import logging
from typing import assert_never

from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.places import Places
from bot.conversation.intake.pokes import Pokes
from bot.conversation.interruptions.recalls import Recalls
from bot.conversation.recovery.greetings import Greetings
from bot.conversation.way import MessageWay
from bot.domain.events import (
    AccountChanged,
    Connected,
    Event,
    Heartbeat,
    MemberChanged,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
    Noticed,
    Poked,
    Requested,
)
from bot.memory.history import History
from bot.speaking.outbox import Outbox

logger = logging.getLogger(__name__)


class Dispatcher:
    """The `EventSink` of all connections."""

    def __init__(
        self,
        *,
        way: MessageWay,
        recalls: Recalls,
        mutes: Mutes,
        places: Places,
        greetings: Greetings,
        pokes: Pokes,
        history: History,
        outbox: Outbox,
    ) -> None:
        self._way = way
        self._recalls = recalls
        self._mutes = mutes
        self._places = places
        self._greetings = greetings
        self._pokes = pokes
        self._history = history
        self._outbox = outbox

    async def handle(self, event: Event) -> None:
        """Take one event of any kind."""
        self._places.accounts.add(event.self_id)
        match event:
            case MessageReceived():
                self._way.take(event)
            case MessageSent():
                self._history.know(event.message)
                self._outbox.seen(event.message)
            case MessageRecalled():
                self._recalls.take(event)
            case Muted():
                self._mutes.take(event)
            case AccountChanged(online=online, reason=reason):
                level, state = (logging.INFO, "online") if online else (logging.ERROR, "offline")
                logger.log(level, "account %d is %s %s", event.self_id, state, reason)
            case Connected(self_id=account):
                self._greetings.take(account)
            case Poked():
                self._pokes.take(event)
            case Heartbeat() | MemberChanged() | Requested() | Noticed():
                logger.debug("%s of %d", event.type, event.self_id)
            case _:
                assert_never(event)
