"""The statements that write the journal: the same for both databases, compiled once to the driver's
form.

They are executed on the driver's cursor, without SQLAlchemy: for a batch of one or two rows, Core
would cost more than the database itself (36 us against 27 for one row of SQLite, 111 against 37 for
five; measured).

Each statement has a position in a batch. A batch is one transaction, so only dependencies matter: a
statement that reads other rows comes after them. Statements at the same position keep the order of
their entries; others are grouped, so that equal ones are executed together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from sqlalchemy import (
    ClauseElement,
    ColumnElement,
    Table,
    Text,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
    text,
)

from adapters.storage import tables

OVERHEARD = 60
"""The number of latest messages overheard since the last turn that the next one reads."""


class Statement(IntEnum):
    ADD_MESSAGE = 0
    TAKE_BACK_MESSAGE = 1
    ERASE_MESSAGE = 2
    CONSUME_MESSAGES = 3
    MARK_READ = 4
    CONSUME_LINE = 6
    TAKE_IN_LINE = 7
    OPEN_TURN = 10
    ADD_STEERED = 11
    ERASE_STEERED = 12
    ADD_STEP = 20
    ADD_USAGE = 30
    DROP_RESERVED = 31
    START_CALL = 40
    FINISH_CALL = 50
    QUEUE_SEND = 60
    CHANGE_SEND = 70
    SUSPEND_RUN = 80
    RESUME_RUN = 81
    CLOSE_RUN = 82
    MARK_UNREAD = 83
    GIVE_BACK = 84
    CLOSE_TURN = 90
    MOVE_WINDOW = 100
    RESET_WINDOW = 101
    CHOOSE_PERSONA = 105
    SET_PLACE = 106
    NUMBER_MEMBER = 110
    NAME_THING = 120
    ERASE_THINGS = 121
    DESCRIBE_PICTURE = 130
    ADD_VERDICT = 140
    ADD_REQUEST = 150
    ADD_AUDIT = 160
    ADD_JOB = 170
    CHANGE_JOB = 171
    END_JOBS = 172
    RECALL_JOBS = 173
    KEEP_MEMORY = 600
    FORGET_TERMS = 601
    FORGET_MEMORY = 602
    ADD_TERM = 603
    CROP_TERMS = 604
    CROP_MEMORIES = 605
    USE_MEMORY = 606
    UNLEARN_TERMS = 607
    UNLEARN = 608
    FIND_READERS = 990
    REWRITE_TURN = 991
    TELL_AGAIN = 992
    FIND_RESULTS = 993
    REWRITE_RESULT = 994
    FIND_STEPS = 995
    REWRITE_STEP = 996
    FORGET_REQUESTS = 997
    FIND_OWN = 998
    FIND_OWN_STEPS = 999
    BLANK_SEND = 9990
    FIND_OWN_REQUESTS = 9991
    REWRITE_REQUEST = 9992
    FIND_PUBLISHED = 9993
    FIND_DRAFTS = 9994

    @property
    def place(self) -> int:
        """Position in a batch."""
        return self // 10


Parameters: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement in the driver's form; `values` converts its parameters by name to that form."""

    sql: str
    values: Callable[[Parameters], Any]


@lru_cache(maxsize=4)
def compiled(dialect: Any) -> dict[Statement, Prepared]:
    """Each statement in the form of the dialect's driver, with named or positional parameters."""
    clauses = {statement: text(sql) for statement, sql in SQL.items()} | {
        Statement.ADD_MESSAGE: _new(tables.messages, "erased", "turn_id"),
        Statement.OPEN_TURN: _new(tables.turns, "round", "closed"),
        Statement.ADD_STEP: _of_turn(tables.steps),
        Statement.ADD_VERDICT: _new(tables.verdicts),
        Statement.ADD_REQUEST: _of_turn(tables.requests),
        Statement.ADD_AUDIT: _new(tables.audit),
        Statement.NAME_THING: _new(tables.things),
        Statement.ADD_STEERED: _of_turn(tables.steered),
        Statement.QUEUE_SEND: _of_turn(tables.sends, "message_id", "reason", or_none=True),
        Statement.ADD_TERM: _new(tables.memory_terms),
        Statement.ADD_JOB: _new(tables.jobs),
    }
    return {
        statement: _prepared(clause.compile(dialect=dialect))
        for statement, clause in clauses.items()
    }


def _prepared(clause: Any) -> Prepared:
    """SQLite's driver looks up each name for each row: positional values save 6 us of a message's
    80 (measured).
    """
    return Prepared(
        str(clause), _in_order(clause.positiontup) if clause.positional else _as_they_are
    )


def _in_order(names: list[str]) -> Callable[[Parameters], tuple[Any, ...]]:
    if len(names) == 1:  # an itemgetter of one name returns no tuple
        return lambda parameters: (parameters[names[0]],)
    return itemgetter(*names)


def _as_they_are(parameters: Parameters) -> Parameters:
    return parameters


def _new(table: Table, *but: str) -> ClauseElement:
    """Insert a row: each column is a parameter, except these, which keep their defaults."""
    return (
        table.insert()
        .inline()
        .values({c: bindparam(c.name) for c in table.c if c.name not in {"id", *but}})
    )


def _of_turn(table: Table, *but: str, or_none: bool = False) -> ClauseElement:
    """Insert a row of a turn if the turn exists, as it may have been erased while running.
    `or_none`: also without a turn.
    """
    named = [column for column in table.c if column.name not in {"id", *but}]
    values = [bindparam(column.name, type_=column.type) for column in named]
    is_there: ColumnElement[bool] = exists().where(tables.turns.c.turn_id == bindparam("turn_id"))
    if or_none:
        is_there = or_(bindparam("turn_id", type_=Text) == literal_column("''"), is_there)
    return table.insert().inline().from_select(named, select(*values).where(is_there))


SQL = {
    Statement.TAKE_BACK_MESSAGE: """
        DELETE FROM messages WHERE id = (
            SELECT max(id) FROM messages
            WHERE conversation = :conversation AND message_id = :message_id AND NOT overheard
        )""",
    Statement.ERASE_MESSAGE: """
        UPDATE messages SET segments = '[]', erased = true
        WHERE conversation = :conversation AND message_id = :message_id""",
    # What the turn reads: its question, and the last of what was overheard since the turn before.
    # Some servers give many messages the id 0, and repeated events are stored twice, so the
    # question is identified by sender and time too.
    Statement.CONSUME_MESSAGES: """
        UPDATE messages SET turn_id = :turn_id
        WHERE turn_id = '' AND id IN (
            SELECT id FROM (
                SELECT id FROM messages
                WHERE conversation = :conversation AND overheard AND NOT erased AND turn_id = ''
                    AND id > coalesce(
                        (SELECT read_to FROM windows WHERE conversation = :conversation), 0)
                ORDER BY id DESC LIMIT :overheard
            ) AS last
            UNION ALL
            SELECT id FROM (
                SELECT id, overheard, sender, time FROM messages
                WHERE conversation = :conversation AND message_id = :message_id
                ORDER BY id DESC LIMIT 100
            ) AS alike
            WHERE NOT overheard AND sender = :asker AND time = :asked
        )""",
    # A line beside the question, handled like the question; skipped if it was overheard.
    Statement.CONSUME_LINE: """
        UPDATE messages SET turn_id = :turn_id
        WHERE turn_id = '' AND id IN (
            SELECT id FROM (
                SELECT id, overheard, sender, time FROM messages
                WHERE conversation = :conversation AND message_id = :message_id
                ORDER BY id DESC LIMIT 100
            ) AS alike
            WHERE NOT overheard AND sender = :asker AND time = :asked
        )""",
    # A message during the turn, whether to the bot or overheard.
    Statement.TAKE_IN_LINE: """
        UPDATE messages SET turn_id = :turn_id, overheard = false WHERE id IN (
            SELECT id FROM (
                SELECT id, sender, time FROM messages
                WHERE conversation = :conversation AND message_id = :message_id
                ORDER BY id DESC LIMIT 100
            ) AS alike
            WHERE sender = :asker AND time = :asked
        )""",
    Statement.ERASE_STEERED: """
        DELETE FROM steered WHERE message_id = :message_id
            AND turn_id IN (SELECT turn_id FROM messages
                WHERE conversation = :conversation AND message_id = :message_id)""",
    # One position instead of a mark per row: thousands may have been overheard since the last turn.
    Statement.MARK_READ: """
        INSERT INTO windows (conversation, read_to)
        VALUES (:conversation,
            coalesce((SELECT max(id) FROM messages WHERE conversation = :conversation), 0))
        ON CONFLICT (conversation) DO UPDATE SET read_to = excluded.read_to""",
    # Move the position to before the first line overheard by the turn or the one it repeats. Lines
    # that others have read keep their marks; those before a reset stay read. Slow, but rare.
    Statement.MARK_UNREAD: """
        WITH these AS (
            SELECT messages.id, messages.conversation FROM turns
            JOIN messages ON messages.conversation = turns.conversation
                AND messages.turn_id IN (turns.turn_id, turns.retry_of)
            WHERE turns.turn_id = :turn_id AND messages.overheard AND NOT messages.erased
                AND messages.turn_id != '' AND turns.id >= coalesce((
                    SELECT first_turn FROM windows WHERE conversation = turns.conversation), 0)
        )
        UPDATE windows SET read_to = (SELECT min(id) - 1 FROM these)
        WHERE conversation = (SELECT max(conversation) FROM these)
            AND read_to >= (SELECT min(id) FROM these)""",
    Statement.GIVE_BACK: """
        UPDATE messages SET turn_id = '' WHERE id IN (
            SELECT messages.id FROM turns
            JOIN messages ON messages.conversation = turns.conversation
                AND messages.turn_id IN (turns.turn_id, turns.retry_of)
            WHERE turns.turn_id = :turn_id AND messages.overheard AND NOT messages.erased
                AND messages.turn_id != '')""",
    Statement.MOVE_WINDOW: """
        INSERT INTO windows (conversation, first_turn, light_to, summary)
        VALUES (:conversation, coalesce((SELECT max(id) FROM turns WHERE turn_id = :turn_id), 0),
            coalesce((SELECT max(id) FROM turns WHERE turn_id = :light_to), 0), :summary)
        ON CONFLICT (conversation) DO UPDATE SET first_turn = excluded.first_turn,
            light_to = excluded.light_to, summary = excluded.summary""",
    Statement.CHOOSE_PERSONA: """
        INSERT INTO choices (conversation, persona) VALUES (:conversation, :persona)
        ON CONFLICT (conversation) DO UPDATE SET persona = excluded.persona""",
    Statement.SET_PLACE: """
        INSERT INTO place_settings (conversation, name, value)
        VALUES (:conversation, :name, :value)
        ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value""",
    # An erased person stays erased.
    Statement.NUMBER_MEMBER: """
        INSERT INTO speakers (conversation, number, user_id, name)
        VALUES (:conversation, :number, :user_id, :name)
        ON CONFLICT (conversation, number) DO UPDATE SET name = excluded.name
            WHERE speakers.user_id = excluded.user_id""",
    # Turns that had not ended when a recalled message was received; the latest ones if it was not.
    Statement.FIND_READERS: """
        SELECT id, question, "user", round FROM turns
        WHERE conversation = :conversation AND coalesce(closed, 1e18) >= coalesce((SELECT min(taken)
            FROM messages WHERE conversation = :conversation AND message_id = :message_id), (
            SELECT min(opened) FROM (SELECT opened FROM turns WHERE conversation = :conversation
                ORDER BY id DESC LIMIT :rounds) AS latest)) ORDER BY id""",
    # What the bot said as this message, and the turn that said it.
    Statement.FIND_OWN: """
        SELECT sends.id, sends.send_id, sends.segments, sends.final, (
            SELECT count(*) FROM sends AS others WHERE others.turn_id = sends.turn_id
                AND others.final = sends.final AND others.segments = :blank
            ), turns.id, turns.turn_id, turns.question, turns."user", turns.round
        FROM sends JOIN turns ON turns.turn_id = sends.turn_id
        WHERE sends.conversation = :conversation AND sends.message_id = :message_id
            AND sends.message_id NOT IN ('', '0') AND turns.conversation = :conversation
        ORDER BY sends.id DESC LIMIT 1""",
    Statement.FIND_OWN_STEPS: "SELECT id, message FROM steps WHERE turn_id = :turn_id ORDER BY id",
    Statement.FIND_OWN_REQUESTS: """
        SELECT id, message FROM requests WHERE turn_id = :turn_id AND message IS NOT NULL""",
    # The line on the publication of a draft, and the draft's own rows.
    Statement.FIND_PUBLISHED: """
        SELECT message_id, segments FROM messages
        WHERE conversation = :conversation AND message_id LIKE :line AND NOT erased""",
    Statement.FIND_DRAFTS: """
        SELECT id, segments FROM sends
        WHERE turn_id = :turn_id AND send_id LIKE :draft AND state = 'published'""",
    Statement.REWRITE_REQUEST: "UPDATE requests SET message = :message WHERE id = :id",
    Statement.BLANK_SEND: "UPDATE sends SET segments = :segments WHERE id = :id",
    Statement.FIND_RESULTS: """
        SELECT id, turn_id, step, call_id, result FROM tool_calls
        WHERE result IS NOT NULL AND turn_id = (SELECT turn_id FROM turns WHERE id = :id)""",
    Statement.REWRITE_RESULT: "UPDATE tool_calls SET result = :result WHERE id = :id",
    Statement.FIND_STEPS: "SELECT id, message FROM steps WHERE turn_id = :turn_id AND step = :step",
    Statement.FORGET_REQUESTS: """
        UPDATE requests SET message = NULL WHERE turn_id = :turn_id AND run = :run""",
    Statement.REWRITE_STEP: "UPDATE steps SET message = :message WHERE id = :id",
    Statement.REWRITE_TURN: """
        UPDATE turns SET question = :question, "user" = :user, round = :round WHERE id = :id""",
    # Drop a summary that includes a rewritten round, and show the latest rounds again.
    Statement.TELL_AGAIN: """
        UPDATE windows SET summary = '', light_to = 0, first_turn = coalesce((
            SELECT min(id) FROM (
                SELECT id FROM turns WHERE conversation = :conversation AND round IS NOT NULL
                ORDER BY id DESC LIMIT :rounds
            ) AS latest), 0)
        WHERE conversation = :conversation AND summary != '' AND first_turn > :id""",
    Statement.DESCRIBE_PICTURE: """
        INSERT INTO pictures (digest, words, at) VALUES (:digest, :words, :at)
        ON CONFLICT (digest) DO UPDATE SET words = excluded.words, at = excluded.at""",
    Statement.ERASE_THINGS: """
        UPDATE things SET thing = NULL, message_id = '', sender = 0
        WHERE conversation = :conversation AND message_id = :message_id""",
    Statement.RESET_WINDOW: """
        INSERT INTO windows (conversation, first_turn, read_to)
        VALUES (:conversation, coalesce((SELECT max(id) FROM turns), 0) + 1,
            coalesce((SELECT max(id) FROM messages WHERE conversation = :conversation), 0))
        ON CONFLICT (conversation) DO UPDATE SET first_turn = excluded.first_turn,
            read_to = excluded.read_to, light_to = 0, summary = ''""",
    # The payer of a turn that was erased while running is known if it was recorded.
    Statement.ADD_USAGE: """
        INSERT INTO usage (turn_id, step, reserved, conversation, asker,
            model, prompt, completion, cached, reasoning, cost, at)
        SELECT :turn_id, :step, :reserved, coalesce(conversation,
                (SELECT usage.conversation FROM usage WHERE turn_id = :turn_id LIMIT 1), :place),
            CASE WHEN uncalled THEN 0 ELSE coalesce(
                asker, (SELECT usage.asker FROM usage WHERE turn_id = :turn_id LIMIT 1), :who) END,
            :model, :prompt, :completion, :cached, :reasoning, :cost, :at
        FROM (SELECT max(id) AS id FROM turns WHERE turn_id = :turn_id) AS newest
        LEFT JOIN turns ON turns.id = newest.id""",
    # Older versions stored the number in the step, negated.
    Statement.DROP_RESERVED: """
        DELETE FROM usage WHERE turn_id = :turn_id AND (reserved = :number OR step = -:number)""",
    Statement.CLOSE_TURN: """
        UPDATE turns SET round = :round, closed = :at
        WHERE id = (SELECT max(id) FROM turns WHERE turn_id = :turn_id)""",
    Statement.CHANGE_SEND: """
        UPDATE sends SET state = :state, changed = :at, reason = :reason,
            message_id = CASE WHEN :message_id = '' THEN message_id ELSE :message_id END
        WHERE id = (SELECT max(id) FROM sends WHERE send_id = :send_id)""",
    # A new start clears the result: if ids collide, this call must not look finished.
    Statement.START_CALL: """
        INSERT INTO tool_calls (turn_id, step, call_id, name, started)
        SELECT :turn_id, :step, :call_id, :name, :started
        WHERE EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id)
        ON CONFLICT (turn_id, step, call_id)
        DO UPDATE SET name = excluded.name, started = excluded.started, result = NULL""",
    # A call answered without being made (no such tool, say) has not started.
    Statement.FINISH_CALL: """
        INSERT INTO tool_calls (turn_id, step, call_id, name, result, code, seconds)
        SELECT :turn_id, :step, :call_id, :name, :result, :code, :seconds
        WHERE EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id)
        ON CONFLICT (turn_id, step, call_id)
        DO UPDATE SET result = excluded.result, code = excluded.code, seconds = excluded.seconds""",
    Statement.SUSPEND_RUN: """
        INSERT INTO runs (run_id, turn_id, state, expires)
        SELECT :run_id, :turn_id, :state, :expires
        WHERE EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id)
        ON CONFLICT (run_id) DO UPDATE SET state = excluded.state, expires = excluded.expires""",
    Statement.CLOSE_RUN: """
        INSERT INTO runs (run_id, turn_id, stop, error, steps,
            prompt, completion, cached, reasoning, cost)
        SELECT :run_id, :turn_id, :stop, :error, :steps,
            :prompt, :completion, :cached, :reasoning, :cost
        WHERE EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id)
        ON CONFLICT (run_id)
        DO UPDATE SET stop = excluded.stop, error = excluded.error, steps = excluded.steps,
            prompt = excluded.prompt, completion = excluded.completion, cached = excluded.cached,
            reasoning = excluded.reasoning, cost = excluded.cost, state = NULL, expires = NULL""",
    Statement.KEEP_MEMORY: """
        INSERT INTO memories (conversation, private, memory_id, subject, author, text, visibility,
            kind, sources, made, used, expires)
        VALUES (:conversation, :private, :memory_id, :subject, :author, :text, :visibility,
            :kind, :sources, :made, :used, :expires)
        ON CONFLICT (memory_id) DO UPDATE SET text = excluded.text,
            visibility = excluded.visibility, kind = excluded.kind, sources = excluded.sources,
            made = excluded.made, used = excluded.used, expires = excluded.expires""",
    Statement.FORGET_TERMS: "DELETE FROM memory_terms WHERE memory_id = :memory_id",
    Statement.FORGET_MEMORY: "DELETE FROM memories WHERE memory_id = :memory_id",
    # The least used facts above a conversation's limit.
    Statement.CROP_TERMS: """
        DELETE FROM memory_terms WHERE memory_id IN (
            SELECT memory_id FROM memories WHERE conversation = :conversation
            ORDER BY used DESC, id DESC LIMIT 1000 OFFSET :most)""",
    Statement.CROP_MEMORIES: """
        DELETE FROM memories WHERE id IN (
            SELECT id FROM memories WHERE conversation = :conversation
            ORDER BY used DESC, id DESC LIMIT 1000 OFFSET :most)""",
    # Facts from a recalled message are deleted with it.
    Statement.UNLEARN_TERMS: """
        DELETE FROM memory_terms WHERE memory_id IN (
            SELECT memory_id FROM memories
            WHERE conversation = :conversation AND sources LIKE :named ESCAPE '!')""",
    Statement.UNLEARN: """
        DELETE FROM memories
        WHERE conversation = :conversation AND sources LIKE :named ESCAPE '!'""",
    Statement.USE_MEMORY: """
        UPDATE memories SET used = :at, expires = :expires WHERE memory_id = :memory_id""",
    # What ended, by its maker or because its message was recalled, does not begin again. The
    # number of a deleted job may be given again, so that alone it does not find one.
    Statement.CHANGE_JOB: """
        UPDATE jobs SET rule = :rule, zone = :zone, state = :state, claim = :claim,
            due = :due, wake = :wake, fired = :fired, missed = :missed, notes = :notes
        WHERE account = :account AND number = :number AND made = :made AND maker = :maker
            AND wake IS NOT NULL""",
    Statement.END_JOBS: """
        UPDATE jobs SET state = 'ended', wake = NULL
        WHERE conversation = :conversation AND wake IS NOT NULL
            AND made < :left AND (maker = :maker OR :maker = 0)""",
    Statement.RECALL_JOBS: """
        UPDATE jobs SET state = 'ended', wake = NULL, words = ''
        WHERE conversation = :conversation AND message_id = :message_id AND message_id <> ''
            AND made >= :since""",
    Statement.RESUME_RUN: "UPDATE runs SET state = NULL, expires = NULL WHERE run_id = :run_id",
}
"""Statements that are clearest in SQL; both databases accept them."""


Row: TypeAlias = tuple[Statement, dict[str, Any]]


def plain(text: str) -> str:
    """The text for a column: PostgreSQL has no NUL. (JSON escapes it.)"""
    return text.replace("\0", "�")
