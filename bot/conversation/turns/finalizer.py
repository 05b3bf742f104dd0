"""The end of a turn: its final words, its round in the history, and its entry in the journal.

What was said in the middle of the turn (`bot/speaking/speech.py`) is not said again; every question
gets at least one line, and never an error's own words. If QQ did not confirm the final words, a
note behind them in the round tells the next prompt so, after a restart too; never in words of the
model's own, which it would repeat. Such a turn does not count as answered: its entry says so, and
if QQ refused the words its asker and the owners are told.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from bot.conversation.approval.approvals import Approvals
from bot.conversation.turns.context_builder import Turn
from bot.conversation.turns.suspensions import WaitingTurn
from bot.conversation.turns.turn_journal import TurnJournal
from bot.core.journal import RunResumed, Undelivered
from bot.core.ports import Store
from bot.core.refusals import is_muted
from bot.memory.history import History
from bot.policy.fallback_replies import UNANSWERED, in_question_language, refusal_reply
from bot.prompt import render
from bot.prompt.prompt_language import choose_wording
from bot.prompt.summary import Prefix
from bot.speaking.delivery import Delivery, SaidMessage, note_on, undelivered
from bot.speaking.shadow import Shadow
from frostagent.engine.engine import RunState
from frostagent.engine.transcripts import close_suspended
from frostagent.types.conversation import Conversation
from frostagent.types.messages import AssistantMessage, Message, UserMessage
from frostagent.types.runs import Outcome, Stop
from frostagent.types.speech import Refused

logger = logging.getLogger(__name__)


class Said(Struct, frozen=True):
    """What became of the last words of a turn: the `note` for the next prompt, and why they are not
    known to have arrived, unless they did.
    """

    note: str = ""
    undelivered: Undelivered | None = None


NOTHING_SAID: Final = Said()


class Finalizer:
    """Says the final words of a turn, and keeps its round."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        history: History,
        approvals: Approvals,
        store: Store,
        turn_journal: TurnJournal,
        shadow: Shadow,
    ) -> None:
        self._shadow = shadow
        self._delivery = delivery
        self._history = history
        self._approvals = approvals
        self._store = store
        self._turn_journal = turn_journal

    async def say(self, turn: Turn, outcome: Outcome) -> Said:
        """Say the final words, unless they were said."""
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
            case _ if turn.wake.is_uncalled:  # nobody waits for an answer
                return NOTHING_SAID
            case Stop.FAILED | Stop.DENIED | Stop.OUT_OF_BUDGET | Stop.INTERRUPTED:
                # No words of the model's: kept as its own, it says them again.
                words = in_question_language(UNANSWERED, turn.message, trace=turn.run.id)
                said = await self._say(turn, words)
                self._report(said)
                return NOTHING_SAID

    async def _answer(self, turn: Turn, words: str) -> Said:
        """Say these as the answer, or why they cannot be said."""
        said = await self._say(turn, words)
        note = self._kept_back(turn) or note_on(said, turn.words)
        if refused := self._report(said):
            await self._apologise(turn, refused, is_part=len(said) > 1)
        return Said(note, undelivered(said))

    async def _silent(self, turn: Turn) -> Said:
        """The model says no more. If QQ took nothing of what it had said, that is no silence that
        it chose.
        """
        if refused := turn.speaker.refused:
            self._tell_owners(refused)
            await self._apologise(turn, refused)
            return Said("", Undelivered.NOT_DELIVERED)
        return Said("", Undelivered.UNCONFIRMED if turn.speaker.is_unsure else None)

    async def _say(self, turn: Turn, words: str) -> tuple[SaidMessage, ...]:
        trail, turn_id = turn.speaker.trail(turn.run.conversation), turn.run.id
        said = await self._delivery.answer(
            turn.message, words, turn_id=turn_id, trail=trail, keeps_codes=turn.speaker.keeps_codes
        )
        turn.speaker.note(one.receipt for one in said)
        return said

    def _report(self, said: Sequence[SaidMessage]) -> SaidMessage | None:
        """Tell the owners of the one that was refused; it, if there is one."""
        refused = next((one for one in said if not one.may_be_read), None)
        if refused is not None:
            self._tell_owners(refused)
        return refused

    def _tell_owners(self, refused: SaidMessage) -> None:
        if not is_muted(refused.reason):
            self._delivery.report(refused)

    async def _apologise(self, turn: Turn, refused: SaidMessage, *, is_part: bool = False) -> None:
        """Tell the asker that QQ did not take the answer, or not all of it, if QQ may take that."""
        if not isinstance(receipt := refused.receipt, Refused):
            return
        line = refusal_reply(receipt, is_part=is_part)
        if not line or turn.wake.is_uncalled:  # nobody waits for it
            return
        words = in_question_language(line, turn.message)
        await self._delivery.answer(turn.message, words, turn_id=turn.run.id)

    def _kept_back(self, turn: Turn) -> str:
        """The note that its words were not said but are a draft; empty where they are none."""
        drafts = turn.speaker.drafts
        return turn.words.about.drafted.format(number=drafts[-1]) if drafts else ""

    def keep(self, turn: Turn, state: RunState, outcome: Outcome, said: Said) -> None:
        """Keep the round. What became of the answer is noted behind it, and that there was none."""
        note = said.note
        answer = list(state.messages)
        is_answered = bool(answer) and isinstance(answer[-1], AssistantMessage)
        if is_answered and turn.speaker.drafts:  # nobody has read it: it is not told as said
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
        self._shadow.end(run.conversation, run.id)
        prefix = Prefix(run.transcript, turn.before, state.shown, state.model)
        if (why := said.undelivered) is not None:
            logger.warning("the answer of run %s is %s", run.id, why)
        self._keep(run.conversation, run.id, turn.user, answer, outcome, prefix, why)

    def keep_waiting(self, waiting: WaitingTurn, *, muted: bool) -> None:
        """Keep the round of a turn that waited for somebody's word, and was stopped or could not go
        on where the bot is `muted`.
        """
        run = waiting.run
        answer = list(close_suspended(run))
        outcome = RunState(answer, run.usage, run.steps).outcome(Stop.STOPPED)
        self._store.put(RunResumed(run.run_id))
        words = choose_wording((waiting.user,), "")
        note = words.about.broken_off if muted else words.about.stopped
        answer.append(render.history_note(words, note))
        self._keep(run.conversation, run.run_id, waiting.user, answer, outcome)
        self._approvals.undo(run, muted=muted)

    def _keep(
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

    def drop(self, turn: Turn, state: RunState) -> None:
        """Keep nothing of the round: its question was recalled. The next is told what it had
        overheard.
        """
        self._turn_journal.give_up(turn.run.conversation, turn.run.id, state=state)
        self._approvals.close(turn.run.id)
