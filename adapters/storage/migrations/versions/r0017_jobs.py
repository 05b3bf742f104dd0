"""0017: the table of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the table and its indexes."""
    row_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    live = sa.text("wake IS NOT NULL")
    op.create_table(
        "jobs",
        sa.Column("id", row_id, primary_key=True, autoincrement=True),
        sa.Column("account", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("via_group", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("maker", sa.BigInteger, nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False, server_default="")
            for name in (
                "kind",
                "words",
                "rule",
                "zone",
                "message_id",
                "authority",
                "language",
                "state",
                "claim",
            )
        ),
        sa.Column("made", sa.Double, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("wake", sa.Double, nullable=True),
        sa.Column("fired", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("missed", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("notes", sa.Text, nullable=False, server_default=""),
        sa.UniqueConstraint("account", "number"),
    )
    op.create_index(
        "jobs_by_wake", "jobs", ["account", "wake"], sqlite_where=live, postgresql_where=live
    )
    op.create_index("jobs_by_conversation", "jobs", ["conversation"])
    op.create_index("jobs_by_maker", "jobs", ["maker"])
    op.create_index("jobs_by_due", "jobs", ["due"])
