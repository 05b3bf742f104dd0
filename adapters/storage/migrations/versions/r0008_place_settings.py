"""0008: what people set for a conversation by command."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table."""
    first.table(
        "place_settings",
        first.text("conversation"),
        first.text("name"),
        first.words("value"),
        sa.UniqueConstraint("conversation", "name"),
    )
