"""0012: what was recalled before the journal took all words of it out leaves the questions and
rounds that have or quote them, and a summary that such a round went into is given up.

It reads them as the code of its day does. Where some of a server's messages of one id are there
still, as nobody can tell them apart, it leaves them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

from adapters.storage.redaction import TOLD_AGAIN, is_told, told_in, without
from adapters.storage.statements import SQL, Statement
from bot.domain.chat import Message
from bot.domain.redaction import lines_of

revision = "0012"
down_revision = "0011"

AT_ONCE = 200  # turns in memory
RECALLED = """
    SELECT DISTINCT conversation, message_id FROM messages AS gone
    WHERE erased AND message_id <> '' AND NOT EXISTS (
        SELECT 1 FROM messages WHERE conversation = gone.conversation
            AND message_id = gone.message_id AND NOT erased)"""
TURNS = """SELECT id, question, "user", round FROM turns WHERE conversation = :where ORDER BY id"""


def upgrade() -> None:
    """Rewrite the turns of every conversation in which anything was recalled."""
    connection = op.get_bind()
    recalled: defaultdict[str, set[str]] = defaultdict(set)
    for where, message_id in connection.execute(sa.text(RECALLED)):
        recalled[where].add(message_id)
    for where, ids in recalled.items():
        _rewrite(connection, where, frozenset(ids))


def _rewrite(connection: sa.Connection, where: str, ids: frozenset[str]) -> None:
    turns = partial(_turns, connection, where)  # read twice: any of them may quote what one tells
    gone = frozenset(line for _, messages in turns() for line in lines_of(messages, ids))
    found, told = [], []
    for row, messages in turns():
        if (rewritten := without(row, messages, ids, gone)) is not None:
            found.append(rewritten)
            told += [row.id] if is_told(rewritten, row) else []
    for rewritten in found:
        connection.execute(sa.text(SQL[Statement.REWRITE_TURN]), rewritten)
    if told:
        again = {"conversation": where, "rounds": TOLD_AGAIN, "id": told[0]}
        connection.execute(sa.text(SQL[Statement.TELL_AGAIN]), again)


def _turns(
    connection: sa.Connection, where: str
) -> Iterator[tuple[sa.Row[Any], tuple[Message, ...]]]:
    """Each turn of a conversation, and what it tells."""
    query = sa.text(TURNS).execution_options(yield_per=AT_ONCE)
    for row in connection.execute(query, {"where": where}):
        yield row, told_in(row)
