"""0015: until when what stood against an answer was to last, where that was known: a mute."""

from __future__ import annotations

from alembic import op

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column; of those of before nobody knows."""
    op.add_column("verdicts", first.real("until", nullable=True))
