"""0010: which turns nobody called for: what they take is their group's."""

from __future__ import annotations

from alembic import op

from adapters.storage.migrations.versions.r0004_group import flag

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column; those of before were called for."""
    op.add_column("turns", flag("uncalled"))
