"""The journal's schema: tables, indexes, and revisions.

Row ids are ours and rise in the order of writing; a message_id is never assumed unique. A
conversation is its text, `10001:group:4242`. JSON columns hold what `bot/core/codec.py` wrote.

An index used to find the newest row of a key ends with the id: without statistics, PostgreSQL would
otherwise scan all rows from the newest on.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
    text,
)

metadata = MetaData()


def table(name: str, *columns: Any, marked: bool = False) -> Table:
    """A new table. `marked`: another one points to its rows, so ids are never reused."""
    row_id = Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    return Table(name, metadata, row_id, *columns, sqlite_autoincrement=marked)


def part_of(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where))


@event.listens_for(metadata, "before_create")
def _likewise_on_postgres(whole: MetaData, connection: Connection, **_more: Any) -> None:
    # Naming PostgreSQL above would load SQLAlchemy's part for it, 2 MiB, for SQLite too.
    if connection.dialect.name == "postgresql":
        for index in (index for table in whole.tables.values() for index in table.indexes):
            options = index.dialect_options
            options["postgresql"]["where"] = options["sqlite"]["where"]


def words(name: str, **more: Any) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="", **more)


def number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def moment(name: str, *, nullable: bool = False) -> Column[float]:
    """Seconds since 1970."""
    return Column(name, Double, nullable=nullable)


def json(name: str, *, nullable: bool = False) -> Column[str]:
    """Text, not the databases' JSON types, which alter it and reject what QQ sends (NUL)."""
    return Column(name, Text, nullable=nullable, info={"json": True})


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


REVISIONS = ("0015", "0016", "0017")
"""The revisions of the schema that this code reads, oldest first; the first is the baseline
(`baseline.py`), the last the one this code needs (migrations/versions).
"""

versions = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table; its one row is the schema's revision."""

# --- conversations --------------------------------------------------------------------------------

messages = table(
    "messages",
    Column("conversation", Text, nullable=False),
    number("via_group"),
    words("message_id"),
    words("message_seq"),
    Column("self_id", BigInteger, nullable=False),
    Column("sender", BigInteger, nullable=False),
    words("nickname"),
    words("card"),
    words("role"),
    words("sub_type"),
    words("group_name"),
    json("segments"),
    moment("time"),  # the server's; `taken` is ours
    moment("taken"),
    flag("overheard"),
    flag("erased"),
    words("turn_id"),  # the turn that read it
    Index("messages_by_conversation", "conversation", "id"),
    Index("messages_by_message_id", "conversation", "message_id", "id"),
    Index("messages_by_time", "taken"),
    marked=True,
)
"""Every message received. Recent ones are also the deduplication window."""

windows = table(
    "windows",
    Column("conversation", Text, nullable=False, unique=True),
    number("first_turn"),  # turns.id: where the prompt begins
    number("read_to"),  # messages.id: the last one a turn has read or skipped
    number("light_to"),  # turns.id: the last one shown with shortened tool results
    words("summary"),  # of what came before the first turn
)

verdicts = table(
    "verdicts",
    Column("conversation", Text, nullable=False),
    words("message_id"),
    Column("sender", BigInteger, nullable=False),
    flag("wakes"),
    flag("weak"),
    words("reason"),
    moment("at"),
    moment("until", nullable=True),
    Index("verdicts_by_message_id", "conversation", "message_id", "id"),
    Index("verdicts_by_time", "at"),
)
"""Verdicts on the messages to the bot; the last one of a message counts."""

speakers = table(
    "speakers",
    Column("conversation", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    number("user_id"),  # 0: the person was erased, and the number is not reused
    words("name"),  # latest
    UniqueConstraint("conversation", "number"),
)
"""The numbers of people in conversations, `小明#2`."""

things = table(
    "things",
    Column("conversation", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    words("message_id"),
    number("sender"),
    json("thing", nullable=True),  # null: recalled; the number is not reused
    moment("at"),
    UniqueConstraint("conversation", "number"),
    Index("things_by_message_id", "conversation", "message_id"),
    Index("things_by_time", "at"),
)
"""The attachments that prompts name, `[图片 i7]`, for `look` to open."""

pictures = table(
    "pictures",
    Column("digest", Text, nullable=False, unique=True),
    words("words"),
    moment("at"),
    Index("pictures_by_time", "at"),
)
"""Descriptions of images for models that cannot see; one image is described once a month."""

chosen = table(
    "choices",
    Column("conversation", Text, nullable=False, unique=True),
    words("persona"),  # its key; empty: as the files say
)
"""The persona chosen by command in a conversation."""

place_settings = table(
    "place_settings",
    Column("conversation", Text, nullable=False),
    Column("name", Text, nullable=False),
    words("value"),  # empty: the default
    UniqueConstraint("conversation", "name"),
)
"""Settings made in a conversation by command, `/quiet 2h`."""

# --- turns ----------------------------------------------------------------------------------------

KEPT = "round IS NOT NULL"
"""Turns whose rounds are in the history."""

IN_ERROR = "error <> ''"
"""Runs with an error."""

UNFINISHED = "state IN ('queued', 'sending', 'unknown')"
"""Sends without a known end. A literal, because SQLite uses the index only without parameters."""

WAS_DRAFT = "state IN ('published', 'reworded')"
"""Published drafts."""

turns = table(
    "turns",
    Column("turn_id", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    words("message_id"),
    Column("asker", BigInteger, nullable=False),
    json("question"),
    json("user"),
    json("round", nullable=True),  # null until closed, or if the history does not keep it
    moment("opened"),
    moment("closed", nullable=True),
    words("retry_of"),
    flag("uncalled"),
    Index("turns_by_conversation", "conversation", "id"),
    Index("turns_by_turn_id", "turn_id", "id"),
    part_of("turns_kept", "conversation", "closed", where=KEPT),
    part_of("turns_left_open", "id", where="closed IS NULL"),
    marked=True,
)

runs = table(
    "runs",
    Column("run_id", Text, nullable=False, unique=True),
    Column("turn_id", Text, nullable=False),
    words("stop"),
    words("error"),
    *map(number, ("steps", "prompt", "completion", "cached", "reasoning")),
    Column("cost", Double),
    Column("state", Text),  # of a suspended run: all it needs to resume
    moment("expires", nullable=True),
    Index("runs_by_turn_id", "turn_id"),
    part_of("runs_in_error", "id", where=IN_ERROR),
    part_of("runs_suspended", "id", where="state IS NOT NULL"),
)

steps = table(
    "steps",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    json("message"),
    words("finish"),
    words("model"),
    Column("seconds", Double, nullable=False),
    moment("at"),
    Index("steps_by_turn_id", "turn_id"),
)

steered = table(
    "steered",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    words("message_id"),
    json("user"),
    Index("steered_by_turn_id", "turn_id"),
    Index("steered_by_message_id", "message_id"),
)
"""Lines added to a running turn, and after which step."""

tool_calls = table(
    "tool_calls",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("call_id", Text, nullable=False),
    words("name"),
    moment("started", nullable=True),  # null if the call was answered without being made
    json("result", nullable=True),
    words("code"),
    Column("seconds", Double),
    UniqueConstraint("turn_id", "step", "call_id"),
)

requests = table(
    "requests",
    Column("turn_id", Text, nullable=False),
    words("run"),  # the subagent's; empty if unknown
    number("step"),
    words("model"),
    words("outcome"),
    json("message", nullable=True),
    Column("seconds", Double, nullable=False),
    moment("at"),
    Index("requests_by_turn_id", "turn_id"),
)
"""Requests to models that are not steps of their turns: failed ones, and those of subagents."""

sends = table(
    "sends",
    Column("send_id", Text, nullable=False),
    Column("turn_id", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    number("via_group"),
    json("segments"),
    Column("whole", Boolean, nullable=False),
    Column("final", Boolean, nullable=False),
    words("state"),
    words("message_id"),
    words("reason"),
    moment("queued"),
    moment("changed"),
    Index("sends_by_send_id", "send_id", "id"),
    Index("sends_by_turn_id", "turn_id"),
    Index("sends_by_message_id", "conversation", "message_id", "id"),
    part_of("sends_unfinished", "id", where=UNFINISHED),
    part_of("sends_published", "id", where=WAS_DRAFT),
)
"""The outbox."""

# --- sums -----------------------------------------------------------------------------------------

SHARED = "requests", "prompt", "completion", "cached", "unpriced", "cost"
"""The shares of tools called in one step."""

PAYER = 1 - 2**31
"""The step of a row that only records who pays for an erased turn; it is no request."""

usage = table(
    "usage",
    Column("turn_id", Text, nullable=False),
    Column("step", Integer, nullable=False),  # 0 for a request outside of the steps
    words("conversation"),
    number("asker"),
    words("model"),
    *map(number, ("prompt", "completion", "cached", "reasoning")),
    Column("cost", Double),
    moment("at"),
    number("reserved"),  # its number, while the request is under way or was cut off
    Index("usage_by_turn_id", "turn_id"),
    Index("usage_by_time", "at"),
)

day_usage = table(
    "day_usage",
    moment("day"),  # midnight, in the time zone of the process that added it up
    words("conversation"),
    number("asker"),
    words("model"),
    *map(number, ("requests", "prompt", "completion", "cached", "unpriced")),
    Column("cost", Double, nullable=False),
    Index("day_usage_by_day", "day"),
)
"""Sums of `usage` per past day; a day without rows had no usage."""

day_tools = table(
    "day_tools",
    moment("day"),
    words("tool"),  # empty: requests that read no result
    *(Column(name, Double, nullable=False) for name in SHARED),
    Index("day_tools_by_day", "day"),
)
"""The same by tool, for the requests that first read its results (`retention.py`)."""

day_totals = table(
    "day_totals",
    moment("day"),  # midnight, in the time zone of the workers
    number("who"),  # a person; 0 is the total
    number("tokens"),
    Column("cost", Double, nullable=False),
    UniqueConstraint("day", "who"),
)
"""Today's sums by person, if workers of a cluster share limits (`day_totals.py`)."""

# --- facts ----------------------------------------------------------------------------------------

memories = table(
    "memories",
    Column("conversation", Text, nullable=False),
    flag("private"),  # said in private: never shown in a group
    Column("memory_id", Text, nullable=False, unique=True),
    number("subject"),
    number("author"),
    words("text"),
    words("visibility"),
    words("kind"),
    json("sources"),
    moment("made"),
    moment("used"),
    moment("expires"),
    Index("memories_by_conversation", "conversation", "used"),
    Index("memories_by_subject", "subject", "used"),
    Index("memories_by_expires", "expires"),
)

memory_terms = table(
    "memory_terms",
    Column("conversation", Text, nullable=False),
    Column("memory_id", Text, nullable=False),
    Column("shelf", Text, nullable=False),
    Column("term", Text, nullable=False),
    Index("memory_terms_by_term", "shelf", "term", "memory_id"),
    Index("memory_terms_by_memory_id", "memory_id"),
)
"""The index of facts: each fact's words (`bot/policy/memory_rules.py`), on each of its shelves.

An ordinary table for both databases, with pairs of characters: neither SQLite's FTS5 nor
PostgreSQL's parser finds Chinese words of two characters.
"""

# --- jobs -----------------------------------------------------------------------------------------

LIVE_JOB = "wake IS NOT NULL"
"""The jobs that have not ended. Written out, as UNFINISHED is."""

jobs = table(
    "jobs",
    Column("account", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),  # as people type it: 7 of J7
    Column("conversation", Text, nullable=False),
    number("via_group"),
    Column("maker", BigInteger, nullable=False),
    words("kind"),
    words("words"),
    words("rule"),  # empty: once
    words("zone"),
    words("message_id"),  # that made it
    words("authority"),
    words("language"),
    words("state"),
    words("claim"),  # the send, or the turn, of the firing that goes on
    moment("made"),
    moment("due"),
    moment("wake", nullable=True),  # when somebody is to look at it; none once it has ended
    *map(number, ("fired", "missed")),
    words("notes"),  # of a feed
    UniqueConstraint("account", "number"),
    part_of("jobs_by_wake", "account", "wake", where=LIVE_JOB),
    Index("jobs_by_conversation", "conversation"),
    Index("jobs_by_maker", "maker"),
    Index("jobs_by_due", "due"),
)
"""Reminders, and whatever else is done at a moment."""

# --- the console, and what is written ahead -------------------------------------------------------

audit = table(
    "audit",
    moment("at"),
    words("login"),  # the beginning of its hash
    words("address"),
    words("action"),
    words("object"),
    words("outcome"),
    Index("audit_by_time", "at"),
)
"""The audit of the operator's console, including refused logins."""

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
"""One row: the number of the last applied line (`ahead.py`); unused on PostgreSQL."""

# --- the conversation of a row --------------------------------------------------------------------

BY_CONVERSATION = (
    messages,
    windows,
    turns,
    sends,
    usage,
    day_usage,
    verdicts,
    speakers,
    chosen,
    place_settings,
    things,
    memories,
    memory_terms,
    jobs,
)
"""Tables with their own conversation column."""

BY_TURN = (runs, steps, steered, tool_calls, requests)
"""Tables whose rows belong to their turn's conversation."""
