"""At start: what an earlier process left behind is closed, told, sent or asked again, each at most once.

- A turn left open is interrupted: its calls get their result, its round is kept, nothing in it runs again.
- Its asker, if the question is young and has no answer, gets one now: a new run if nothing had happened yet, a polite
  line if something was said or done. Such a second try is never tried a third time: then it is a polite line, too.
- A send that was never on the wire is sent if it is young, else dropped; one that may have been on the wire is only
  looked out for.

A store that cannot be read at the start is asked again until it can: then only of what earlier processes wrote, and a
question that came again meanwhile is not asked a second time.

The process may end in here as well: a turn is closed in the same commit in which what its asker gets is written down.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from bot.dispatcher import YOUNG, Dispatcher
from bot.domain.actions import SendMessage
from bot.domain.chat import AssistantMessage, Usage
from bot.domain.journal import OpenTurn, Recovery, SendChanged, SendQueued, SendState, StoredSend, TurnClosed
from bot.domain.ports import Clock, Store
from bot.domain.run import Stop
from bot.domain.segments import Quote, Text
from bot.outbox import Outbox
from bot.toolset import Toolset
from bot.transcripts import close_interrupted
from bot.turn import Turns

logger = logging.getLogger(__name__)

LOOK = 2.0  # seconds between two looks at a store that could not be read at the start
INTERRUPTED = "(被打断了)"
SORRY = "刚才重启了一下，没能答完，请再问一次。"
ON_WIRE = (SendState.SENDING, SendState.UNKNOWN, SendState.CONFIRMED)


class Recoverer:
    """Goes through the store's `Recovery`, once."""

    def __init__(
        self, *, store: Store, dispatcher: Dispatcher, turns: Turns, outbox: Outbox, toolset: Toolset, clock: Clock
    ) -> None:
        self._store = store
        self._turns = turns
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._toolset = toolset
        self._clock = clock
        self._is_done = False

    async def start(self) -> bool:
        """Settle everything, before any event is taken; False where the store cannot be read: `run` goes on trying."""
        recovery = await self._store.recover()
        if recovery is None:
            return False
        await self.recover(recovery)
        self._is_done = True
        return True

    async def run(self) -> None:
        """Settle everything once the store can be read, unless that is done; new questions are answered meanwhile."""
        while not self._is_done:
            await self._clock.sleep(LOOK)
            if await self.start():
                logger.info("what the earlier process left is settled now")

    async def recover(self, recovery: Recovery) -> None:
        """Settle everything; the lanes and the outbox must be open."""
        taken = {turn.turn_id for turn in recovery.turns if self._dispatcher.knows(turn.question)}
        waking = [message for message in recovery.waking if not self._dispatcher.knows(message)]
        self._dispatcher.preload(recovery.seen, recovery.active)
        coming = [send for send in recovery.sends if self._settle_send(send)]
        again = []
        for turn in recovery.turns:
            if turn.recalled:
                self._turns.give_up(turn)
            elif turn.turn_id in taken or not self._is_owed_an_answer(turn, coming):
                await self._store.commit(self._close(turn))
            elif turn.retry_of or self._had_effects(turn, coming):
                await self._apologise(turn)
            else:
                again.append(turn)
        for turn in again:
            logger.info("run %s was interrupted before its answer: asking again", turn.turn_id)
            self._dispatcher.retry(turn)
        for suspended in recovery.suspended:
            self._turns.restore(suspended)
        for message in waking:
            self._dispatcher.ask_again(message)
        if recovery.turns or recovery.sends:
            logger.info("after a restart: %d runs interrupted, %d sends", len(recovery.turns), len(recovery.sends))

    def _settle_send(self, send: StoredSend) -> bool:
        """Whether it will be sent now."""
        if send.state is not SendState.QUEUED:
            self._outbox.remember_unknown(send)
            return False
        if send.whole and self._is_young(send.at):
            self._outbox.resume(send)
            return True
        reason = "too old after a restart" if send.whole else "its media were not kept over a restart"
        self._store.put(SendChanged(send_id=send.send_id, state=SendState.DROPPED, at=self._clock.now(), reason=reason))
        return False

    def _close(self, turn: OpenTurn) -> TurnClosed:
        messages = close_interrupted(turn.messages)
        if not messages or not isinstance(messages[-1], AssistantMessage):
            messages = (*messages, AssistantMessage(INTERRUPTED))
        return TurnClosed(
            turn_id=turn.turn_id,
            stop=Stop.INTERRUPTED,
            round=(turn.user, *messages),
            usage=Usage(),
            steps=sum(isinstance(message, AssistantMessage) for message in turn.messages),
            at=self._clock.now(),
            error="interrupted: the process ended",
        )

    def _is_owed_an_answer(self, turn: OpenTurn, coming: Iterable[StoredSend]) -> bool:
        answered = any(send.final and send.state in ON_WIRE for send in turn.sends)
        coming_now = any(send.final and send.turn_id == turn.turn_id for send in coming)
        return not (answered or coming_now) and self._is_young(turn.question.time)

    def _had_effects(self, turn: OpenTurn, coming: Iterable[StoredSend]) -> bool:
        """Whether something was or will be said, or a call began that may have changed something."""
        if any(send.state in ON_WIRE for send in turn.sends) or any(send.turn_id == turn.turn_id for send in coming):
            return True
        tools = [self._toolset.get(name) for name in turn.started]
        return any(tool is None or not tool.side_effects.is_harmless for tool in tools)

    async def _apologise(self, turn: OpenTurn) -> None:
        logger.info("run %s was interrupted in the middle of its work: telling the asker", turn.turn_id)
        question = turn.question
        quote = (Quote(question.message_id),) if question.conversation.is_group and question.message_id else ()
        action = SendMessage(question.conversation, (*quote, Text(SORRY)))
        send = self._outbox.prepare(action, turn_id=turn.turn_id, final=True)
        queued = SendQueued(
            send_id=send.send_id, turn_id=send.turn_id, action=send.action, final=send.final, at=send.at
        )
        await self._store.commit(self._close(turn), queued)
        self._outbox.resume(send)

    def _is_young(self, time: float) -> bool:
        return self._clock.now() - time < YOUNG
