"""Values as columns take them, and rows as statements do."""

from __future__ import annotations

from typing import Any, TypeAlias

from adapters.storage.statements import Statement

Row: TypeAlias = tuple[Statement, dict[str, Any]]


def plain(text: str) -> str:
    """The text as a column takes it: PostgreSQL has no NUL. (In JSON it is written as an escape,
    and stays.)
    """
    return text.replace("\0", "�")
