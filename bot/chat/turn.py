"""One wake from the question to the last confirmed send: perception -> prompt -> engine -> delivery
-> history.

Words sent during the turn (`bot/outbox/turn_speaker.py`) are not repeated; every question gets at
least one line, which never contains an error's text. If QQ did not confirm the final words, a note
after them in the round tells the next prompt, also after a restart; it is not in the model's own
words, which it would repeat. Such a turn does not count as answered: its entry says so, and if QQ
refused the words, the asker and the owners are told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from msgspec import Struct

from bot.approvals.tool_call_wording import NOT_PROMISED
from bot.approvals.tool_calls import ToolApprovals
from bot.chat.active_turn import ActiveTurn, ActiveTurns
from bot.chat.cancellation import CONSEQUENCES, Consequences, Fate, Reason
from bot.chat.context_builder import ContextBuilder, Turn
from bot.chat.suspended import SuspendedTurn, SuspendedTurns
from bot.chat.turn_journal import TurnJournal
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import Entry, OpenTurn, RunResumed, Undelivered
from bot.core.ports import Store
from bot.core.refusals import is_muted
from bot.memory.history import History
from bot.outbox.delivery import Delivery, SaidMessage, note_on, undelivered
from bot.outbox.gestures import Gestures
from bot.outbox.shadow import Shadow
from bot.policy.fallback_replies import UNANSWERED, in_question_language, refusal_reply
from bot.policy.wake import CALLED, Wake
from bot.prompt import render
from bot.prompt.prompt_language import choose_wording
from bot.prompt.summary import Prefix
from frostagent.engine.engine import Engine, RunState
from frostagent.engine.run_state import close_suspended
from frostagent.types.messages import AssistantMessage, Message, UserMessage
from frostagent.types.runs import Outcome, Stop, SuspendedRun
from frostagent.types.speech import Refused
from frostagent.types.suspension import Decision, Deny

logger = logging.getLogger(__name__)


class Said(Struct, frozen=True):
    """The outcome of a turn's last words: the `note` for the next prompt, and why they are not
    known to have arrived, if so.
    """

    note: str = ""
    undelivered: Undelivered | None = None


NOTHING_SAID: Final = Said()
NOT_CANCELLED: Final = Consequences()


class Turns:
    """Answers questions, one at a time per lane: runs the engine, sends the final words, and stores
    the round.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        context_builder: ContextBuilder,
        delivery: Delivery,
        suspensions: SuspendedTurns,
        approvals: ToolApprovals,
        store: Store,
        history: History,
        turn_journal: TurnJournal,
        live: ActiveTurns,
        gestures: Gestures,
        shadow: Shadow,
    ) -> None:
        self._engine = engine
        self._context_builder = context_builder
        self._delivery = delivery
        self._suspensions = suspensions
        self._approvals = approvals
        self._store = store
        self._history = history
        self._turn_journal = turn_journal
        self._live = live
        self._gestures = gestures
        self._shadow = shadow

    async def answer(
        self,
        message: MessageReceived,
        *,
        lines: tuple[MessageReceived, ...] = (),
        retry: OpenTurn | None = None,
        wake: Wake = CALLED,
        claimed: Callable[[str], Entry | None] | None = None,
    ) -> None:
        """Answer a message with the `lines` that belong to it. Raises only cancellation; words sent
        until then stay in the history. After a weak `wake` silence is an answer. A `retry` replaces
        the turn it repeats, with the same words for the model and in one commit, so that at any
        time only one of them is in the history and at most one is open. The entry that is `claimed`
        for the turn is committed with its beginning; if it is None, no turn begins.
        """
        with self._live.going_on(message, lines) as live:
            try:
                begun = await self._context_builder.begin(message, retry, lines=lines, wake=wake)
            except asyncio.CancelledError:
                if live.cancelled is not None:
                    live.close()
                    self._history.doubt(message.conversation)  # what it had taken was not read
                raise
            claim = claimed(begun.run.id) if claimed is not None else None
            if claimed is not None and claim is None:
                live.close()
                self._history.doubt(message.conversation)  # what it had taken was not read
                return
            turn = live.begin(begun, self._context_builder.seeing)
            opened = self._turn_journal.opened(
                turn.run.id, turn.question, turn.user, retry, uncalled=wake.is_uncalled
            )
            claims = () if claim is None else (claim,)
            await self._finish(live, turn, self._begin(live, turn, *opened, *claims))

    def _signs_for(self, turn: Turn) -> AbstractContextManager[None]:
        """Gestures of work for the asker, if there is one."""
        is_awaited = not (turn.wake.is_uncalled or turn.message.cap)
        return self._gestures.while_working(turn.message) if is_awaited else nullcontext()

    async def _begin(self, live: ActiveTurn, turn: Turn, *entries: Entry) -> Outcome | SuspendedRun:
        await self._turn_journal.begin(*entries)
        with self._signs_for(turn):
            return await self._engine.run(await self._context_builder.seeing(turn), live.state)

    async def resume(self, turn_id: str, decisions: Mapping[str, Decision]) -> None:
        """Resume a suspended turn; undecided calls wait on, or are denied if they have expired."""
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
            # What is left of it if it turns out that it cannot go on.
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
        """First record that the run no longer waits, so that no approval is used twice; if that
        cannot be promised, all approvals become denials.
        """
        if not await self._store.commit(RunResumed(turn.run.id)):
            decisions = {
                id_: it if isinstance(it, Deny) else Deny(NOT_PROMISED)
                for id_, it in decisions.items()
            }
        run = await self._context_builder.seeing(turn)
        return await self._engine.resume(run, suspended, decisions, state)

    async def _finish(
        self, live: ActiveTurn, turn: Turn, running: Awaitable[Outcome | SuspendedRun]
    ) -> None:
        message, speaker, state = turn.message, turn.speaker, live.state
        outcome: Outcome | None = None
        said_last = NOTHING_SAID
        try:
            ended = await self._guard(turn, state, running)
            if isinstance(ended, SuspendedRun):
                said = tuple(speaker.said)
                waiting = SuspendedTurn(message, live.user, ended, said, speaker.heard)
                self._suspensions.suspend(waiting)
                return
            outcome, live.is_thinking = ended, False
            said_last = await self._say_outcome(turn, outcome)
        except asyncio.CancelledError:
            live.cancelled = live.cancelled or Reason.SHUTDOWN
            raise
        finally:
            then = CONSEQUENCES[live.cancelled] if live.cancelled is not None else NOT_CANCELLED
            if then.run is not Fate.STAYS_OPEN:
                live.close()
            if then.run is Fate.ENDS:
                said_last = Said(then.note(turn.words.about))
                outcome = state.outcome(Stop.STOPPED)
            if outcome is not None and then.run is not Fate.STAYS_OPEN:
                self._keep_round(live.turn or turn, state, outcome, said_last)
            elif then.run is Fate.LEAVES_NOTHING:
                self._drop(turn, state)
            # Else it waits, or the process is ending, perhaps with an unsent answer: the turn stays
            # open, and the next start decides.

    async def _guard(
        self, turn: Turn, state: RunState, running: Awaitable[Outcome | SuspendedRun]
    ) -> Outcome | SuspendedRun:
        try:
            return await running
        except Exception as bug:
            logger.exception("run %s broke", turn.run.id)
            return state.outcome(Stop.FAILED, error=f"bug: {type(bug).__name__}")

    # --- the end of a turn ---------------------------------------------------------------------

    async def _say_outcome(self, turn: Turn, outcome: Outcome) -> Said:
        """Send the final words, unless they were sent."""
        match outcome.stop:
            case Stop.ANSWERED:
                if turn.speaker.has_said(outcome.text):
                    is_sure = turn.speaker.is_sure_of(outcome.text) or bool(turn.speaker.drafts)
                    return Said(self._kept_back(turn), None if is_sure else Undelivered.UNCONFIRMED)
                return await self._answer(turn, outcome.text)
            case Stop.SILENT:
                return await self._silent(turn)
            case Stop.STOPPED:
                return NOTHING_SAID
            case _ if turn.wake.is_uncalled:  # no answer is expected
                return NOTHING_SAID
            case Stop.FAILED | Stop.DENIED | Stop.OUT_OF_BUDGET | Stop.INTERRUPTED:
                # Not in the model's words: it would repeat them as its own.
                words = in_question_language(UNANSWERED, turn.message, trace=turn.run.id)
                said = await self._deliver(turn, words)
                self._report(said)
                return NOTHING_SAID

    async def _answer(self, turn: Turn, words: str) -> Said:
        """Send these words as the answer, or why they cannot be sent."""
        said = await self._deliver(turn, words)
        note = self._kept_back(turn) or note_on(said, turn.words)
        if refused := self._report(said):
            await self._apologise(turn, refused, is_part=len(said) > 1)
        return Said(note, undelivered(said))

    async def _silent(self, turn: Turn) -> Said:
        """The model ended without words. If QQ refused all its messages, that is a failure, not a
        silence.
        """
        if refused := turn.speaker.refused:
            self._tell_owners(refused)
            await self._apologise(turn, refused)
            return Said("", Undelivered.NOT_DELIVERED)
        return Said("", Undelivered.UNCONFIRMED if turn.speaker.is_unsure else None)

    async def _deliver(self, turn: Turn, words: str) -> tuple[SaidMessage, ...]:
        trail, turn_id = turn.speaker.trail(turn.message.conversation), turn.run.id
        said = await self._delivery.answer(
            turn.message, words, turn_id=turn_id, trail=trail, keeps_codes=turn.speaker.keeps_codes
        )
        turn.speaker.note(one.receipt for one in said)
        return said

    def _report(self, said: Sequence[SaidMessage]) -> SaidMessage | None:
        """Alert owners to the first refused message, and return it, if any."""
        refused = next((one for one in said if not one.may_be_read), None)
        if refused is not None:
            self._tell_owners(refused)
        return refused

    def _tell_owners(self, refused: SaidMessage) -> None:
        if not is_muted(refused.reason):
            self._delivery.report(refused)

    async def _apologise(self, turn: Turn, refused: SaidMessage, *, is_part: bool = False) -> None:
        """Tell the asker that QQ refused the answer, or a part of it, if QQ may accept that."""
        if not isinstance(receipt := refused.receipt, Refused):
            return
        line = refusal_reply(receipt, is_part=is_part)
        if not line or turn.wake.is_uncalled:  # no answer is expected
            return
        words = in_question_language(line, turn.message)
        await self._delivery.answer(turn.message, words, turn_id=turn.run.id)

    def _kept_back(self, turn: Turn) -> str:
        """The note that its words became a draft; empty if they did not."""
        drafts = turn.speaker.drafts
        return turn.words.about.drafted.format(number=drafts[-1]) if drafts else ""

    def _keep_round(self, turn: Turn, state: RunState, outcome: Outcome, said: Said) -> None:
        """Store the round, followed by notes on the fate of the answer, or on its absence."""
        note = said.note
        answer = list(state.messages)
        is_answered = bool(answer) and isinstance(answer[-1], AssistantMessage)
        if is_answered and turn.speaker.drafts:  # it was not read, so it must not count as said
            answer.pop()
            is_answered = False
        if not is_answered and outcome.stop is not Stop.SILENT:
            what = note or turn.words.about.unanswered
            answer.append(render.history_note(turn.words, what))
            note = ""
        elif not answer:
            answer.append(render.history_note(turn.words, turn.words.about.silent))
        if note:
            answer.append(render.history_note(turn.words, note))
        run = turn.run
        where = turn.message.conversation
        self._shadow.end(where, run.id)
        prefix = Prefix(run.transcript, turn.before, state.shown, state.model)
        if (why := said.undelivered) is not None:
            logger.warning("the answer of run %s is %s", run.id, why)
        self._close(where, run.id, turn.user, answer, outcome, prefix, why)

    def end_suspended(self, turn_id: str, then: Consequences) -> None:
        """End a turn that waits for a decision; its words stay."""
        if (waiting := self._suspensions.take(turn_id)) is None:
            return
        run = waiting.run
        answer = list(close_suspended(run))
        outcome = RunState(answer, run.usage, run.steps).outcome(Stop.STOPPED)
        self._store.put(RunResumed(run.run_id))
        words = choose_wording((waiting.user,), "")
        answer.append(render.history_note(words, then.note(words.about)))
        where = waiting.question.conversation
        self._close(where, run.run_id, waiting.user, answer, outcome)
        self._approvals.undo(run, muted=then.is_muted)

    def _close(
        self,
        where: Conversation,
        turn_id: str,
        user: UserMessage,
        answer: Sequence[Message],
        outcome: Outcome,
        prefix: Prefix | None = None,
        undelivered: Undelivered | None = None,
    ) -> None:
        round_ = self._history.add_round(where, turn_id, user, answer, prefix)
        self._store.put(self._turn_journal.closed(turn_id, outcome, round_, undelivered))
        self._approvals.close(turn_id)

    def _drop(self, turn: Turn, state: RunState) -> None:
        """Store nothing of the round: its question was recalled. The next turn reads what it had
        overheard.
        """
        self._turn_journal.give_up(turn.message.conversation, turn.run.id, state=state)
        self._approvals.close(turn.run.id)
