"""0016: the tables of 0015, in a journal that was checked for older forms (`baseline.py`).

Only the number changes: entries written ahead of it are of this version or a later one, and its
rows need no second search.
"""

from __future__ import annotations

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Change nothing: `Database` checks the journal before it runs any revision."""
