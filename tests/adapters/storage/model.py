"""The journal of one conversation as its port describes it, in plain lists; and journals to try it with."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import (
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
from frostagent.types.messages import Message
from tests.adapters.storage.entries import COLUMNS, NOW, ROUND, closing, messages, opening
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
    rounds: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    window: WindowMoved | None = None

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
            case TurnOpened():
                for each in self.heard:
                    each.read = True
            case TurnClosed(turn_id=turn_id, round=round_):  # in the order in which they are closed
                self.rounds[turn_id] = round_
            case WindowMoved():
                self.window = entry
            case _:
                raise AssertionError(entry)

    def remembered(self) -> Remembered:
        closed, window = list(self.rounds), self.window
        within = closed[closed.index(window.first_turn) if window else 0 :]
        light = closed[: closed.index(window.light_to) + 1] if window and window.light_to else []
        last = [h for h in self.heard if h.overheard and not h.read and not h.erased][-30:]
        return Remembered(
            tuple(Round(turn_id, self.rounds[turn_id]) for turn_id in within if self.rounds[turn_id]),
            tuple(h.message for h in last),
            light=sum(turn_id in light for turn_id in within if self.rounds[turn_id]),
            summary=window.summary if window else "",
        )

    def find(self, message_id: str) -> MessageReceived | None:
        same = [h for h in self.heard if h.message.message_id == message_id]
        return same[-1].message if same and not same[-1].erased else None


def closed_of(entries: list[Entry]) -> list[str]:
    return [entry.turn_id for entry in entries if isinstance(entry, TurnClosed)]


numbers = count(1)
IDS = st.sampled_from(["1", "2", "-3", "four", "五"])


@st.composite
def journals(draw: st.DrawFn) -> tuple[Conversation, list[Entry]]:
    """What may happen in a conversation that no other example has."""
    number = next(numbers)
    where = Conversation(BOT, draw(st.sampled_from(["group", "private"])), number, draw(st.sampled_from([0, 4242])))
    entries: list[Entry] = []
    opened: list[TurnOpened] = []
    left_open: list[TurnOpened] = []
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
                left_open.append(opened[-1])
                entries.append(opened[-1])
            case 8 if left_open:  # in any order: some have waited for somebody's word
                turn = left_open.pop(draw(st.integers(0, len(left_open) - 1)))
                closed = closing(turn, *draw(ROUND), keep=draw(st.booleans()))
                entries.append(replace(closed, at=NOW + len(entries)))
            case 9 if len(left_open) < len(opened):
                closed_turns = st.sampled_from(closed_of(entries))
                entries.append(WindowMoved(where, draw(closed_turns), draw(st.just("") | closed_turns), draw(COLUMNS)))
            case _:
                pass
    return where, entries
