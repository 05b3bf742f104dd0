"""0006: who the bot is in a conversation, where somebody chose that."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table."""
    first.table(
        "choices",
        first.text("conversation"),
        first.words("persona"),
        sa.UniqueConstraint("conversation"),
    )
