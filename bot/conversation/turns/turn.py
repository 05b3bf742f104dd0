"""One wake from question to last confirmed send: perception -> prompt -> engine -> delivery ->
history.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager, nullcontext

from bot.conversation.turns.context_builder import ContextBuilder, Turn
from bot.conversation.turns.finalizer import NOTHING_SAID, Finalizer, Said
from bot.conversation.turns.live import LiveTurn, LiveTurns
from bot.conversation.turns.suspensions import Suspensions, WaitingTurn
from bot.conversation.turns.turn_journal import TurnJournal
from bot.core.events import Identity, MessageReceived
from bot.core.journal import Entry, OpenTurn, RunResumed
from bot.memory.history import History
from bot.memory.lru import LRU
from bot.outbox.gestures import Gestures
from bot.policy.approval import NOT_PROMISED
from bot.policy.wake import CALLED, Wake
from frostagent.engine.engine import Engine, RunState
from frostagent.engine.transcripts import close_suspended
from frostagent.types.runs import Outcome, Stop, SuspendedRun
from frostagent.types.suspension import Decision, Deny

logger = logging.getLogger(__name__)

MAX_DISOWNED = 1000


class Turns:
    """Takes wakes, one at a time for each lane."""

    def __init__(
        self,
        *,
        engine: Engine,
        context_builder: ContextBuilder,
        finalizer: Finalizer,
        suspensions: Suspensions,
        history: History,
        turn_journal: TurnJournal,
        live: LiveTurns,
        gestures: Gestures,
    ) -> None:
        self._engine = engine
        self._context_builder = context_builder
        self._finalizer = finalizer
        self._suspensions = suspensions
        self._history = history
        self._turn_journal = turn_journal
        self._live = live
        self._gestures = gestures
        self._disowned = LRU[Identity, None](MAX_DISOWNED)

    def disown(self, message: MessageReceived) -> None:
        """The question is not to be answered any more: its turn, when it is cancelled, leaves
        nothing behind.
        """
        self._disowned.keep(message.identity, None)

    async def take(
        self,
        message: MessageReceived,
        *,
        lines: tuple[MessageReceived, ...] = (),
        retry: OpenTurn | None = None,
        wake: Wake = CALLED,
    ) -> None:
        """Answer one message with the `lines` that belong to it. Only a cancellation gets out; what
        was said until then stays in the history. After a weak `wake` nothing said is an answer.

        A `retry` takes the place of the turn it repeats, with the same words for the model and in
        one commit, so that there is one of them in the history, and one left open, whenever the
        process ends.
        """
        with self._live.going_on(message, lines) as live:
            try:
                begun = await self._context_builder.begin(message, retry, lines=lines, wake=wake)
            except asyncio.CancelledError:
                if live.is_stopped or message.identity in self._disowned:
                    live.close(dropped=True)
                    self._history.doubt(message.conversation)  # what it had taken, nobody read
                raise
            turn = live.begin(begun, self._context_builder.seeing)
            opened = self._turn_journal.opened(
                turn.run.id, turn.question, turn.user, retry, uncalled=wake.is_uncalled
            )
            await self._finish(live, turn, self._begin(live, turn, *opened))

    def _signs_for(self, turn: Turn) -> AbstractContextManager[None]:
        """Signs of work for whoever asked; where nobody did there is nobody to show them to."""
        return (
            nullcontext() if turn.wake.is_uncalled else self._gestures.while_working(turn.message)
        )

    async def _begin(self, live: LiveTurn, turn: Turn, *entries: Entry) -> Outcome | SuspendedRun:
        await self._turn_journal.begin(*entries)
        with self._signs_for(turn):
            return await self._engine.run(await self._context_builder.seeing(turn), live.state)

    async def resume(self, turn_id: str, decisions: Mapping[str, Decision]) -> None:
        """Go on with a suspended turn; what is not decided waits on, or is denied when it has
        expired.
        """
        if question := self._suspensions.question(turn_id):
            await self._history.load(question.conversation)
        waiting = self._suspensions.take(turn_id)
        if waiting is None:
            logger.warning("run %s does not wait (any more)", turn_id)
            return
        asked = {pending.call.id for pending in waiting.run.pending}
        meant = {call_id: word for call_id, word in decisions.items() if call_id in asked}
        with self._live.going_on(waiting.question) as live:
            go_on = self._context_builder.go_on(turn_id, waiting)
            turn = live.begin(go_on, self._context_builder.seeing)
            # Should it turn out that it cannot go on, this is what is left of it.
            run = waiting.run
            live.state = RunState(list(close_suspended(run)), run.usage, run.steps)
            await self._finish(live, turn, self._go_on(turn, run, meant, live.state))

    async def _go_on(
        self,
        turn: Turn,
        suspended: SuspendedRun,
        decisions: Mapping[str, Decision],
        state: RunState,
    ) -> Outcome | SuspendedRun:
        """First it is written down that the run is not waiting any more, so that nothing is ever
        allowed twice.

        Where that cannot be promised nothing is allowed.
        """
        if not await self._turn_journal.commit(RunResumed(turn.run.id)):
            decisions = {
                id_: it if isinstance(it, Deny) else Deny(NOT_PROMISED)
                for id_, it in decisions.items()
            }
        run = await self._context_builder.seeing(turn)
        return await self._engine.resume(run, suspended, decisions, state)

    def stop_waiting(self, turn_id: str) -> None:
        """End a turn that waits for somebody's word; what was said in it stays."""
        if (waiting := self._suspensions.take(turn_id)) is not None:
            self._finalizer.keep_waiting(waiting, muted=False)

    async def lapse(self, turn_id: str) -> bool:
        """End it where the bot is muted and it may wait no longer; False where it does not wait."""
        if question := self._suspensions.question(turn_id):
            await self._history.load(question.conversation)
        if (waiting := self._suspensions.take(turn_id)) is not None:
            self._finalizer.keep_waiting(waiting, muted=True)
        return waiting is not None

    async def _finish(
        self, live: LiveTurn, turn: Turn, running: Awaitable[Outcome | SuspendedRun]
    ) -> None:
        message, speaker, state = turn.message, turn.speaker, live.state
        outcome: Outcome | None = None
        said_last, ending = NOTHING_SAID, False
        try:
            ended = await self._guard(turn, state, running)
            if isinstance(ended, SuspendedRun):
                said = tuple(speaker.said)
                waiting = WaitingTurn(message, live.user, ended, said, speaker.heard)
                self._suspensions.suspend(waiting)
                return
            outcome, live.is_thinking = ended, False
            said_last = await self._finalizer.say(turn, outcome)
        except asyncio.CancelledError:
            ending = message.identity not in self._disowned and not live.is_stopped
            raise
        finally:
            disowned = message.identity in self._disowned
            self._disowned.pop(message.identity, None)
            if not ending:
                live.close(dropped=disowned)
            if live.is_stopped and not disowned:
                about = turn.words.about
                said_last = Said(about.broken_off if live.is_muted else about.stopped)
                outcome = state.outcome(Stop.STOPPED)
            if outcome is not None and not ending:
                self._finalizer.keep(live.turn or turn, state, outcome, said_last)
            elif disowned:
                self._finalizer.drop(turn, state)
            # Else it waits, or the process is ending, perhaps with the answer ready and not said:
            # the turn stays open, and the next start decides about it.

    async def _guard(
        self, turn: Turn, state: RunState, running: Awaitable[Outcome | SuspendedRun]
    ) -> Outcome | SuspendedRun:
        try:
            return await running
        except Exception as bug:
            logger.exception("run %s broke", turn.run.id)
            return state.outcome(Stop.FAILED, error=f"bug: {type(bug).__name__}")
