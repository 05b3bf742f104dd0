"""A recalled message leaves the turns that read it: their questions and rounds are rewritten, in
the transaction that erases it. Blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from adapters.storage.columns import plain
from adapters.storage.rows import ROUND
from adapters.storage.statements import Parameters, Prepared, Statement
from bot.domain import codec
from bot.domain.chat import AssistantMessage, Message, ToolMessage, UserMessage
from bot.domain.events import MessageReceived
from bot.domain.redaction import RECALLED, lines_of, redacted, without_arguments
from bot.domain.segments import Text

T = TypeVar("T")
TurnRow: TypeAlias = Sequence[Any]
"""A turn's id, question, question as it was rendered, and round."""

TOLD_AGAIN = 200  # rounds at most, where a summary is given up, or one quotes what nobody heard


def redact_turns(
    cursor: Any, statements: Mapping[Statement, Prepared], recalled: Parameters
) -> None:
    """Rewrite the turns that tell it or quote it; a summary of any of them is given up.

    Raises the driver's errors.
    """

    def execute(statement: Statement, parameters: Parameters) -> None:
        prepared = statements[statement]
        cursor.execute(prepared.sql, prepared.values(parameters))

    execute(Statement.FIND_READERS, {**recalled, "rounds": TOLD_AGAIN})
    rows = cursor.fetchall()
    found = [told_in(row) for row in rows]
    ids = frozenset((recalled["message_id"],))
    gone = lines_of(chain.from_iterable(found), ids)
    changed = []  # what was told: a summary may have it
    for row, messages in zip(rows, found, strict=True):
        _redact_calls(cursor, execute, row[0], ids)
        if (rewritten := without(row, messages, ids, gone)) is None:
            continue
        if is_told(rewritten, row):
            changed.append(row[0])
        execute(Statement.REWRITE_TURN, rewritten)
    if changed:
        where = {"conversation": recalled["conversation"], "rounds": TOLD_AGAIN}
        execute(Statement.TELL_AGAIN, {**where, "id": changed[0]})


def told_in(row: TurnRow) -> tuple[Message, ...]:
    """The question as it was rendered, then its round; nothing is in what cannot be read."""
    _, _, user, round_ = row
    try:
        return (codec.read(UserMessage, user), *(codec.read(ROUND, round_) if round_ else ()))
    except codec.Unreadable:
        return (UserMessage(""),)


def without(
    row: TurnRow, messages: tuple[Message, ...], ids: frozenset[str], gone: Collection[str]
) -> Parameters | None:
    """What a turn's row says, which tells these `messages`, without these recalled ones, and with
    none of the lines `gone` quoted; None where that is the same.
    """
    row_id, asked, user, round_ = row
    question, after = _without_words(asked, ids), redacted(messages, ids, gone)
    if question == asked and after == messages:
        return None
    rewritten = {"id": row_id, "question": question, "user": user, "round": round_}
    if after != messages:
        first, *rest = after
        rewritten |= {"user": codec.write(first), "round": codec.write(rest) if rest else None}
    return rewritten


def is_told(rewritten: Parameters, row: TurnRow) -> bool:
    """Whether it is another round, not only another question."""
    return (rewritten["user"], rewritten["round"]) != tuple(row[2:])


def _redact_calls(
    cursor: Any,
    execute: Callable[[Statement, Parameters], None],
    row_id: int,
    ids: frozenset[str],
) -> None:
    """Rewrite the results of a turn's calls that told these, what the calls were given, and what
    a subagent's model said for one of them.
    """
    execute(Statement.FIND_RESULTS, {"id": row_id})
    for result_id, turn_id, step, call_id, text in cursor.fetchall():
        result = _as(ToolMessage, text)
        if result is None or ids.isdisjoint(result.sources):
            continue
        told = codec.write(replace(result, content=RECALLED))
        execute(Statement.REWRITE_RESULT, {"id": result_id, "result": told})
        run = f"{turn_id}/{step}/{call_id}"  # as a subagent's is called (engine/subagents.py)
        execute(Statement.FORGET_REQUESTS, {"turn_id": turn_id, "run": run})
        execute(Statement.FIND_STEPS, {"turn_id": turn_id, "step": step})
        for step_id, words in cursor.fetchall():
            if (message := _as(AssistantMessage, words)) is not None:
                kept = codec.write(without_arguments(message, {call_id}))
                execute(Statement.REWRITE_STEP, {"id": step_id, "message": kept})


def _without_words(asked: str, ids: Collection[str]) -> str:
    """The question of a turn, by whom and when it was asked; no words where it is one of these."""
    question = _as(MessageReceived, asked)
    if question is None or plain(question.message_id) not in ids:
        return asked
    return codec.write(replace(question, segments=(Text(RECALLED),)))


def _as(kind: type[T], text: str) -> T | None:
    """The message in this row; None where it cannot be read."""
    try:
        read: T = codec.read(kind, text)
    except codec.Unreadable:
        return None
    return read
