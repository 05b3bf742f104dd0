"""The records of both ends of a moment, and what is said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from adapters.simulator.call import SentMessage
from bot.core.journal import (
    Entry,
    MessageObserved,
    MessageOverheard,
    MessageTakenUp,
    SendChanged,
    SendQueued,
    TurnOpened,
    TurnSteered,
)
from bot.core.memories import MemoryKept
from frostagent.types.runs import StepFinished, ToolFinished, ToolStarted
from tests.torture.journal import Journal, without
from tests.torture.model import Asked, Json
from tests.torture.moments import Kind
from tests.torture.stage import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The records of both ends: what people asked and got, what the model saw, what was promised, what is stored.

    `asked_in` has the life of each request, `asked_again` the questions with which the model was bothered although
    people had their answers.
    """

    kind: Kind
    questions: list[Question]
    sent: list[SentMessage]
    delivered: list[SentMessage]
    delivered_in: list[int]
    asked: list[Asked]
    asked_in: list[int]
    asked_again: list[Question]
    invalid: list[str]
    promised: list[list[Entry]]  # by life
    rung: list[str]  # the ledger of `bells`
    journal: Journal
    errors: list[str]
    log: list[str]
    taken_back: tuple[str, ...] = ()  # what was recalled after somebody had read it
    commanded: tuple[str, ...] = ()  # how answers to commands begin
    gone: frozenset[str] = frozenset()  # conversations in which somebody was forgotten
    told: bool = False  # whether owners heard of anything

    def as_kept(self, messages: Sequence[Json]) -> list[Json]:
        """A request as it would be told now: what was recalled since leaves what it stood in."""
        return [{**one, "content": without(one["content"], self.taken_back)} for one in messages]

    @property
    def kept(self) -> list[Entry]:
        """What was promised of the journal that is there at the end."""
        promised = list(chain.from_iterable(self.promised[self.kind.is_lost :]))
        turns = {one.turn_id: str(one.question.conversation) for one in promised if isinstance(one, TurnOpened)}
        turns |= {one.send_id: str(one.action.conversation) for one in promised if isinstance(one, SendQueued)}
        return [entry for entry in promised if _place_of(entry, turns) not in self.gone]

    @property
    def first_of_one_journal(self) -> int:
        """The life from which on all had one and the same journal, and read it before anything else."""
        return len(self.promised) - 1 if self.kind.comes_back else int(self.kind.is_lost)


@dataclass(slots=True)
class Verdict:
    """What is wrong, and how often what is allowed has happened.

    `unknown` are sends nobody knows the fate of, of which so many `arrived`; `excused` are the questions without a
    reply, by the reason.
    """

    complaints: list[str] = field(default_factory=list)
    unknown: int = 0
    arrived: int = 0
    excused: Counter[str] = field(default_factory=Counter)
    polite: int = 0
    asked_again: int = 0


def _place_of(entry: Entry, turns: Mapping[str, str]) -> str:
    """The conversation that an entry is about; `turns` has those of turns and sends."""
    match entry:
        case MessageObserved() | MessageOverheard() | MessageTakenUp() | TurnSteered():
            return str(entry.message.conversation)
        case SendQueued(action=action):
            return str(action.conversation)
        case MemoryKept(memory=memory):
            return str(memory.scope)
        case StepFinished() | ToolStarted() | ToolFinished():
            return turns.get(entry.run_id, "")
        case SendChanged(send_id=send_id):
            return turns.get(send_id, "")
        case _:
            return turns.get(getattr(entry, "turn_id", ""), str(getattr(entry, "conversation", "")))
