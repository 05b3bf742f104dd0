"""The journal of one conversation as its port describes it, in plain lists; and journals to try it with."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from hypothesis import strategies as st

from bot.domain.chat import Message
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import (
    Entry,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    Remembered,
    Round,
    TurnClosed,
    TurnOpened,
    WindowMoved,
)
from tests.adapters.storage.entries import ROUND, closing, messages, opening
from tests.fakes import BOT


@dataclass
class Heard:
    message: MessageReceived
    overheard: bool
    erased: bool = False
    read: bool = False


@dataclass
class Model:
    """The journal of one conversation as its port describes it."""

    heard: list[Heard] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    rounds: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    first: str = ""

    def take(self, entry: Entry) -> None:
        match entry:
            case MessageObserved(message=message, overheard=overheard):
                self.heard.append(Heard(message, overheard))
            case MessageOverheard(message=message):
                same = [h for h in self.heard if h.message.message_id == message.message_id and not h.overheard]
                if same:
                    self.heard.remove(same[-1])
                self.heard.append(Heard(message, True))
            case MessageErased(message_id=message_id):
                for each in self.heard:
                    each.erased = each.erased or each.message.message_id == message_id
            case TurnOpened(turn_id=turn_id):
                self.opened.append(turn_id)
                for each in self.heard:
                    each.read = True
            case TurnClosed(turn_id=turn_id, round=round_):
                self.rounds[turn_id] = round_
            case WindowMoved(first_turn=turn_id):
                self.first = turn_id
            case _:
                raise AssertionError(entry)

    def remembered(self) -> Remembered:
        within = self.opened[self.opened.index(self.first) if self.first else 0 :]
        last = [h for h in self.heard if h.overheard and not h.read][-30:]
        return Remembered(
            tuple(Round(turn_id, self.rounds[turn_id]) for turn_id in within if self.rounds.get(turn_id)),
            tuple(h.message for h in last if not h.erased),
        )

    def find(self, message_id: str) -> MessageReceived | None:
        same = [h for h in self.heard if h.message.message_id == message_id]
        return same[-1].message if same and not same[-1].erased else None


numbers = count(1)
IDS = st.sampled_from(["1", "2", "-3", "four", "五"])


@st.composite
def journals(draw: st.DrawFn) -> tuple[Conversation, list[Entry]]:
    """What may happen in a conversation that no other example has."""
    number = next(numbers)
    where = Conversation(BOT, draw(st.sampled_from(["group", "private"])), number, draw(st.sampled_from([0, 4242])))
    entries: list[Entry] = []
    opened: list[TurnOpened] = []
    for kind in draw(st.lists(st.integers(0, 9), max_size=40)):
        message = draw(messages(where, IDS))
        match kind:
            case 0 | 1 | 2:
                entries.append(MessageObserved(message, overheard=True))
            case 3:
                entries.append(MessageObserved(message, overheard=False))
            case 4:
                entries.append(MessageOverheard(message))
            case 5:
                entries.append(MessageErased(where, message.message_id))
            case 6 | 7:
                opened.append(opening(f"{number}-{len(opened)}", message))
                entries.append(opened[-1])
            case 8 if opened:
                turn = draw(st.sampled_from(opened))
                closed = closing(turn, *draw(ROUND), keep=draw(st.booleans()))
                entries.append(closed)
            case 9 if opened:
                entries.append(WindowMoved(where, draw(st.sampled_from(opened)).turn_id))
            case _:
                pass
    return where, entries
