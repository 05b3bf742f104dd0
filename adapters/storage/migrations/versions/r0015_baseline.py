"""0015: the baseline, all tables as of commit b14ad6af.

New journals are created from `tables.py` instead. Frozen: later changes are later revisions.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = None

TOKENS = "prompt", "completion", "cached", "reasoning"
DAY = "requests", "prompt", "completion", "cached", "unpriced"


def upgrade() -> None:
    _messages_and_turns()
    _runs()
    _sends_and_usage()
    _places()
    _memories()
    op.create_table("applied", _key("number", autoincrement=False))


def _key(name: str, **more: Any) -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return sa.Column(name, kind, primary_key=True, **more)


def _text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _words(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def _account(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _integer(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))


def _real(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double, nullable=nullable)


def _flag(name: str, *, default: bool = True) -> sa.Column[Any]:
    given: dict[str, Any] = {"server_default": sa.false()} if default else {}
    return sa.Column(name, sa.Boolean, nullable=False, **given)


def _table(name: str, *columns: Any, rising: bool = False) -> None:
    """With `rising`, ids of deleted rows are not reused."""
    op.create_table(name, _key("id"), *columns, sqlite_autoincrement=rising)


def _index(table: str, name: str, *columns: str, where: str = "") -> None:
    condition = sa.text(where) if where else None
    some: dict[str, Any] = (
        {"sqlite_where": condition, "postgresql_where": condition} if where else {}
    )
    op.create_index(f"{table}_{name}", table, list(columns), **some)


def _messages_and_turns() -> None:
    _table(
        "messages",
        _text("conversation"),
        _number("via_group"),
        *map(_words, ("message_id", "message_seq")),
        *map(_account, ("self_id", "sender")),
        *map(_words, ("nickname", "card", "role", "sub_type", "group_name")),
        _text("segments"),
        *map(_real, ("time", "taken")),
        *map(_flag, ("overheard", "erased")),
        _words("turn_id"),
        rising=True,
    )
    _index("messages", "by_conversation", "conversation", "id")
    _index("messages", "by_message_id", "conversation", "message_id", "id")
    _index("messages", "by_time", "taken")
    _table(
        "windows",
        _text("conversation"),
        *map(_number, ("first_turn", "read_to", "light_to")),
        _words("summary"),
        sa.UniqueConstraint("conversation"),
    )
    _table(
        "turns",
        *map(_text, ("turn_id", "conversation")),
        _words("message_id"),
        _account("asker"),
        *map(_text, ("question", "user")),
        _text("round", nullable=True),
        _real("opened"),
        _real("closed", nullable=True),
        _words("retry_of"),
        _flag("uncalled"),
        rising=True,
    )
    _index("turns", "by_conversation", "conversation", "id")
    _index("turns", "by_turn_id", "turn_id", "id")
    _index("turns", "kept", "conversation", "closed", where="round IS NOT NULL")
    _index("turns", "left_open", "id", where="closed IS NULL")
    _table("steered", _text("turn_id"), _integer("step"), _words("message_id"), _text("user"))
    _index("steered", "by_turn_id", "turn_id")
    _index("steered", "by_message_id", "message_id")


def _runs() -> None:
    _table(
        "runs",
        *map(_text, ("run_id", "turn_id")),
        *map(_words, ("stop", "error")),
        *map(_number, ("steps", *TOKENS)),
        _real("cost", nullable=True),
        _text("state", nullable=True),
        _real("expires", nullable=True),
        sa.UniqueConstraint("run_id"),
    )
    _index("runs", "by_turn_id", "turn_id")
    _index("runs", "in_error", "id", where="error <> ''")
    _index("runs", "suspended", "id", where="state IS NOT NULL")
    _table(
        "steps",
        _text("turn_id"),
        _integer("step"),
        _text("message"),
        *map(_words, ("finish", "model")),
        *map(_real, ("seconds", "at")),
    )
    _index("steps", "by_turn_id", "turn_id")
    _table(
        "tool_calls",
        _text("turn_id"),
        _integer("step"),
        _text("call_id"),
        _words("name"),
        _real("started", nullable=True),
        _text("result", nullable=True),
        _words("code"),
        _real("seconds", nullable=True),
        sa.UniqueConstraint("turn_id", "step", "call_id"),
    )
    _table(
        "requests",
        _text("turn_id"),
        _words("run"),
        _number("step"),
        *map(_words, ("model", "outcome")),
        _text("message", nullable=True),
        *map(_real, ("seconds", "at")),
    )
    _index("requests", "by_turn_id", "turn_id")


def _sends_and_usage() -> None:
    _table(
        "sends",
        *map(_text, ("send_id", "turn_id", "conversation")),
        _number("via_group"),
        _text("segments"),
        _flag("whole", default=False),
        _flag("final", default=False),
        *map(_words, ("state", "message_id", "reason")),
        *map(_real, ("queued", "changed")),
    )
    _index("sends", "by_send_id", "send_id", "id")
    _index("sends", "by_turn_id", "turn_id")
    _index("sends", "by_message_id", "conversation", "message_id", "id")
    _index("sends", "unfinished", "id", where="state IN ('queued', 'sending', 'unknown')")
    _index("sends", "published", "id", where="state IN ('published', 'reworded')")
    _table(
        "usage",
        _text("turn_id"),
        _integer("step"),
        _words("conversation"),
        _number("asker"),
        _words("model"),
        *map(_number, TOKENS),
        _real("cost", nullable=True),
        _real("at"),
        _number("reserved"),
    )
    _index("usage", "by_turn_id", "turn_id")
    _index("usage", "by_time", "at")
    _table(
        "day_usage",
        _real("day"),
        _words("conversation"),
        _number("asker"),
        _words("model"),
        *map(_number, DAY),
        _real("cost"),
    )
    _index("day_usage", "by_day", "day")
    _table("day_tools", _real("day"), _words("tool"), *map(_real, (*DAY, "cost")))
    _index("day_tools", "by_day", "day")
    _table(
        "day_totals",
        _real("day"),
        *map(_number, ("who", "tokens")),
        _real("cost"),
        sa.UniqueConstraint("day", "who"),
    )


def _places() -> None:
    _table(
        "verdicts",
        _text("conversation"),
        _words("message_id"),
        _account("sender"),
        *map(_flag, ("wakes", "weak")),
        _words("reason"),
        _real("at"),
        _real("until", nullable=True),
    )
    _index("verdicts", "by_message_id", "conversation", "message_id", "id")
    _index("verdicts", "by_time", "at")
    _table(
        "speakers",
        _text("conversation"),
        _account("number"),
        _number("user_id"),
        _words("name"),
        sa.UniqueConstraint("conversation", "number"),
    )
    _table("choices", _text("conversation"), _words("persona"), sa.UniqueConstraint("conversation"))
    _table(
        "place_settings",
        *map(_text, ("conversation", "name")),
        _words("value"),
        sa.UniqueConstraint("conversation", "name"),
    )
    _table(
        "things",
        _text("conversation"),
        _account("number"),
        _words("message_id"),
        _number("sender"),
        _text("thing", nullable=True),
        _real("at"),
        sa.UniqueConstraint("conversation", "number"),
    )
    _index("things", "by_message_id", "conversation", "message_id")
    _index("things", "by_time", "at")
    _table("pictures", _text("digest"), _words("words"), _real("at"), sa.UniqueConstraint("digest"))
    _index("pictures", "by_time", "at")
    _table("audit", _real("at"), *map(_words, ("login", "address", "action", "object", "outcome")))
    _index("audit", "by_time", "at")


def _memories() -> None:
    _table(
        "memories",
        _text("conversation"),
        _flag("private"),
        _text("memory_id"),
        *map(_number, ("subject", "author")),
        *map(_words, ("text", "visibility", "kind")),
        _text("sources"),
        *map(_real, ("made", "used", "expires")),
        sa.UniqueConstraint("memory_id"),
    )
    _index("memories", "by_conversation", "conversation", "used")
    _index("memories", "by_subject", "subject", "used")
    _index("memories", "by_expires", "expires")
    _table("memory_terms", *map(_text, ("conversation", "memory_id", "shelf", "term")))
    _index("memory_terms", "by_term", "shelf", "term", "memory_id")
    _index("memory_terms", "by_memory_id", "memory_id")
