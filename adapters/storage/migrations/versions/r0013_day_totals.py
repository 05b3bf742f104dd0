"""0013: what a day has taken at all workers of a cluster; one that goes on is added up from its
rows by the first that counts it.
"""

from __future__ import annotations

import sqlalchemy as sa

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the table."""
    first.table(
        "day_totals",
        first.real("day"),
        first.number("who"),
        first.number("tokens"),
        first.real("cost"),
        sa.UniqueConstraint("day", "who"),
    )
