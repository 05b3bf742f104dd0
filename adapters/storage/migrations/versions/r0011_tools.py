"""0011: the sums of days that are over by tools (the days there are are added up bit by bit), and
where drafts were published.
"""

from __future__ import annotations

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0011"
down_revision = "0010"

SUMS = "requests", "prompt", "completion", "cached", "unpriced", "cost"


def upgrade() -> None:
    """Make the table and the indexes."""
    first.table("day_tools", first.real("day"), first.words("tool"), *map(first.real, SUMS))
    first.index("day_tools_by_day", "day", of="day_tools")
    first.index("sends_published", "id", where="state IN ('published', 'reworded')")
