"""0014: what is reserved for a request under way has its number in a column of its own.

Rows of before have it in their step, below 0, and are left as they are: a worker of the version
before may be about to put in its place what the request took.
"""

from __future__ import annotations

from alembic import op

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column."""
    op.add_column("usage", first.number("reserved"))
