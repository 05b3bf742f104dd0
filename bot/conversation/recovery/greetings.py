"""An account that can be called (again): everybody who waited for that, or knew something of its
server, is told.
"""

from __future__ import annotations

from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.places import Places
from bot.conversation.queue.put_off import PutOff
from bot.conversation.recovery.deafness import DeafnessWatch
from bot.speaking.gestures import Gestures
from bot.speaking.outbox import Outbox
from bot.speaking.owner_alerts import Owner


class Greetings:
    """Passes on that an account is connected, in the order in which it concerns them."""

    def __init__(
        self,
        *,
        mutes: Mutes,
        owner: Owner,
        outbox: Outbox,
        gestures: Gestures,
        places: Places,
        put_off: PutOff,
        deafness: DeafnessWatch,
    ) -> None:
        self._mutes = mutes
        self._owner = owner
        self._outbox = outbox
        self._gestures = gestures
        self._places = places
        self._put_off = put_off
        self._deafness = deafness

    def take(self, account: int) -> None:
        """The account can be called from now on."""
        self._mutes.forget(account)
        self._outbox.unreachable.forget(account)
        self._owner.connected(account)
        self._gestures.connected(account)
        self._outbox.connected()
        self._places.connected(account)
        self._deafness.connected(account)
        self._put_off.ask(account)
