"""Removes a recalled message from the turns that read it, or a recalled message of the bot from the
turn that sent it: questions and rounds are rewritten in the transaction that erases the message.
Blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from adapters.storage.rows import ROUND, SEGMENTS, SEND_SEGMENTS
from adapters.storage.statements import Parameters, Prepared, Statement, plain
from bot.core import codec
from bot.core.actions import SendMessage
from bot.core.conversation import NOWHERE
from bot.core.drafts import draft_id, published_of
from bot.core.events import MessageReceived
from bot.core.redaction import (
    RECALLED,
    OwnWords,
    contains_words,
    lines_of_messages,
    redact_messages,
    redact_own,
    redact_own_in_result,
    redact_own_in_subagent,
    without_arguments,
)
from frostagent.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from frostagent.types.speech import Text

T = TypeVar("T")
TurnRow: TypeAlias = Sequence[Any]
"""A turn's id, question, rendered question, and round."""

BLANK = codec.write((Text(RECALLED),))
TOLD_AGAIN = 200  # rounds shown again for a dropped summary, or read for an unreceived message


def redact_turns(
    cursor: Any, statements: Mapping[Statement, Prepared], recalled: Parameters
) -> None:
    """Rewrite the turns that contain or quote it, and drop a summary that may.

    Raises the driver's errors.
    """

    def execute(statement: Statement, parameters: Parameters) -> None:
        prepared = statements[statement]
        cursor.execute(prepared.sql, prepared.values(parameters))

    own = _own(cursor, execute, recalled)
    execute(Statement.FIND_READERS, {**recalled, "rounds": TOLD_AGAIN})
    rows = cursor.fetchall()
    if own is not None and own.row[0] not in [row[0] for row in rows]:
        rows = [own.row, *rows]
    found = [told_in(row) for row in rows]
    ids = frozenset((recalled["message_id"],))
    gone = lines_of_messages(chain.from_iterable(found), ids)
    changed = []  # rounds that were in prompts, and so may be in a summary
    for row, messages in zip(rows, found, strict=True):
        _redact_calls(cursor, execute, row[0], ids)
        said = own.words if own is not None and own.row[0] == row[0] else None
        if (rewritten := without(row, messages, ids, gone, said)) is None:
            continue
        if is_told(rewritten, row):
            changed.append(row[0])
        execute(Statement.REWRITE_TURN, rewritten)
    if changed:
        where = {"conversation": recalled["conversation"], "rounds": TOLD_AGAIN}
        execute(Statement.TELL_AGAIN, {**where, "id": changed[0]})
    if own is not None and (number := published_of(own.send_id)):
        for line in _published(cursor, execute, recalled, own.words, number):
            execute(Statement.ERASE_MESSAGE, line)
            redact_turns(cursor, statements, line)


class _Own(Struct, frozen=True):
    """The bot's own words, with their send and the row of their turn."""

    words: OwnWords
    send_id: str
    row: TurnRow


def _own(
    cursor: Any, execute: Callable[[Statement, Parameters], None], recalled: Parameters
) -> _Own | None:
    """Return the bot's recalled words, if it is one of its messages; rewrites its send and steps,
    its tools' results and its subagents' answers.
    """
    execute(Statement.FIND_OWN, {**recalled, "blank": BLANK})
    found = cursor.fetchone()
    if found is None or found[2] == BLANK:  # recalled before
        return None
    row_id, send_id, segments, final, earlier, *row = found
    turn_id = row.pop(1)
    own = OwnWords(turn_id, _words_of(segments), bool(final), earlier)
    execute(Statement.BLANK_SEND, {"id": row_id, "segments": BLANK})
    execute(Statement.FIND_OWN_STEPS, {"turn_id": turn_id})
    steps = cursor.fetchall()
    said = tuple(_as(AssistantMessage, text) or AssistantMessage() for _, text in steps)
    for (step_id, _), before, after in zip(steps, said, redact_own(said, own), strict=True):
        if after != before:
            execute(Statement.REWRITE_STEP, {"id": step_id, "message": codec.write(after)})
    execute(Statement.FIND_OWN_REQUESTS, {"turn_id": turn_id})
    for request_id, text in cursor.fetchall():
        asked = _as(AssistantMessage, text)
        if asked is not None and (left := redact_own_in_subagent(asked, own)) != asked:
            execute(Statement.REWRITE_REQUEST, {"id": request_id, "message": codec.write(left)})
    execute(Statement.FIND_RESULTS, {"id": row[0]})
    for result_id, *_, text in cursor.fetchall():
        result = _as(ToolMessage, text)
        if result is not None and (rest := redact_own_in_result(result, own)) != result:
            execute(Statement.REWRITE_RESULT, {"id": result_id, "result": codec.write(rest)})
    return _Own(own, send_id, row)


def _published(
    cursor: Any,
    execute: Callable[[Statement, Parameters], None],
    recalled: Parameters,
    own: OwnWords,
    number: int,
) -> list[Parameters]:
    """Return the journalled lines on the publication of this draft, as recalled messages, and
    rewrite the draft with the same words.
    """
    draft = f"{draft_id(number)}%"
    execute(Statement.FIND_DRAFTS, {"turn_id": own.turn_id, "draft": draft})
    for row_id, segments in cursor.fetchall():
        if contains_words(_words_of(segments), own):
            execute(Statement.BLANK_SEND, {"id": row_id, "segments": BLANK})
    execute(Statement.FIND_PUBLISHED, {**recalled, "line": draft})
    return [
        {**recalled, "message_id": message_id}
        for message_id, segments in cursor.fetchall()
        if contains_words(_line_of(segments), own)
    ]


def _words_of(segments: str) -> str:
    try:
        said = codec.read(SEND_SEGMENTS, segments)
    except codec.Unreadable:
        return ""
    return SendMessage(NOWHERE, said).words


def _line_of(segments: str) -> str:
    try:
        said = codec.read(SEGMENTS, segments)
    except codec.Unreadable:
        return ""
    return "".join(part.text for part in said if isinstance(part, Text))


def told_in(row: TurnRow) -> tuple[Message, ...]:
    """Return the rendered question and its round; empty if they cannot be read."""
    _, _, user, round_ = row
    try:
        return (codec.read(UserMessage, user), *(codec.read(ROUND, round_) if round_ else ()))
    except codec.Unreadable:
        return (UserMessage(""),)


def without(
    row: TurnRow,
    messages: tuple[Message, ...],
    ids: frozenset[str],
    gone: Collection[str],
    own: OwnWords | None = None,
) -> Parameters | None:
    """Return the turn's columns without these recalled messages, quotes of the lines `gone`, and
    the bot's `own` words; None if nothing changes. `messages` are those of the row.
    """
    row_id, asked, user, round_ = row
    question, after = _without_words(asked, ids), redact_messages(messages, ids, gone)
    after = after if own is None else redact_own(after, own)
    if question == asked and after == messages:
        return None
    rewritten = {"id": row_id, "question": question, "user": user, "round": round_}
    if after != messages:
        first, *rest = after
        rewritten |= {"user": codec.write(first), "round": codec.write(rest) if rest else None}
    return rewritten


def is_told(rewritten: Parameters, row: TurnRow) -> bool:
    """Whether the round changed, and not only the question."""
    return (rewritten["user"], rewritten["round"]) != tuple(row[2:])


def _redact_calls(
    cursor: Any,
    execute: Callable[[Statement, Parameters], None],
    row_id: int,
    ids: frozenset[str],
) -> None:
    """Rewrite the results of a turn's calls that contain these messages, the arguments of the
    calls, and the answers of subagents to them.
    """
    execute(Statement.FIND_RESULTS, {"id": row_id})
    for result_id, turn_id, step, call_id, text in cursor.fetchall():
        result = _as(ToolMessage, text)
        if result is None or ids.isdisjoint(result.sources):
            continue
        told = codec.write(replace(result, content=RECALLED))
        execute(Statement.REWRITE_RESULT, {"id": result_id, "result": told})
        run = f"{turn_id}/{step}/{call_id}"  # named as in engine/subagents.py
        execute(Statement.FORGET_REQUESTS, {"turn_id": turn_id, "run": run})
        execute(Statement.FIND_STEPS, {"turn_id": turn_id, "step": step})
        for step_id, words in cursor.fetchall():
            if (message := _as(AssistantMessage, words)) is not None:
                kept = codec.write(without_arguments(message, {call_id}))
                execute(Statement.REWRITE_STEP, {"id": step_id, "message": kept})


def _without_words(asked: str, ids: Collection[str]) -> str:
    """Remove the text of a turn's question if it is one of these messages."""
    question = _as(MessageReceived, asked)
    if question is None or plain(question.message_id) not in ids:
        return asked
    return codec.write(replace(question, segments=(Text(RECALLED),)))


def _as(kind: type[T], text: str) -> T | None:
    try:
        read: T = codec.read(kind, text)
    except codec.Unreadable:
        return None
    return read
