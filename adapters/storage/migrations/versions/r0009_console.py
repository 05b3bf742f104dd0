"""0009: what the console shows: requests beside the steps of turns, the sums of days that are over,
runs that failed, and what was done in the console.
"""

from __future__ import annotations

import sqlalchemy as sa

from adapters.storage.migrations.versions import r0001_journal as first

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the tables, and the index of the runs in error."""
    requests()
    day_usage()
    audit()
    first.index("runs_in_error", "id", where="error <> ''")


def requests() -> None:
    first.table(
        "requests",
        first.text("turn_id"),
        first.words("run"),
        first.number("step"),
        *map(first.words, ("model", "outcome")),
        first.text("message", nullable=True),
        *map(first.real, ("seconds", "at")),
    )
    first.index("requests_by_turn_id", "turn_id")


def day_usage() -> None:
    first.table(
        "day_usage",
        first.real("day"),
        first.words("conversation"),
        first.number("asker"),
        first.words("model"),
        *map(first.number, ("requests", "prompt", "completion", "cached", "unpriced")),
        sa.Column("cost", sa.Double, nullable=False),
    )
    first.index("day_usage_by_day", "day", of="day_usage")


def audit() -> None:
    first.table(
        "audit",
        first.real("at"),
        *map(first.words, ("login", "address", "action", "object", "outcome")),
    )
    first.index("audit_by_time", "at")
