"""The journal's schema: the tables, their indexes, and the revisions the schema
went through.

Ids of rows are our own and rise in the order of writing; a message_id is never assumed unique. A
conversation is its text, `10001:group:4242`. Columns that hold JSON hold what `bot/domain/codec.py`
wrote.

Where the newest row of a key is looked for, its index ends with the id: PostgreSQL, before it has
statistics, would rather walk all rows from the newest on.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""Every revision of the schema, oldest first; the last is the one this code needs
(migrations/versions).
"""

versions = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table; its one row is the revision the schema is at."""

UNFINISHED = "state IN ('queued', 'sending', 'unknown')"
"""The sends nobody knows the end of. Written out, never with parameters: only then SQLite uses
their index.
"""

KEPT = "round IS NOT NULL"
"""The turns whose rounds the history keeps."""

metadata = MetaData()


def _table(name: str, *columns: Any, marked: bool = False) -> Table:
    """A table; where a mark may point at a row of it, an id must not come again after the row was
    deleted.
    """
    row_id = Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    return Table(name, metadata, row_id, *columns, sqlite_autoincrement=marked)


def _words(name: str, **more: Any) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="", **more)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _moment(name: str, *, nullable: bool = False) -> Column[float]:
    """Seconds since 1970."""
    return Column(name, Double, nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> Column[str]:
    """Text, not the databases' own JSON types: those change it, and refuse what QQ sends (a
    NUL).
    """
    return Column(name, Text, nullable=nullable, info={"json": True})


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


messages = _table(
    "messages",
    Column("conversation", Text, nullable=False),
    _number("via_group"),
    _words("message_id"),
    _words("message_seq"),
    Column("self_id", BigInteger, nullable=False),
    Column("sender", BigInteger, nullable=False),
    _words("nickname"),
    _words("card"),
    _words("role"),
    _words("sub_type"),
    _words("group_name"),
    _json("segments"),
    _moment("time"),  # the server's; `taken` is ours
    _moment("taken"),
    _flag("overheard"),
    _flag("erased"),
    _words("turn_id"),  # the turn that read it
    Index("messages_by_conversation", "conversation", "id"),
    Index("messages_by_message_id", "conversation", "message_id", "id"),
    Index("messages_by_time", "taken"),
    marked=True,
)
"""Every message observed. What was taken lately is also the de-duplication window."""

windows = _table(
    "windows",
    Column("conversation", Text, nullable=False, unique=True),
    _number("first_turn"),  # turns.id: where the prompt begins
    _number("read_to"),  # messages.id: the last one a turn has read, or passed over
    _number("light_to"),  # turns.id: the last one whose round is told with shortened tool results
    _words("summary"),  # of what came before the first turn
)

turns = _table(
    "turns",
    Column("turn_id", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    _words("message_id"),
    Column("asker", BigInteger, nullable=False),
    _json("question"),
    _json("user"),
    _json(
        "round", nullable=True
    ),  # none until the turn is closed, and where the history does not keep it
    _moment("opened"),
    _moment("closed", nullable=True),
    _words("retry_of"),
    Index("turns_by_conversation", "conversation", "id"),
    Index("turns_by_turn_id", "turn_id", "id"),
    Index(
        "turns_kept", "conversation", "closed", sqlite_where=text(KEPT), postgresql_where=text(KEPT)
    ),
    Index(
        "turns_left_open",
        "id",
        sqlite_where=text("closed IS NULL"),
        postgresql_where=text("closed IS NULL"),
    ),
    marked=True,
)

runs = _table(
    "runs",
    Column("run_id", Text, nullable=False, unique=True),
    Column("turn_id", Text, nullable=False),
    _words("stop"),
    _words("error"),
    _number("steps"),
    _number("prompt"),
    _number("completion"),
    _number("cached"),
    _number("reasoning"),
    Column("cost", Double),
    Column("state", Text),  # of a suspended run: all it needs to go on
    _moment("expires", nullable=True),
    Index("runs_by_turn_id", "turn_id"),
    Index(
        "runs_suspended",
        "id",
        sqlite_where=text("state IS NOT NULL"),
        postgresql_where=text("state IS NOT NULL"),
    ),
)

steps = _table(
    "steps",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    _json("message"),
    _words("finish"),
    _words("model"),
    Column("seconds", Double, nullable=False),
    _moment("at"),
    Index("steps_by_turn_id", "turn_id"),
)

steered = _table(
    "steered",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    _words("message_id"),
    _json("user"),
    Index("steered_by_turn_id", "turn_id"),
    Index("steered_by_message_id", "message_id"),
)
"""The lines that a turn took in while it went on, and after which step."""

tool_calls = _table(
    "tool_calls",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("call_id", Text, nullable=False),
    _words("name"),
    _moment("started", nullable=True),  # none where the call was answered without being made
    _json("result", nullable=True),
    _words("code"),
    Column("seconds", Double),
    UniqueConstraint("turn_id", "step", "call_id"),
)

sends = _table(
    "sends",
    Column("send_id", Text, nullable=False),
    Column("turn_id", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    _number("via_group"),
    _json("segments"),
    Column("whole", Boolean, nullable=False),
    Column("final", Boolean, nullable=False),
    _words("state"),
    _words("message_id"),
    _words("reason"),
    _moment("queued"),
    _moment("changed"),
    Index("sends_by_send_id", "send_id", "id"),
    Index("sends_by_turn_id", "turn_id"),
    Index("sends_by_message_id", "conversation", "message_id", "id"),
    Index(
        "sends_unfinished",
        "id",
        sqlite_where=text(UNFINISHED),
        postgresql_where=text(UNFINISHED),
    ),
)
"""The outbox."""

usage = _table(
    "usage",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    _words("conversation"),
    _number("asker"),
    _words("model"),
    _number("prompt"),
    _number("completion"),
    _number("cached"),
    _number("reasoning"),
    Column("cost", Double),
    _moment("at"),
    Index("usage_by_turn_id", "turn_id"),
    Index("usage_by_time", "at"),
)

verdicts = _table(
    "verdicts",
    Column("conversation", Text, nullable=False),
    _words("message_id"),
    Column("sender", BigInteger, nullable=False),
    _flag("wakes"),
    _flag("weak"),
    _words("reason"),
    _moment("at"),
    Index("verdicts_by_message_id", "conversation", "message_id", "id"),
    Index("verdicts_by_time", "at"),
)
"""What became of the messages that were for the bot, the last of a message's counts."""
speakers = _table(
    "speakers",
    Column("conversation", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    _number("user_id"),  # 0: whoever it was is forgotten, and nobody gets the number again
    _words("name"),  # last seen
    UniqueConstraint("conversation", "number"),
)
"""The numbers of people in conversations, `小明#2`."""

chosen = _table(
    "choices",
    Column("conversation", Text, nullable=False, unique=True),
    _words("persona"),  # its key; empty: as the files say
)
"""Who the bot is in a conversation, where somebody chose that by command."""

place_settings = _table(
    "place_settings",
    Column("conversation", Text, nullable=False),
    Column("name", Text, nullable=False),
    _words("value"),  # empty: as usual
    UniqueConstraint("conversation", "name"),
)
"""What people set for a conversation by command, `/quiet 2h`."""

things = _table(
    "things",
    Column("conversation", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    _words("message_id"),
    _number("sender"),
    _json("thing", nullable=True),  # none: it was taken back, and nothing gets the number again
    _moment("at"),
    UniqueConstraint("conversation", "number"),
    Index("things_by_message_id", "conversation", "message_id"),
    Index("things_by_time", "at"),
)
"""The things prompts showed by a short name, `[图片 i7]`, for `look` to open."""

memories = _table(
    "memories",
    Column("conversation", Text, nullable=False),
    _flag("private"),  # said in private: told in no group
    Column("memory_id", Text, nullable=False, unique=True),
    _number("subject"),
    _number("author"),
    _words("text"),
    _words("visibility"),
    _words("kind"),
    _json("sources"),
    _moment("made"),
    _moment("used"),
    _moment("expires"),
    Index("memories_by_conversation", "conversation", "used"),
    Index("memories_by_subject", "subject", "used"),
    Index("memories_by_expires", "expires"),
)

memory_terms = _table(
    "memory_terms",
    Column("conversation", Text, nullable=False),
    Column("memory_id", Text, nullable=False),
    Column("shelf", Text, nullable=False),
    Column("term", Text, nullable=False),
    Index("memory_terms_by_term", "shelf", "term", "memory_id"),
    Index("memory_terms_by_memory_id", "memory_id"),
)
"""What each fact is found by: its words (`bot/policy/recall.py`), on every shelf it is looked for.

A table both databases have alike, and pairs of characters: neither SQLite's FTS5 nor PostgreSQL's
own parser finds Chinese words of two characters.
"""


pictures = _table(
    "pictures",
    Column("digest", Text, nullable=False, unique=True),
    _words("words"),
    _moment("at"),
    Index("pictures_by_time", "at"),
)
"""What pictures show, for models that do not see: the same one is looked at once in a month."""

applied = Table(
    "applied",
    metadata,
    Column(
        "number",
        BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
        autoincrement=False,
    ),
)
"""One row: up to which number the lines written ahead are in their tables (`ahead.py`); on
PostgreSQL none.
"""

BY_CONVERSATION = (
    messages,
    windows,
    turns,
    sends,
    usage,
    verdicts,
    speakers,
    chosen,
    place_settings,
    things,
    memories,
    memory_terms,
)
"""The tables that say themselves which conversation a row belongs to."""

BY_TURN = (runs, steps, steered, tool_calls)
"""The tables whose rows belong to the conversation of their turn."""
