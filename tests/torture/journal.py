"""A database at the end, the victim's or a cluster's, read past the adapter: rows as they lie there."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.core import codec
from bot.core.journal import (
    Entry,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    SendChanged,
    SendQueued,
    SendState,
    TurnClosed,
    TurnOpened,
)
from bot.core.redaction import RECALLED
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import Message, UserMessage
from frostagent.types.runs import StepFinished, ToolFinished, ToolStarted

ROUND = tuple[Message, ...]
ENDED = (SendState.CONFIRMED, SendState.REFUSED, SendState.WITHDRAWN, SendState.DROPPED)

ADDED = tuple(f"[{words.added}" for words in (ZH, EN))

TURNS = """
    SELECT turns.*, runs.stop FROM turns LEFT JOIN runs ON runs.turn_id = turns.turn_id ORDER BY turns.id"""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it was left: `user` as rendered, `round` None where there is none, `stop` how its run ended."""

    turn_id: str
    where: str
    message_id: str
    user: str
    round: tuple[Message, ...] | None
    closed: bool
    stop: str
    retry_of: str


@dataclass(slots=True)
class Journal:
    """What the oracle asks of a database; everything is read once."""

    integrity: str = ""
    turns: list[Turn] = field(default_factory=list)
    sends: list[dict[str, Any]] = field(default_factory=list)
    messages: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    steps: dict[tuple[str, int], str] = field(default_factory=dict)
    calls: dict[tuple[str, int, str], str | None] = field(default_factory=dict)
    opened: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    usage: list[dict[str, Any]] = field(default_factory=list)
    steered: Counter[str] = field(default_factory=Counter)  # by turn, before anything was said

    def broken(self, promised: list[Entry], taken_back: Sequence[str] = ()) -> Iterator[str]:
        """The promises that were not kept; words that were `taken_back` are not to be there."""
        states = {row["send_id"]: row["state"] for row in self.sends}
        ended = {entry.send_id: entry.state for entry in promised if isinstance(entry, SendChanged)}
        for entry in promised:
            if not self._holds(entry, states, ended, taken_back):
                yield f"lost: {entry}"

    def _holds(
        self, entry: Entry, states: dict[str, str], ended: dict[str, SendState], taken_back: Sequence[str]
    ) -> bool:
        match entry:
            case MessageObserved(message=message) | MessageOverheard(message=message):
                return len(self.messages.get((str(message.conversation), message.message_id), [])) == 1
            case MessageErased(conversation=where, message_id=message_id):
                return all(row["erased"] for row in self.messages.get((str(where), message_id), []))
            case TurnOpened(turn_id=turn_id, user=user):
                stored = [without(row["user"], taken_back) for row in self.opened.get(turn_id, [])]
                return stored == [without(codec.write(user), taken_back)]
            case StepFinished(run_id=turn_id, step=step, completion=completion):
                kept = self.steps.get((turn_id, step))
                said = codec.write(completion.message)  # of the bot's own words, too, some may be recalled
                return kept is not None and without(kept, taken_back) == without(said, taken_back)
            case ToolStarted(run_id=turn_id, step=step, call=call):
                return (turn_id, step, call.id) in self.calls
            case ToolFinished(run_id=turn_id, step=step, result=result):
                return self.calls.get((turn_id, step, result.call_id)) == codec.write(result)
            case TurnClosed(turn_id=turn_id, round=round_):
                text = without(codec.write(round_), taken_back) if round_ else ""
                return [
                    (without(row["round"] or "", taken_back), row["closed"] is None)
                    for row in self.opened.get(turn_id, [])
                ] == [(text, False)]
            case SendQueued(send_id=send_id):
                return send_id in states
            case SendChanged(send_id=send_id):
                last = ended[send_id]
                return last not in ENDED or states.get(send_id) == last
            case _:
                return True


def without(text: str, taken_back: Sequence[str]) -> str:
    """The text with what was recalled since taken out of it."""
    for words in taken_back:
        text = re.sub(rf"{re.escape(words)}(?![0-9])", RECALLED, text)
    return text


def read_journal(file: Path) -> Journal:
    """Everything in the file. An empty one, where no life came far enough to make it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        journal = read_rows(lambda sql: map(dict, connection.execute(sql)))
        journal.integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
    return journal


def read_rows(rows: Callable[[str], Iterable[dict[str, Any]]]) -> Journal:
    """Everything that these answers of a database hold."""
    journal = Journal(sends=list(rows("SELECT * FROM sends ORDER BY id")))
    journal.usage = list(rows("SELECT * FROM usage ORDER BY id"))
    journal.steered.update(row["turn_id"] for row in rows("SELECT turn_id FROM steered WHERE step = 0"))
    for row in rows(TURNS):
        journal.opened.setdefault(row["turn_id"], []).append(row)
        journal.turns.append(_turn(row))
    for row in rows("SELECT * FROM messages ORDER BY id"):
        journal.messages.setdefault((row["conversation"], row["message_id"]), []).append(row)
    for row in rows("SELECT * FROM steps"):
        journal.steps[row["turn_id"], row["step"]] = row["message"]
    for row in rows("SELECT * FROM tool_calls"):
        journal.calls[row["turn_id"], row["step"], row["call_id"]] = row["result"]
    return journal


def _turn(row: dict[str, Any]) -> Turn:
    return Turn(
        turn_id=row["turn_id"],
        where=row["conversation"],
        message_id=row["message_id"],
        user=codec.read(UserMessage, row["user"]).text,
        round=codec.read(ROUND, row["round"]) if row["round"] else None,
        closed=row["closed"] is not None,
        stop=row["stop"] or "",
        retry_of=row["retry_of"],
    )


def is_asked(message: Message, user: str) -> bool:
    """Whether a message is a turn's question, perhaps with lines that steered it before anything was said."""
    if not isinstance(message, UserMessage):
        return False
    return message.text == user or message.text.startswith(tuple(f"{user}\n{added}" for added in ADDED))
