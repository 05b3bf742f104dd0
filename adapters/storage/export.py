"""Everything the journal holds of a conversation, as lines of JSON. Blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from adapters.storage.tables import (
    chosen,
    day_usage,
    memories,
    messages,
    place_settings,
    requests,
    runs,
    sends,
    speakers,
    steered,
    steps,
    things,
    tool_calls,
    turns,
    usage,
    verdicts,
    windows,
)
from bot.domain.events import Conversation

TYPES = {
    "message": messages,
    "turn": turns,
    "run": runs,
    "step": steps,
    "call": tool_calls,
    "send": sends,
    "steered": steered,
    "request": requests,
    "usage": usage,
    "day_usage": day_usage,
    "window": windows,
    "verdict": verdicts,
    "speaker": speakers,
    "choice": chosen,
    "place_setting": place_settings,
    "thing": things,
    "memory": memories,
}
"""What each line's `type` is, and the table it comes from, in the order of the lines."""


def export(connection: Connection, conversation: Conversation) -> Iterator[str]:
    """One JSON object a row: `type` and its columns, those that hold JSON as values; oldest first
    in each type.
    """
    here = str(conversation)
    for kind, table in TYPES.items():
        if "conversation" in table.c:
            query = select(table).where(table.c.conversation == here)
        else:
            query = select(table).where(
                table.c.turn_id.in_(select(turns.c.turn_id).where(turns.c.conversation == here))
            )
        for row in connection.execution_options(yield_per=500).execute(query.order_by(table.c.id)):
            yield json.dumps({"type": kind} | _values(table, row), ensure_ascii=False)


def _values(table: Table, row: Row[Any]) -> dict[str, Any]:
    return {
        column.name: json.loads(value) if column.info.get("json") and value is not None else value
        for column, value in zip(table.c, row, strict=True)
    }
