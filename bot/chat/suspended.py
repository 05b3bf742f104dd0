"""Turns whose runs wait for a decision, in memory and in the journal."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as renewed

from bot.approvals.tool_calls import ToolApprovals
from bot.chat.turn_journal import TurnJournal
from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import RunResumed, RunSuspended, Suspended
from bot.core.ports import Store
from bot.core.redaction import OwnWords, lines_of_messages, redact_messages, redact_own
from bot.core.run_ids import number_of, read_run, write_run
from bot.memory.history import History
from bot.outbox.turn_speaker import Heard
from bot.prompt import render
from bot.prompt.prompt_language import choose_wording
from frostagent.engine.engine import RunState
from frostagent.types.messages import AssistantMessage, ToolMessage, UserMessage, as_kept
from frostagent.types.runs import Stop, SuspendedRun

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SuspendedTurn:
    question: MessageReceived
    user: UserMessage
    run: SuspendedRun
    said: tuple[str, ...] = ()
    heard: Mapping[Conversation, Heard] = field(default_factory=dict)


class SuspendedTurns:
    """The suspended turns, by turn id."""

    def __init__(
        self,
        *,
        store: Store,
        approvals: ToolApprovals,
        turn_journal: TurnJournal,
        history: History,
    ) -> None:
        self._history = history
        self._store = store
        self._approvals = approvals
        self._turn_journal = turn_journal
        self._waiting: dict[str, SuspendedTurn] = {}

    def suspend(self, turn: SuspendedTurn) -> None:
        """Suspend a turn, and ask for decisions; the numbers of its requests are stored before
        that.
        """
        turn = replace(turn, run=self._approvals.number(turn.run))
        self._waiting[turn.run.run_id] = turn
        self._put_down(turn.question.conversation, turn.run)
        self._approvals.ask(turn.run, turn.question)

    def restore(self, suspended: Suspended) -> Conversation | None:
        """Suspend again what an earlier process had suspended. Returns its conversation; None if it
        cannot be read: then its turn is closed.
        """
        try:
            run = read_run(suspended.state)
        except codec.Unreadable:
            logger.exception("suspended run %s cannot be read", suspended.turn_id)
            interrupted = RunState().outcome(
                Stop.INTERRUPTED, error="interrupted: what was suspended cannot be read"
            )
            words = choose_wording((suspended.user,), "")
            round_ = (suspended.user, render.history_note(words, words.about.unanswered))
            closed = self._turn_journal.closed(suspended.turn_id, interrupted, round_)
            self._store.put(RunResumed(suspended.turn_id), closed)
            return None
        for where, message_id, own in suspended.own:
            self._history.said(where, message_id, own)
        numbered = self._approvals.restore(run, suspended.question)
        if numbered != run:
            self._put_down(suspended.question.conversation, numbered)
        self._waiting[suspended.turn_id] = SuspendedTurn(
            suspended.question, suspended.user, numbered, suspended.said
        )
        return suspended.question.conversation

    def take(self, turn_id: str) -> SuspendedTurn | None:
        """Remove and return the turn, if it still waits."""
        return self._waiting.pop(turn_id, None)

    def question(self, turn_id: str) -> MessageReceived | None:
        waiting = self._waiting.get(turn_id)
        return waiting.question if waiting else None

    def waiting(self) -> dict[str, SuspendedRun]:
        return {turn_id: waiting.run for turn_id, waiting in self._waiting.items()}

    def askers(self, where: Conversation) -> list[int]:
        """Those whose turns wait there."""
        there = (one for one in self._waiting.values() if one.question.conversation == where)
        return [number_of(one.run.asker) for one in there]

    def redact(self, where: Conversation, message_id: str) -> None:
        """Remove a recalled message from all turns that read it."""
        for turn_id, waiting in list(self._waiting.items()):
            own, after = self._history.own(where, message_id), waiting
            if waiting.question.conversation == where:
                after = _without(waiting, message_id)
            if own is not None and own.turn_id == turn_id:
                after = _without_own(after, own)
            if after != waiting:
                self._waiting[turn_id] = after
                self._put_down(after.question.conversation, after.run)

    def drop(self, turn_id: str) -> None:
        """End a suspended turn without a trace in the history."""
        waiting = self._waiting.pop(turn_id)
        self.supersede(waiting.question.conversation, turn_id)
        self._approvals.close(turn_id)
        self._approvals.undo(waiting.run)

    def supersede(self, where: Conversation, turn_id: str) -> None:
        """Close a suspended turn in the journal, without a trace in the history."""
        self._turn_journal.give_up(where, turn_id, RunResumed(turn_id))

    def _put_down(self, where: Conversation, run: SuspendedRun) -> None:
        state = write_run(_kept(run), where)
        self._store.put(RunSuspended(turn_id=run.run_id, state=state, expires=run.expires))


def _kept(run: SuspendedRun) -> SuspendedRun:
    messages = (as_kept(one) if isinstance(one, ToolMessage) else one for one in run.messages)
    answers = (as_kept(one) if isinstance(one, ToolMessage) else one for one in run.answers)
    return renewed(run, messages=tuple(messages), answers=tuple(answers))


def _without_own(turn: SuspendedTurn, own: OwnWords) -> SuspendedTurn:
    *messages, message = redact_own((*turn.run.messages, turn.run.message), own)
    if not isinstance(message, AssistantMessage):
        return turn  # cannot happen: its type stays
    return replace(turn, run=renewed(turn.run, messages=tuple(messages), message=message))


def _without(turn: SuspendedTurn, message_id: str) -> SuspendedTurn:
    """The turn without the words of this message; pending calls stay as they were requested."""
    run, ids, step = turn.run, frozenset((message_id,)), len(turn.run.messages)
    results = tuple(one for one in run.answers if isinstance(one, ToolMessage))
    told = (turn.user, *run.messages, run.message, *results)
    user, *after = redact_messages(told, ids, lines_of_messages(told, ids))
    message = after[step]
    if not isinstance(user, UserMessage) or not isinstance(message, AssistantMessage):
        return turn  # cannot happen: their types stay
    kept = iter(one for one in after[step + 1 :] if isinstance(one, ToolMessage))
    answers = tuple(next(kept) if isinstance(one, ToolMessage) else one for one in run.answers)
    left = renewed(run, messages=tuple(after[:step]), message=message, answers=answers)
    return replace(turn, user=user, run=left)
