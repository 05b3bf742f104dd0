"""After a connection was lost: what was said meanwhile, once, for each conversation that is in use.

OneBot servers do not repeat what nobody listened to; NapCat and LLBot can be asked for the history.
Old messages are only heard; a question to the bot that is younger than two minutes and has no
answer yet is answered, once, like any other, and in its turn: until a place is caught up with,
nothing new is begun there, though nobody waits for long. Histories also show what became of sends
that nobody confirmed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from bot.conversation.intake.seen import DEDUPLICATION
from bot.conversation.queue.lanes import Lanes
from bot.conversation.recovery.arrivals import Arrivals, CatchupRound
from bot.conversation.recovery.held import HeldLanes
from bot.conversation.recovery.histories import read_history
from bot.conversation.recovery.late import Late
from bot.conversation.tasks import Work
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock, Store, Transport
from bot.policy.answered_questions import answered_ids
from bot.speaking.outbox import Outbox

logger = logging.getLogger(__name__)

MESSAGES = 50  # of each
UNSUPPORTED = (404, 1404, -1)  # the action is not known; -1 is onebots' way to say so
HELD = 3.0  # seconds a lane waits at most


class Catchup:
    """Looks at the histories of an account's conversations whenever the account comes (back)."""

    def __init__(
        self,
        *,
        transport: Transport,
        arrivals: Arrivals,
        late: Late,
        held: HeldLanes,
        lanes: Lanes[Work],
        outbox: Outbox,
        store: Store,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._arrivals = arrivals
        self._late = late
        self._held = held
        self._lanes = lanes
        self._outbox = outbox
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Catch up for each account that connects, beside the others, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._catch_up(await self._arrivals.next()))

    async def _catch_up(self, round_: CatchupRound) -> None:
        async with asyncio.TaskGroup() as group:
            patience = group.create_task(self._lose_patience(round_))
            try:
                await self._look_at_all(round_)
            except NotConnected:
                logger.info("account %d is gone again before it was caught up with", round_.account)
                for where in round_.held:
                    self._held.put_off(where)
            except Exception:
                logger.exception("catching up for account %d failed", round_.account)
            patience.cancel()
        self._let_go(round_)

    async def _lose_patience(self, round_: CatchupRound) -> None:
        await self._clock.sleep(HELD)
        if round_.held:
            logger.info(
                "account %d: what was missed in %d places is not known yet",
                round_.account,
                len(round_.held),
            )
        self._let_go(round_)

    def _let_go(self, round_: CatchupRound) -> None:
        for where in list(round_.held):
            self._go_on(round_, where)

    def _go_on(
        self,
        round_: CatchupRound,
        where: Conversation,
        history: Sequence[MessageReceived] = (),
        known: Collection[str] = (),
    ) -> None:
        if where in round_.held:
            round_.held.remove(where)
            self._held.go_on(where, history, known)

    async def _look_at_all(self, round_: CatchupRound) -> None:
        """Each place once; first those where somebody waits by now."""
        unsupported: set[bool] = set()
        left = dict(round_.since)
        while left:
            where = max(left, key=self._lanes.has)
            since = left.pop(where)
            if where.is_group not in unsupported and not await self._look_at(round_, where, since):
                unsupported.add(where.is_group)
            self._go_on(round_, where)

    async def _look_at(self, round_: CatchupRound, where: Conversation, since: float) -> bool:
        """Look at what was said in one place since then; False if this server cannot tell histories
        of its kind.
        """
        try:
            history, heard = await read_history(self._transport, self._store, where, count=MESSAGES)
        except ActionRefused as error:
            logger.info("no history of %s: %s", where, error)
            return error.retcode not in UNSUPPORTED
        except ActionUnanswered as error:
            logger.info("no history of %s: %s", where, error)
            return True
        self._outbox.compare(one for one in history if one.message_id not in (heard or ()))
        known = self._accounted(history, heard or ())
        found = [message for message in history if not message.is_own and message.time >= since]
        answers = answered_ids(history, accounted=known)
        for message in self._new(found, heard):
            self._late.take_missed(message, answered=message.message_id in answers)
        self._go_on(round_, where, history, known)
        return True

    def _accounted(self, history: Sequence[MessageReceived], heard: Collection[str]) -> list[str]:
        """The account's own messages of which it is known what they answered."""
        own = (message for message in history if message.is_own)
        return [
            one.message_id
            for one in own
            if one.message_id in heard or self._outbox.unconfirmed.is_known(one)
        ]

    def _new(
        self, found: list[MessageReceived], heard: Collection[str] | None
    ) -> list[MessageReceived]:
        """Those that nobody has heard yet; of what is older than the dispatcher's memory, only the
        store knows.
        """
        if heard is None:
            begin = self._clock.now() - DEDUPLICATION
            return [message for message in found if message.time > begin]
        return [message for message in found if message.message_id not in heard]
