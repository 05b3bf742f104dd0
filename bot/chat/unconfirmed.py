"""Looks for sends that were unconfirmed when their turn stopped waiting, and tells the asker if the
answer was lost.

A history that reaches back past a send and lacks it proves that the send was lost. So does a
refusal by QQ of a send that waited for a connection, also one recorded by an earlier process. If
the lost send was the answer, its asker is asked to ask again, once; the answer itself is never
repeated. The next prompt contains that line as overheard: the stored round says only that the
answer was not confirmed. Followers of turns receive the outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from bot.chat.backfill import read_history
from bot.chat.tasks import YOUNG
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived, Sender
from bot.core.journal import Entry, MessageObserved, Spoken, Undelivered
from bot.core.language import Phrase
from bot.core.lru import LRU
from bot.core.ports import Settled, Store, Transport
from bot.memory.history import History
from bot.outbox.outbox import Outbox
from bot.outbox.sends import Send
from bot.policy.answered_questions import is_undelivered, lacks_answer, lost_part
from bot.policy.fallback_replies import LOST, apology, is_apology, refusal_reply
from frostagent.types.ports import Clock
from frostagent.types.runs import Stop
from frostagent.types.speech import Refused, Text

logger = logging.getLogger(__name__)

MESSAGES = 50
MAX_TURNS = 1000
AWAITED = frozenset({Undelivered.UNCONFIRMED, Stop.INTERRUPTED})
"""The ends of turns whose askers have got no other line. One interrupted by a restart may have left
its answer queued.
"""
LAG = 5.0  # seconds after which a history contains what was delivered


class UnconfirmedChecker:
    """Reads histories of conversations with unconfirmed sends, and follows sends that are settled
    late.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        outbox: Outbox,
        store: Store,
        history: History,
        clock: Clock,
        settled: Sequence[Settled] = (),
    ) -> None:
        self._settled = tuple(settled)
        self._history = history
        self._transport = transport
        self._outbox = outbox
        self._unconfirmed = outbox.unconfirmed
        self._store = store
        self._clock = clock
        self._looking: set[Conversation] = set()
        self._outcomes = LRU[str, str](MAX_TURNS)  # reported ones, by turn
        self._told = LRU[str, None](MAX_TURNS)  # turns whose askers were asked to ask again

    async def run(self) -> None:
        """Check conversations with unconfirmed sends, in parallel, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_settled(group))
            while True:
                where = await self._unconfirmed.next()
                if where not in self._looking:
                    self._looking.add(where)
                    group.create_task(self._look_after_a_while(where))

    async def _look_after_a_while(self, where: Conversation) -> None:
        """Check until there is nothing left to learn: a running turn may yet answer."""
        try:
            await self._clock.sleep(LAG)
            while await self._look(where):
                await self._clock.sleep(LAG)
        except (NotConnected, ActionRefused, ActionUnanswered) as error:
            logger.info("no history of %s: %s", where, error)  # retried after the next connection
        except Exception:
            logger.exception("looking for what was said in %s failed", where)
        finally:
            self._looking.remove(where)

    async def _look(self, where: Conversation) -> bool:
        """Settle what can be settled; True if more may be learned later."""
        ripe = [send for send in self._young(where) if send.doubted <= self._clock.now() - LAG]
        if not ripe:
            return bool(self._young(where))
        history, sent = await read_history(self._transport, self._store, where, count=MESSAGES)
        self._outbox.compare(one for one in history if one.message_id not in (sent or ()))
        own = [message for message in history if message.is_own]
        if sent is None:
            return True
        known = [
            one.message_id
            for one in own
            if one.message_id in sent or self._unconfirmed.is_known(one)
        ]
        turns = {
            send.turn_id: [one for one in ripe if one.turn_id == send.turn_id] for send in ripe
        }
        goes_on = [
            await self._settle(turn_id, sends, history, known) for turn_id, sends in turns.items()
        ]
        return any(goes_on) or any(send not in ripe for send in self._young(where))

    def _young(self, where: Conversation) -> list[Send]:
        begin = self._clock.now() - YOUNG
        return [send for send in self._unconfirmed.at(where) if send.turn_id and send.at > begin]

    async def _settle(
        self,
        turn_id: str,
        sends: Sequence[Send],
        history: Sequence[MessageReceived],
        known: Collection[str],
    ) -> bool:
        """Settle the sends of one turn; True if the turn is still running, so that they may yet
        matter.
        """
        spoken = await self._store.spoken(turn_id)
        if spoken is None or any(is_apology(send.action) for send in spoken.sends):
            return False
        doubted = [send for send in sends if self._unconfirmed.holds(send)]
        lost = [
            send
            for send in doubted
            if lacks_answer(history, spoken.question, send.at, accounted=known)
        ]
        if lost and is_undelivered(spoken, {send.send_id for send in lost}):
            self._tell(spoken, lost)
        return not spoken.is_over

    def _tell(self, spoken: Spoken, lost: Sequence[Send]) -> None:
        entries = self._unconfirmed.lost(lost)
        logger.warning("the answer of run %s was never delivered", lost[0].turn_id)
        self._ask_to_ask_again(spoken, lost[0].turn_id, LOST, *entries)

    # --- refused or found late --------------------------------------------------------------------

    async def _follow_settled(self, group: asyncio.TaskGroup) -> None:
        while True:
            group.create_task(self._follow(await self._outbox.settled.get()))

    async def _follow(self, send: Send) -> None:
        """Once its turn is over, report the outcome, and tell the asker what QQ refused."""
        try:
            spoken = await self._over(send.turn_id)
            if spoken is None:
                return
            self._tell_outcome(send.turn_id, spoken)
            if line := self._line_for(send, spoken):
                self._ask_to_ask_again(spoken, send.turn_id, line)
        except Exception:
            logger.exception("what became of run %s is not told", send.turn_id)

    async def _over(self, turn_id: str) -> Spoken | None:
        """The turn once it has ended; None if it is erased, or takes too long to matter."""
        patience = self._clock.now() + YOUNG
        while (spoken := await self._store.spoken(turn_id)) is not None and not spoken.is_over:
            if self._clock.now() >= patience:
                return None
            await self._clock.sleep(LAG)
        return spoken

    def _tell_outcome(self, turn_id: str, spoken: Spoken) -> None:
        """Report an outcome that was unknown when the turn ended."""
        if spoken.ended != Undelivered.UNCONFIRMED or spoken.outcome in (
            Undelivered.UNCONFIRMED,
            self._outcomes.get(turn_id),
        ):
            return
        self._outcomes.keep(turn_id, spoken.outcome)
        logger.info("the answer of run %s, unconfirmed at its end: %s", turn_id, spoken.outcome)
        for settled in self._settled:
            try:
                settled(turn_id, spoken.outcome)
            except Exception:
                logger.exception("%r broke on the outcome of run %s", settled, turn_id)

    def _line_for(self, send: Send, spoken: Spoken) -> Phrase | None:
        """The line for the asker about this refusal; None if nothing was lost, or they cannot be
        told.
        """
        receipt = send.receipt.result() if send.receipt.done() else None
        if not isinstance(receipt, Refused) or spoken.ended not in AWAITED:
            return None
        if any(is_apology(one.action) for one in spoken.sends):
            return None
        part = lost_part(spoken, send.send_id)
        return None if part == "nothing" else refusal_reply(receipt, is_part=part == "rest")

    def _ask_to_ask_again(
        self, spoken: Spoken, turn_id: str, line: Phrase, *entries: Entry
    ) -> None:
        """Send this line to the asker, unless that was done, in one commit with the entries."""
        question = spoken.question
        where = question.conversation
        if spoken.uncalled or turn_id in self._told:
            self._store.put(*entries)
            return
        self._told.keep(turn_id, None)
        logger.info("who asked run %s hears that its answer was not delivered", turn_id)
        action = apology(question, line)
        told = MessageReceived(
            self_id=where.platform_id,
            time=self._clock.now(),
            conversation=where,
            message_id=f"lost-{turn_id}",
            sender=Sender(where.platform_id),
            segments=(Text(action.words),),
            group_name=question.group_name,
        )
        self._history.overhear(told)
        overheard = MessageObserved(told, overheard=True)
        self._outbox.post_with(
            overheard, *entries, action=action, turn_id=turn_id, question=question
        )
