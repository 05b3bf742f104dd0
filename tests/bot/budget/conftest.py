"""Both databases, where sums are those of the rows."""

from __future__ import annotations

from tests.adapters.storage.conftest import postgres, schemas, sqlite, url

__all__ = ["postgres", "schemas", "sqlite", "url"]
