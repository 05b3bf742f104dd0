"""0002: what is written ahead; the rounds of a conversation in the order in which they ended; what
is told of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table and the index, and what a window has besides."""
    op.create_table(
        "ahead",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("taken", sa.Double, nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
    )
    kept = sa.text("round IS NOT NULL")
    op.create_index(
        "turns_kept", "turns", ["conversation", "closed"], sqlite_where=kept, postgresql_where=kept
    )
    with op.batch_alter_table("windows", recreate="auto") as windows:
        windows.add_column(
            sa.Column("light_to", sa.BigInteger, nullable=False, server_default=sa.text("0"))
        )
        windows.add_column(sa.Column("summary", sa.Text, nullable=False, server_default=""))
