"""The tables: what every row can be found by."""

from __future__ import annotations

from sqlalchemy import Text

from adapters.storage.tables import BY_CONVERSATION, BY_TURN, REVISIONS, applied, metadata, pictures


def test_every_row_belongs_to_a_conversation() -> None:
    neither = {applied, pictures}  # a number; what anybody may send again
    assert {*BY_CONVERSATION, *BY_TURN, *neither} == set(metadata.sorted_tables)
    assert all("conversation" in table.c for table in BY_CONVERSATION)
    assert all("turn_id" in table.c for table in BY_TURN)


def test_json_is_kept_as_text() -> None:
    columns = [column for table in metadata.sorted_tables for column in table.c if column.info.get("json")]
    assert len(columns) == 10
    assert all(isinstance(column.type, Text) for column in columns)


def test_revisions_rise() -> None:
    assert list(REVISIONS) == sorted(set(REVISIONS))
