"""The journal as JSON lines: all of a conversation, or its runs in the format of LOG_RUNS
(`adapters/traces/run_log.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from adapters.storage.queries.turns import outcome_of
from adapters.storage.statements import plain
from adapters.storage.tables import (
    chosen,
    day_usage,
    jobs,
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
from bot.core import codec
from bot.core.conversation import Conversation
from frostagent.types.errors import ToolCancelled
from frostagent.types.messages import AssistantMessage, ToolMessage

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
    "job": jobs,
}
"""The `type` of lines and its table, in the order of the lines."""


def export(connection: Connection, conversation: Conversation) -> Iterator[str]:
    """One JSON object per row: `type` and columns, JSON as values; oldest first per type."""
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


NOBODY_KNOWS = {"prompt": None, "completion": None, "cached": None, "cost": None}


def run_lines(connection: Connection, *, limit: int, content: bool) -> Iterator[dict[str, Any]]:
    """The latest `limit` runs, oldest first. Without `content`, no arguments and texts."""
    latest = connection.execute(select(turns).order_by(turns.c.id.desc()).limit(limit)).all()
    for turn in reversed(latest):
        yield from _lines(connection, turn, content=content)


def lines_of_run(connection: Connection, run: str, *, content: bool) -> Iterator[dict[str, Any]]:
    for turn in connection.execute(
        select(turns).where(turns.c.turn_id == run).order_by(turns.c.id)
    ).all():
        yield from _lines(connection, turn, content=content)


def _lines(connection: Connection, turn: Row[Any], *, content: bool) -> Iterator[dict[str, Any]]:
    yield {
        **_head(turn.opened, "run", "start", turn.turn_id),
        "conversation": turn.conversation,
        "asker": turn.asker,
    }
    calls = connection.execute(
        select(tool_calls).where(tool_calls.c.turn_id == turn.turn_id).order_by(tool_calls.c.id)
    ).all()
    tokens = {
        row.step: _tokens(row)
        for row in connection.execute(
            select(usage).where(usage.c.turn_id == turn.turn_id).order_by(usage.c.id)
        )
    }
    taken = connection.execute(
        select(steps).where(steps.c.turn_id == turn.turn_id).order_by(steps.c.id)
    )
    for step in taken.all():
        yield from _step(
            step, [call for call in calls if call.step == step.step], tokens, content=content
        )
    run = connection.execute(
        select(runs, outcome_of()).where(runs.c.turn_id == turn.turn_id)
    ).one_or_none()
    if run is not None and turn.closed is not None:
        yield {
            **_head(turn.closed, "run", "end", turn.turn_id),
            "outcome": run.outcome,
            "steps": run.steps,
            "error": run.error or None,
            **_tokens(run),
            "duration_ms": _milliseconds(turn.closed - turn.opened),
        }
    elif run is not None and run.state is not None:
        yield {**_head(turn.opened, "run", "pause", turn.turn_id), "steps": run.steps}


def _step(
    step: Row[Any], calls: list[Row[Any]], tokens: dict[int, dict[str, Any]], *, content: bool
) -> Iterator[dict[str, Any]]:
    try:
        message: AssistantMessage = codec.read(AssistantMessage, step.message)
    except codec.Unreadable:
        return
    response = {"step": step.step, "response": f"{step.turn_id}-{step.step}"}
    yield {
        **_head(step.at, "inference", "response", step.turn_id),
        **response,
        "model": step.model,
        "finish": step.finish,
        "calls": [call.id for call in message.tool_calls],
        **tokens.get(step.step, NOBODY_KNOWS),
        "duration_ms": _milliseconds(step.seconds),
        "text": message.text if content else None,
    }
    arguments = {plain(call.id): call.arguments for call in message.tool_calls}
    for call in calls:
        about = {**response, "call_id": call.call_id, "name": call.name}
        about["args"] = _read(arguments.get(call.call_id, "")) if content else None
        if call.started is not None:
            yield {**_head(call.started, "tool", "execute_start", step.turn_id), **about}
        if call.result is not None:
            action = "execute_cancelled" if call.code == ToolCancelled.code else "execute_end"
            yield {
                **_head(step.at, "tool", action, step.turn_id),
                **about,
                **_result(call, content=content),
            }


def _result(call: Row[Any], *, content: bool) -> dict[str, Any]:
    result: ToolMessage = codec.read(ToolMessage, call.result)
    told = result.content if content else call.code
    return {
        "duration_ms": _milliseconds(call.seconds or 0.0),
        "error": told if result.is_error else None,
        "code": call.code,
        "result": result.content if content else None,
    }


def _head(at: float, layer: str, action: str, run: str) -> dict[str, Any]:
    moment = (
        datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
    return {"timestamp": moment, "layer": layer, "action": action, "run": run}


def _tokens(row: Row[Any]) -> dict[str, Any]:
    return {
        "prompt": row.prompt,
        "completion": row.completion,
        "cached": row.cached,
        "cost": row.cost,
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _read(arguments: str) -> Any:
    """As JSON, or the raw text if it is invalid."""
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
