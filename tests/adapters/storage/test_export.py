"""The export: everything about a conversation and nothing about another, readable line by line."""

from __future__ import annotations

import json
from typing import Any

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from adapters.storage.queries.export import TYPES, export
from adapters.storage.tables import metadata
from bot.core.conversation import Conversation
from bot.core.journal import Entry, MemberNumbered, SendChanged, SendState, WindowMoved
from frostagent.types.messages import ToolMessage
from tests.adapters.storage.entries import (
    CALLING,
    NOW,
    asked,
    began,
    closing,
    ended,
    heard,
    opening,
    sending,
    step,
    thing,
)
from tests.fakes import BOT, GROUP, said


def lines(database: Database, conversation: Conversation) -> list[dict[str, Any]]:
    with database.reading() as connection:
        return [json.loads(line) for line in export(connection, conversation)]


def whole(turn_id: str, where: Conversation) -> list[Entry]:
    opened = opening(turn_id, said("天气？", where=where))
    return [
        heard("chatter", where=where),
        MemberNumbered(conversation=where, number=1, user_id=777, name="小明"),
        thing(1, where=where),
        asked("天气？", where=where),
        opened,
        step(turn_id, 1, CALLING),
        began(turn_id, 1, "c1", "get_weather"),
        ended(turn_id, ToolMessage("c1", "get_weather", "晴"), 1, code="ok", seconds=1.0),
        step(turn_id, 2),
        sending(f"s-{turn_id}", turn_id, where=where),
        SendChanged(send_id=f"s-{turn_id}", state=SendState.CONFIRMED, at=NOW, message_id="9"),
        closing(opened),
        WindowMoved(where, turn_id),
    ]


def test_every_table_is_exported() -> None:
    assert {table.name for table in TYPES.values()} == set(metadata.tables) - {
        "applied",
        "audit",
        "day_tools",
        "day_totals",
        "pictures",
        "memory_terms",
    }  # of what is exported an index or a sum, of nobody in particular


def test_a_conversation_is_exported_whole_and_alone(batches: EntryBatches, database: Database) -> None:
    elsewhere = Conversation(BOT, "private", 4242)
    batches.write([Put(entry, NOW) for entry in (*whole("t1", GROUP), *whole("t2", elsewhere))])
    found = lines(database, GROUP)
    assert [line["type"] for line in found] == [
        *(
            "message",
            "message",
            "turn",
            "run",
            "step",
            "step",
            "call",
            "send",
            "usage",
            "usage",
            "window",
            "speaker",
            "thing",
        )
    ]
    by_type = {line["type"]: line for line in found}
    assert by_type["message"]["segments"][-1] == {"text": "天气？", "type": "text"}
    assert by_type["message"]["overheard"] is False
    assert by_type["turn"]["round"][0]["text"] == "[提问]\n小明(777): hello"
    assert by_type["call"]["result"]["content"] == "晴"
    assert by_type["send"]["state"] == "confirmed"
    assert by_type["run"]["stop"] == "answered"
    assert "t2" not in json.dumps(found)
    assert len(lines(database, elsewhere)) == len(found)


def test_the_words_stay_as_they_are_written(batches: EntryBatches, database: Database) -> None:
    batches.write([Put(heard("霜降\n第二行"), NOW)])
    with database.reading() as connection:
        (line,) = export(connection, GROUP)
    assert "霜降\\n第二行" in line
    assert "\n" not in line


def test_a_conversation_that_never_was_is_empty(batches: EntryBatches, database: Database) -> None:
    batches.open()
    assert lines(database, GROUP) == []
