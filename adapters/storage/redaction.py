"""A recalled message leaves the turns that read it: their questions and rounds are rewritten, in
the transaction that erases it. Blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from adapters.storage.rows import ROUND
from adapters.storage.statements import Parameters, Prepared, Statement
from bot.domain import codec
from bot.domain.chat import Message, UserMessage
from bot.domain.redaction import lines_of, redacted

TOLD_AGAIN = 200  # rounds at most, where a summary is given up


def redact_turns(
    cursor: Any, statements: Mapping[Statement, Prepared], recalled: Parameters
) -> None:
    """Rewrite the turns that tell it or quote it; a summary of any of them is given up.

    Raises the driver's errors.
    """

    def execute(statement: Statement, parameters: Parameters) -> None:
        prepared = statements[statement]
        cursor.execute(prepared.sql, prepared.values(parameters))

    execute(Statement.FIND_READERS, recalled)
    found = {row_id: _read(user, round_) for row_id, user, round_ in cursor.fetchall()}
    ids = frozenset((recalled["message_id"],))
    gone = lines_of(chain.from_iterable(found.values()), ids)
    changed = []
    for row_id, messages in found.items():
        user, *round_ = redacted(messages, ids, gone)
        if (user, *round_) != messages:
            changed.append(row_id)
            kept = codec.write(round_) if round_ else None
            rewritten = {"id": row_id, "user": codec.write(user), "round": kept}
            execute(Statement.REWRITE_TURN, rewritten)
    if changed:
        where = {"conversation": recalled["conversation"], "rounds": TOLD_AGAIN}
        execute(Statement.TELL_AGAIN, {**where, "id": changed[0]})


def _read(user: str, round_: str | None) -> tuple[Message, ...]:
    """The question as it was rendered, then its round; nothing is in what cannot be read."""
    try:
        return (codec.read(UserMessage, user), *(codec.read(ROUND, round_) if round_ else ()))
    except codec.Unreadable:
        return (UserMessage(""),)
