"""The window of one conversation: the rounds that prompts show, and a summary of those before.

A round that leaves the window becomes part of the summary or, if none is ready, a line in it, so
nothing is lost in between. The window moves rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from operator import is_

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.core.journal import Round, WindowMoved
from bot.core.redaction import lines_of_messages, redact_messages
from bot.prompt.compose import last_day
from bot.prompt.summary import continue_summary, in_one_line, outside_tools_in, with_outside_tools
from frostagent.engine.authority import outside_tools
from frostagent.models.compaction import trim_tool_results
from frostagent.models.tokens import estimate_messages, estimate_text
from frostagent.types.messages import NOT_COUNTED, Counted, Message

FULL = 0.85  # share of the room at which the window moves
EMPTIED = 0.5  # share it is reduced to
FRESH = 2  # latest rounds whose tool results are never shortened
SUMMARY = 450.0  # tokens reserved for a new summary
LINES, SHARE = 400.0, 0.1  # tokens for rounds kept as lines: maximum, and share of the room


class ToldRound(Struct, frozen=True):
    """A round as prompts show it, its estimated tokens, and the last date in it, or empty."""

    turn_id: str
    messages: tuple[Message, ...]
    tokens: float
    day: str

    @classmethod
    def of(cls, turn_id: str, messages: tuple[Message, ...], *, light: bool = False) -> ToldRound:
        messages = trim_tool_results(messages) if light else messages
        return cls(turn_id, messages, estimate_messages(messages), last_day(messages))

    def lighter(self) -> ToldRound:
        return self.changed(trim_tool_results)

    def changed(self, change: Callable[[tuple[Message, ...]], tuple[Message, ...]]) -> ToldRound:
        """Return a round with changed messages, or this very object if they are unchanged."""
        messages = change(self.messages)
        return self if messages is self.messages else ToldRound.of(self.turn_id, messages)


def weigh(rounds: Sequence[Round], light: int) -> float:
    """Estimate the prompt tokens of rounds, the first `light` of which are shortened."""
    told = [
        ToldRound.of(one.turn_id, one.messages, light=n < light) for n, one in enumerate(rounds)
    ]
    return _tokens(told)


@dataclass(frozen=True, slots=True)
class Fold:
    """The rounds to summarize, oldest first, and the summary before them.

    `turn_id` is the conversation's latest turn, which made it too long. `told` are the messages of
    the rounds in the latest prompt; `of` is the state of the window they were taken from.
    """

    rounds: tuple[Round, ...]
    before: str
    turn_id: str
    of: object = field(compare=False, repr=False)
    told: tuple[Message, ...] = ()


@dataclass(slots=True)
class Window:
    """`messages` are those of the rounds. `tokens` counts the summary and all rounds, `behind` all
    rounds but the first. `day` is the last date in the rounds, or empty. `left` are the rounds that
    became lines since the latest fold.
    """

    rounds: list[ToldRound] = field(default_factory=list)
    light_to: str = ""
    summary: str = ""
    messages: tuple[Message, ...] = ()
    tokens: float = 0.0
    behind: float = 0.0
    day: str = ""
    left: dict[str, str] = field(default_factory=dict)
    state: object = field(default_factory=object)

    def tell(self, summary: str, rounds: list[ToldRound]) -> None:
        self.summary, self.rounds = summary, rounds
        self.messages = tuple(chain.from_iterable([told.messages for told in rounds]))
        self.day = next((told.day for told in reversed(rounds) if told.day), "")
        self.behind = _tokens(rounds[1:])
        self.tokens = estimate_text(summary) + _tokens(rounds[:1]) + self.behind

    def add(self, told: ToldRound) -> None:
        self.behind += told.tokens if self.rounds else 0.0
        self.rounds.append(told)
        self.messages += told.messages
        self.day = told.day or self.day
        self.tokens += told.tokens

    def counted(self) -> Counted:
        """Return the messages after the first round, which carries the summary."""
        if not self.rounds:
            return NOT_COUNTED
        first = len(self.rounds[0].messages)
        return Counted(first, self.messages[first:], self.behind)

    def is_full(self, room: float) -> bool:
        """Whether the window has to move."""
        return self.tokens > FULL * room

    def lighten(self, room: float) -> bool:
        """Shorten older rounds. Returns False, without a change, if that is not enough."""
        if _tokens(_lighter(self.rounds)) + estimate_text(self.summary) > EMPTIED * room:
            return False
        self._move(self.summary, 0)
        return True

    def drop(self, room: float) -> bool:
        """Turn the oldest rounds into lines, as no summary is ready. False if nothing changes."""
        lighter, most = _lighter(self.rounds), min(LINES, SHARE * room)
        surplus = _surplus(lighter, EMPTIED * room - estimate_text(self.summary) - most)
        if not surplus and lighter == self.rounds:
            return False
        lines = {told.turn_id: in_one_line(told.messages) for told in lighter[:surplus]}
        self.left |= lines
        gone = chain.from_iterable(told.messages for told in lighter[:surplus])
        summary = continue_summary(self.summary, lines.values(), tokens=most)
        self._move(with_outside_tools(summary, outside_tools(gone)), surplus)
        return True

    def fold(self, room: float) -> Fold | None:
        """Return the rounds to summarize, or None if there is room."""
        if not self.is_full(room):
            return None
        lighter = _lighter(self.rounds)
        surplus = _surplus(lighter, EMPTIED * room - SUMMARY)
        rounds = tuple(Round(told.turn_id, told.messages) for told in lighter[:surplus])
        if not rounds:
            return None
        self.left.clear()
        told = tuple(chain.from_iterable(one.messages for one in self.rounds[:surplus]))
        return Fold(rounds, self.summary, lighter[-1].turn_id, self.state, told)

    def take(self, fold: Fold, summary: str, room: float) -> bool:
        """Replace rounds by their summary. Returns False if the rounds have changed.

        Rounds of the fold that became lines meanwhile are covered by the summary; later lines stay
        after it.
        """
        gone = [round_.turn_id for round_ in fold.rounds]
        known = [*self.left, *(told.turn_id for told in self.rounds)]
        if fold.of is not self.state or known[: len(gone)] != gone:
            return False
        lines = [line for turn_id, line in self.left.items() if turn_id not in gone]
        surplus = sum(told.turn_id in gone for told in self.rounds)
        brought = outside_tools(chain.from_iterable(round_.messages for round_ in fold.rounds))
        tools = (*outside_tools_in(self.summary), *brought)
        self.left.clear()
        self.state = object()
        summary = continue_summary(summary, lines, tokens=min(LINES, SHARE * room))
        self._move(with_outside_tools(summary, tools), surplus)
        return True

    def redact(self, message_id: str) -> bool:
        """Remove the text of a message. Returns False if it has no line in the rounds: the summary
        may still quote it. A summary being made is discarded.
        """
        self.state, ids = object(), frozenset((message_id,))
        gone = lines_of_messages(self.messages, ids)
        rounds = [
            told.changed(partial(redact_messages, message_ids=ids, gone=gone))
            for told in self.rounds
        ]
        if not all(map(is_, rounds, self.rounds)):
            self.tell(self.summary, rounds)
        return bool(gone)

    def moved(self, conversation: Conversation) -> WindowMoved:
        """Return the entry that journals the window's position."""
        return WindowMoved(conversation, self.rounds[0].turn_id, self.light_to, self.summary)

    def _move(self, summary: str, gone: int) -> None:
        older = self.rounds[:-FRESH]
        self.light_to = older[-1].turn_id if older else self.light_to
        self.tell(summary, _lighter(self.rounds)[gone:])


def _tokens(rounds: Iterable[ToldRound]) -> float:
    return sum(told.tokens for told in rounds)


def _lighter(rounds: list[ToldRound]) -> list[ToldRound]:
    """Shorten the tool results of all but the latest rounds."""
    return [*(told.lighter() for told in rounds[:-FRESH]), *rounds[-FRESH:]]


def _surplus(rounds: list[ToldRound], room: float) -> int:
    """How many of the oldest rounds exceed the room; the last round always stays."""
    behind = list(accumulate(told.tokens for told in reversed(rounds)))
    return len(rounds) - max(1, sum(tokens <= room for tokens in behind))
