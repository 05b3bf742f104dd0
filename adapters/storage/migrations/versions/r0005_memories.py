"""0005: facts that are remembered, and the words they are found by."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.storage.migrations.versions import r0001_journal as first
from adapters.storage.migrations.versions.r0004_group import flag

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
    first.table(
        "memories",
        first.text("conversation"),
        flag("private"),
        first.text("memory_id"),
        first.number("subject"),
        first.number("author"),
        first.words("text"),
        first.words("visibility"),
        first.text("sources"),
        first.real("made"),
        first.real("used"),
        first.real("expires"),
        sa.UniqueConstraint("memory_id"),
    )
    first.index("memories_by_conversation", "conversation", "used")
    first.index("memories_by_subject", "subject", "used")
    first.index("memories_by_expires", "expires")
    terms()


def terms() -> None:
    first.table(
        "memory_terms",
        first.text("conversation"),
        first.text("memory_id"),
        first.text("shelf"),
        first.text("term"),
    )
    first.index("memory_terms_by_term", "shelf", "term", "memory_id", of="memory_terms")
    first.index("memory_terms_by_memory_id", "memory_id", of="memory_terms")
