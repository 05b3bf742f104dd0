"""What is deleted, what stays, and how little at once."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from adapters.storage import retention
from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from adapters.storage.queries import conversations, unfinished
from adapters.storage.retention import DAY, Retention
from adapters.storage.tables import applied, messages, metadata, turns
from bot.core.journal import Entry, PictureDescribed, WindowMoved
from frostagent.types.messages import ToolMessage
from tests.adapters.storage.entries import (
    NOW,
    beside,
    closing,
    ended,
    fact,
    heard,
    opening,
    sending,
    steering,
    step,
    thing,
    verdict,
)
from tests.fakes import GROUP


def put(*entries: Entry, days: float = 0.0, seconds: float = 0.0) -> list[Put]:
    return [Put(entry, NOW - days * DAY - seconds) for entry in entries]


def sweep(batches: EntryBatches, keep: Retention) -> int:
    """Sweep to the end; how many batches it took."""
    surplus = batches.run(lambda connection: keep.surplus(connection, now=NOW))
    count = 0
    while batches.run(lambda connection: keep.sweep(connection, now=NOW, surplus=surplus)):
        count += 1
    return count


def ids(database: Database) -> list[str]:
    with database.reading() as connection:
        return list(connection.scalars(select(messages.c.message_id).order_by(messages.c.id)))


def counts(database: Database) -> dict[str, int]:
    with database.reading() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
            if table is not applied
        }


def turn(turn_id: str, days: float, *, closed: bool = True) -> list[Put]:
    """A whole turn of so many days ago."""
    opened = opening(turn_id, at=NOW - days * DAY)
    queued = sending(f"s{turn_id}", turn_id)
    result = ended(turn_id, ToolMessage("c", "n", "r"), 1, code="ok", seconds=1.0)
    said: list[Any] = [
        verdict(),
        opened,
        steering(turn_id),
        step(turn_id),
        beside(turn_id),
        result,
        type(queued)(**_values(queued) | {"at": opened.at}),
    ]
    return put(*said, *([closing(opened)] if closed else []), days=days)


def _values(entry: Any) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__slots__ if name != "type"}


def test_old_messages_go_and_young_ones_stay(batches: EntryBatches, database: Database) -> None:
    for days in (91, 90.1, 89.9, 1):
        batches.write(put(heard(message_id=str(days)), days=days))
    assert sweep(batches, Retention(90, 0)) == 1
    assert ids(database) == ["89.9", "1"]


def test_what_was_shown_by_a_short_name_goes_when_it_is_old(batches: EntryBatches, database: Database) -> None:
    for number, days in enumerate((91, 1), 1):
        batches.write(put(thing(number), days=days))
    assert sweep(batches, Retention(90, 0)) == 1
    with database.reading() as connection:
        assert [one.number for one in conversations.remember(connection, GROUP).things] == [2]


def test_a_picture_is_known_by_its_description_for_a_month_whatever_else_is_kept(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(PictureDescribed("cat", "a cat"), PictureDescribed("dog", "a dog"), days=30))
    batches.write(put(PictureDescribed("dog", "a brown dog"), days=29))
    sweep(batches, Retention(0, 0))
    with database.reading() as connection:
        assert [conversations.described(connection, digest) for digest in ("cat", "dog")] == ["", "a brown dog"]


def test_zero_keeps_everything_for_ever(batches: EntryBatches, database: Database) -> None:
    batches.write(put(heard(message_id="ancient"), days=10_000))
    batches.write(turn("t", 10_000))
    before = counts(database)
    assert sweep(batches, Retention(0, 0)) == 0
    assert counts(database) == before


def test_the_oldest_go_where_there_are_too_many(batches: EntryBatches, database: Database) -> None:
    for number in range(20):
        batches.write(put(heard(message_id=str(number)), days=20 - number))
    sweep(batches, Retention(0, 5))
    assert ids(database) == ["15", "16", "17", "18", "19"]
    assert sweep(batches, Retention(0, 5)) == 0


def test_what_tells_a_repeated_event_stays_however_many_there_are(batches: EntryBatches, database: Database) -> None:
    batches.write(put(*[heard(message_id=f"old{number}") for number in range(5)], seconds=601))
    batches.write(put(*[heard(message_id=f"new{number}") for number in range(5)], seconds=599))
    sweep(batches, Retention(0, 1))
    assert ids(database) == [f"new{number}" for number in range(5)]
    with database.reading() as connection:
        assert len(unfinished.recover(connection, NOW).seen) == 5


def test_a_turn_goes_with_all_that_belongs_to_it(batches: EntryBatches, database: Database) -> None:
    batches.write(turn("old", 91))
    batches.write(turn("young", 1))
    assert counts(database)["turns"] == 2
    sweep(batches, Retention(90, 0))
    one_each = ("windows", "turns", "runs", "steps", "tool_calls", "sends", "steered", "usage", "verdicts", "requests")
    none = (
        "messages",
        "speakers",
        "choices",
        "place_settings",
        "things",
        "pictures",
        "memories",
        "memory_terms",
        "jobs",
    )
    expected = dict.fromkeys((*none, "day_usage", "day_tools", "day_totals", "audit"), 0) | dict.fromkeys(one_each, 1)
    assert counts(database) == expected
    with database.reading() as connection:
        assert [found.turn_id for found in conversations.remember(connection, GROUP).rounds] == ["young"]


def test_a_summary_goes_with_the_turns_behind_it(batches: EntryBatches, database: Database) -> None:
    def summary() -> str:
        with database.reading() as connection:
            return conversations.remember(connection, GROUP).summary

    batches.write(turn("old", 91))
    batches.write(turn("young", 2))
    batches.write(put(WindowMoved(GROUP, "young", summary="of months ago, and of the old turn")))
    sweep(batches, Retention(90, 0))
    assert summary() == "of months ago, and of the old turn"
    sweep(batches, Retention(1, 0))
    assert summary() == ""


def test_a_turn_left_open_is_not_deleted(batches: EntryBatches, database: Database) -> None:
    batches.write(turn("open", 91, closed=False))
    batches.write(turn("closed", 91))
    sweep(batches, Retention(90, 0))
    with database.reading() as connection:
        assert list(connection.scalars(select(turns.c.turn_id))) == ["open"]


def test_messages_go_by_number_but_turns_do_not(batches: EntryBatches, database: Database) -> None:
    batches.write(turn("t", 30))
    batches.write(put(*[heard(message_id=str(number)) for number in range(5)], days=29))
    sweep(batches, Retention(90, 1))
    assert counts(database)["turns"] == 1


def test_it_happens_in_small_batches(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS", 10)
    monkeypatch.setattr(retention, "TURNS", 2)
    batches.write(put(*[heard(message_id=str(number)) for number in range(25)], days=100))
    for number in range(5):
        batches.write(turn(str(number), 100))
    assert sweep(batches, Retention(90, 0)) == 3 + 1 + 1 + 3
    assert {name for name, number in counts(database).items() if number} == {"windows"}


def test_a_fact_goes_when_it_has_expired_with_the_words_it_is_found_by(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(fact("old", "花生", expires=NOW), fact("young", "花生", expires=NOW + 1)))
    assert sweep(batches, Retention(0, 0)) == 1
    assert (counts(database)["memories"], counts(database)["memory_terms"]) == (1, 1)
