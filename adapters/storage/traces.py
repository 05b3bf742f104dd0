"""Reading one turn of the journal in full: everything it did, in the order it began. Blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from adapters.storage.columns import plain
from adapters.storage.rows import SEND_SEGMENTS
from adapters.storage.tables import requests, sends, steered, steps, tool_calls, usage
from bot.domain import codec
from bot.domain.books import Story, UsageSum
from bot.domain.chat import AssistantMessage, ToolMessage, UserMessage
from bot.domain.drafts import draft_of
from bot.domain.journal import Errand
from bot.domain.plain import plain_words
from bot.domain.shown import Span, Trace, TurnRow

SPANS = 300  # of one turn, the first


def trace(connection: Connection, row: TurnRow, turn: Row[Any], story: Story) -> Trace:
    """The turn of this row, and what it did."""
    said = [turn.user, *(line.user for line in _of(connection, steered, row.turn_id))]
    prompt = "\n".join(read.text for text in said if (read := _read(UserMessage, text)))
    spans = [
        *_wait(row, story),
        *_steps(connection, row.turn_id),
        *_requests(connection, row),
        *_sends(connection, row.turn_id),
    ]
    spans.sort(key=lambda span: span.begin)
    return Trace(row=row, story=story, prompt=prompt, spans=tuple(spans[:SPANS]))


def _of(connection: Connection, table: Table, turn_id: str) -> list[Row[Any]]:
    query = select(table).where(table.c.turn_id == turn_id).order_by(table.c.id).limit(SPANS)
    return list(connection.execute(query))


def _read(kind: Any, text: str | None) -> Any:
    try:
        return codec.read(kind, text) if text else None
    except codec.Unreadable:
        return None


def _wait(row: TurnRow, story: Story) -> Iterator[Span]:
    if story.taken and row.at > story.taken:
        yield Span(kind="wait", name="", begin=story.taken, seconds=row.at - story.taken)


def _steps(connection: Connection, turn_id: str) -> Iterator[Span]:
    """Each request with its calls; a call's arguments stand in the answer that made it."""
    used = {row.step: row for row in _of(connection, usage, turn_id)}
    asked: dict[tuple[int, str], str] = {}
    ends: dict[int, float] = {}
    for step in _of(connection, steps, turn_id):
        message = _read(AssistantMessage, step.message) or AssistantMessage()
        ends[step.step] = step.at
        for call in message.tool_calls:
            asked[step.step, plain(call.id)] = call.arguments
        yield _request(step, step.finish, message, used.get(step.step))
    for call in _of(connection, tool_calls, turn_id):
        result = _read(ToolMessage, call.result)
        yield Span(
            kind="tool",
            name=call.name,
            begin=call.started or ends.get(call.step, 0.0),
            seconds=call.seconds or 0.0,
            outcome=call.code,
            text="" if result is None else result.content,
            asked=asked.get((call.step, call.call_id), ""),
        )


def _request(
    row: Row[Any], outcome: str, message: AssistantMessage, used: Row[Any] | None, run: str = ""
) -> Span:
    calls = "".join(f"\n→ {call.name}({call.arguments})" for call in message.tool_calls)
    return Span(
        kind="model",
        name=row.model,
        begin=row.at - row.seconds,
        seconds=row.seconds,
        outcome=outcome,
        text=(message.text + calls).strip(),
        thought=message.reasoning.text if message.reasoning else "",
        usage=None if used is None else _usage(used),
        run=run,
    )


def _usage(row: Row[Any]) -> UsageSum:
    unpriced = row.cost is None
    return UsageSum(1, row.prompt, row.cached, row.completion, row.cost or 0.0, int(unpriced))


def _requests(connection: Connection, turn: TurnRow) -> Iterator[Span]:
    """Those that failed, those of subagents, and those on errands."""
    closed = math.inf if turn.seconds is None else turn.at + turn.seconds
    for row in _of(connection, requests, turn.turn_id):
        message = _read(AssistantMessage, row.message)
        if message is not None:
            yield _request(row, row.outcome, message, None, row.run)
            continue
        begin = row.at - row.seconds
        yield Span(
            kind="model" if row.outcome == "ok" else "failed",
            name=row.model,
            begin=begin,
            seconds=row.seconds,
            outcome=row.outcome,
            # Older versions wrote down no errand.
            run=row.run or (Errand.LATER if begin >= closed else ""),
        )


def _sends(connection: Connection, turn_id: str) -> Iterator[Span]:
    for row in _of(connection, sends, turn_id):
        segments = _read(SEND_SEGMENTS, row.segments) or ()
        yield Span(
            kind="send",
            name="final" if row.final else "between",
            begin=row.queued,
            seconds=0.0 if draft_of(row.send_id) else max(0.0, row.changed - row.queued),
            outcome=row.state,
            text=plain_words(segments),
            asked=row.reason,
        )
