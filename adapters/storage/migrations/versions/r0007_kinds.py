"""0007: of which kind a fact is that is remembered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from adapters.storage.migrations.versions import r0001_journal as first
from adapters.storage.migrations.versions.r0004_group import flag

revision = "0007"
down_revision = "0006"

COPY = """
    INSERT INTO memories (conversation, private, memory_id, subject, author, text, visibility,
        sources, made, used, expires)
    SELECT conversation, private, memory_id, subject, author, text, visibility, sources, made, used,
        expires FROM memories_before ORDER BY id"""


def upgrade() -> None:
    """Write the table anew, with a column that is empty in the rows there are."""
    op.execute("CREATE TABLE memories_before AS SELECT * FROM memories")
    op.drop_table("memories")  # first: whatever it has has names that the new one is to have
    first.table(
        "memories",
        first.text("conversation"),
        flag("private"),
        first.text("memory_id"),
        first.number("subject"),
        first.number("author"),
        first.words("text"),
        first.words("visibility"),
        first.words("kind"),
        first.text("sources"),
        first.real("made"),
        first.real("used"),
        first.real("expires"),
        sa.UniqueConstraint("memory_id"),
    )
    op.execute(COPY)
    op.drop_table("memories_before")
    first.index("memories_by_conversation", "conversation", "used")
    first.index("memories_by_subject", "subject", "used")
    first.index("memories_by_expires", "expires")
