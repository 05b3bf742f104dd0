"""0003: what is written ahead are lines of a file; what a killed process left in the table becomes
such lines.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Move the rows, and put the number up to which lines are applied in the place of their
    table.
    """
    connection = op.get_bind()
    op.create_table(
        "applied",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
    )
    rows = connection.execute(sa.text("SELECT id, taken, entry FROM ahead ORDER BY id")).all()
    if rows:
        file = connection.execute(sa.text("PRAGMA database_list")).one()[2]
        connection.execute(sa.text("INSERT INTO applied (number) VALUES (0)"))
        # Whatever is there is of an attempt that did not come to its end.
        with Path(f"{file}-ahead").open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(f"{row.id} {row.taken!r} {row.entry}\n" for row in rows)
    op.drop_table("ahead")
