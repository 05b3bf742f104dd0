"""0001: the journal's first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    messages()
    windows()
    turns()
    runs()
    steps()
    tool_calls()
    sends()
    usage()


def words(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable)


def number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))


def account(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def real(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double, nullable=nullable)


def table(name: str, *columns: sa.Column[Any] | sa.UniqueConstraint, marked: bool = False) -> None:
    row_id = sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True)
    op.create_table(name, row_id, *columns, sqlite_autoincrement=marked)


def index(name: str, *columns: str, where: str = "", of: str = "") -> None:
    of = of or name.partition("_")[0]  # an index is named after its table
    condition: dict[str, Any] = (
        {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)} if where else {}
    )
    op.create_index(name, of, list(columns), **condition)


def messages() -> None:
    table(
        "messages",
        text("conversation"),
        number("via_group"),
        *map(words, ("message_id", "message_seq")),
        *map(account, ("self_id", "sender")),
        *map(words, ("nickname", "card", "role", "sub_type", "group_name")),
        text("segments"),
        *map(real, ("time", "taken")),
        sa.Column("overheard", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("erased", sa.Boolean, nullable=False, server_default=sa.false()),
        words("turn_id"),
        marked=True,
    )
    index("messages_by_conversation", "conversation", "id")
    index("messages_by_message_id", "conversation", "message_id", "id")
    index("messages_by_time", "taken")


def windows() -> None:
    table(
        "windows",
        text("conversation"),
        *map(number, ("first_turn", "read_to")),
        sa.UniqueConstraint("conversation"),
    )


def turns() -> None:
    table(
        "turns",
        *map(text, ("turn_id", "conversation")),
        words("message_id"),
        account("asker"),
        *map(text, ("question", "user")),
        text("round", nullable=True),
        real("opened"),
        real("closed", nullable=True),
        words("retry_of"),
        marked=True,
    )
    index("turns_by_conversation", "conversation", "id")
    index("turns_by_turn_id", "turn_id", "id")
    index("turns_left_open", "id", where="closed IS NULL")


def runs() -> None:
    table(
        "runs",
        *map(text, ("run_id", "turn_id")),
        *map(words, ("stop", "error")),
        *map(number, ("steps", "prompt", "completion", "cached", "reasoning")),
        real("cost", nullable=True),
        text("state", nullable=True),
        real("expires", nullable=True),
        sa.UniqueConstraint("run_id"),
    )
    index("runs_by_turn_id", "turn_id")
    index("runs_suspended", "id", where="state IS NOT NULL")


def steps() -> None:
    table(
        "steps",
        text("turn_id"),
        sa.Column("step", sa.Integer, nullable=False),
        text("message"),
        *map(words, ("finish", "model")),
        *map(real, ("seconds", "at")),
    )
    index("steps_by_turn_id", "turn_id")


def tool_calls() -> None:
    table(
        "tool_calls",
        text("turn_id"),
        sa.Column("step", sa.Integer, nullable=False),
        text("call_id"),
        words("name"),
        real("started", nullable=True),
        text("result", nullable=True),
        words("code"),
        real("seconds", nullable=True),
        sa.UniqueConstraint("turn_id", "step", "call_id"),
    )


def sends() -> None:
    table(
        "sends",
        *map(text, ("send_id", "turn_id", "conversation")),
        number("via_group"),
        text("segments"),
        sa.Column("whole", sa.Boolean, nullable=False),
        sa.Column("final", sa.Boolean, nullable=False),
        *map(words, ("state", "message_id", "reason")),
        *map(real, ("queued", "changed")),
    )
    index("sends_by_send_id", "send_id", "id")
    index("sends_by_turn_id", "turn_id")
    index("sends_by_message_id", "conversation", "message_id", "id")
    index("sends_unfinished", "id", where="state IN ('queued', 'sending', 'unknown')")


def usage() -> None:
    table(
        "usage",
        text("turn_id"),
        sa.Column("step", sa.Integer, nullable=False),
        words("conversation"),
        number("asker"),
        words("model"),
        *map(number, ("prompt", "completion", "cached", "reasoning")),
        real("cost", nullable=True),
        real("at"),
    )
    index("usage_by_turn_id", "turn_id")
    index("usage_by_time", "at")
