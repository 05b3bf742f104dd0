from __future__ import annotations

from sqlalchemy import Text

from adapters.storage.tables import metadata


def test_json_is_kept_as_text() -> None:
    columns = [column for table in metadata.sorted_tables for column in table.c if column.info.get("json")]
    assert len(columns) == 11
    assert all(isinstance(column.type, Text) for column in columns)
