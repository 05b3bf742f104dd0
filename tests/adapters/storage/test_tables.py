"""The tables: what every row can be found by."""

from __future__ import annotations

from adapters.storage.tables import (
    BY_CONVERSATION,
    BY_TURN,
    REVISIONS,
    applied,
    audit,
    day_tools,
    day_totals,
    metadata,
    pictures,
)


def test_every_row_belongs_to_a_conversation() -> None:
    # a number; what operators did; what tools cost, and people take; what anybody may send again
    neither = {applied, audit, day_tools, day_totals, pictures}
    assert {*BY_CONVERSATION, *BY_TURN, *neither} == set(metadata.sorted_tables)
    assert all("conversation" in table.c for table in BY_CONVERSATION)
    assert all("turn_id" in table.c for table in BY_TURN)


def test_revisions_rise() -> None:
    assert list(REVISIONS) == sorted(set(REVISIONS))
