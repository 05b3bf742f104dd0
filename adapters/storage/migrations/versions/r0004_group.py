"""0004: what a member of a group needs: the verdicts on what was said to the bot, the numbers of
people.
"""

from __future__ import annotations

import sqlalchemy as sa

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables."""
    verdicts()
    speakers()
    things()
    steered()
    pictures()


def flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def verdicts() -> None:
    first.table(
        "verdicts",
        first.text("conversation"),
        first.words("message_id"),
        first.account("sender"),
        flag("wakes"),
        flag("weak"),
        first.words("reason"),
        first.real("at"),
    )
    first.index("verdicts_by_message_id", "conversation", "message_id", "id")
    first.index("verdicts_by_time", "at")


def speakers() -> None:
    first.table(
        "speakers",
        first.text("conversation"),
        sa.Column("number", sa.BigInteger, nullable=False),
        first.number("user_id"),
        first.words("name"),
        sa.UniqueConstraint("conversation", "number"),
    )


def things() -> None:
    first.table(
        "things",
        first.text("conversation"),
        sa.Column("number", sa.BigInteger, nullable=False),
        first.words("message_id"),
        first.number("sender"),
        sa.Column("thing", sa.Text),
        first.real("at"),
        sa.UniqueConstraint("conversation", "number"),
    )
    first.index("things_by_message_id", "conversation", "message_id")
    first.index("things_by_time", "at")


def steered() -> None:
    first.table(
        "steered",
        first.text("turn_id"),
        sa.Column("step", sa.Integer, nullable=False),
        first.words("message_id"),
        first.text("user"),
    )
    first.index("steered_by_turn_id", "turn_id")
    first.index("steered_by_message_id", "message_id")


def pictures() -> None:
    first.table(
        "pictures",
        first.text("digest"),
        first.words("words"),
        first.real("at"),
        sa.UniqueConstraint("digest"),
    )
    first.index("pictures_by_time", "at")
