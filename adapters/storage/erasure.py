"""Erasure: the data of a person or a group leaves every table, and its bytes leave the file.
Blocks.

A person's data are their messages, the turns they asked for, and the turns that read their
messages: rendered text names everyone as `name#2`, by their number there (bot/prompt/render.py), or
as `name(number)` by their account (older versions). What a model paraphrased in later answers
cannot be found. Numbers are never reused. Today's usage stays until the day has ended, without any
text: otherwise an erasure would reset the day's limits.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    case,
    delete,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    update,
)

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database, Unusable, describe_error
from adapters.storage.queries.conversations import NOWHERE
from adapters.storage.queries.unfinished import ACTIVE
from adapters.storage.retention import LONGEST_DAY, drop_facts
from adapters.storage.rows import SEGMENTS
from adapters.storage.tables import (
    BY_TURN,
    PAYER,
    audit,
    chosen,
    day_usage,
    jobs,
    memories,
    messages,
    metadata,
    pictures,
    place_settings,
    requests,
    runs,
    sends,
    speakers,
    steered,
    steps,
    things,
    tool_calls,
    turns,
    usage,
    verdicts,
    windows,
)
from bot.core import codec
from bot.core.actions import SEND_PREFIXES, send_prefix, send_prefix_of_person, send_prefix_of_turn
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.journal import ERRAND
from bot.core.other_bots import EVERY_ACCOUNT, AccountScope
from bot.core.segments import Mention, Segment
from frostagent.types.errors import BotError

ERASED_ERRAND = "erased"  # the turn_id of what errands of the erased used
MOST = 1000  # messages, the latest; it is about the moment between two erasures


class Newer(Struct, frozen=True):
    """The ids of the rows that stay, by table, and the turn ids of such turns."""

    rows: dict[str, tuple[int, ...]] = {}
    turn_ids: tuple[str, ...] = ()

    def has(self, table: Table) -> ColumnElement[bool]:
        """Condition: the row stays."""
        ids = self.rows.get(table.name)
        return table.c.id.in_(ids) if ids else false()

    def has_turn(self, table: Table) -> ColumnElement[bool]:
        """Condition: the row's turn stays."""
        return table.c.turn_id.in_(self.turn_ids) if self.turn_ids else false()


NOTHING = Newer()


def newer(connection: Connection, since: float, has: Callable[[Conversation], bool]) -> Newer:
    """The rows taken after `since`, in seconds since 1970, in the conversations that we `has`.

    This includes turns opened for one of these messages: they read nothing that was erased. It
    excludes messages of the bot, which may belong to an older turn.
    """
    if math.isinf(since):
        return NOTHING
    query = (
        select(messages.c.id, messages.c.conversation, messages.c.message_id, messages.c.sender)
        .where(messages.c.taken > since, messages.c.sender != messages.c.self_id)
        .where(~messages.c.erased)
        .order_by(messages.c.id.desc())
        .limit(MOST)
    )
    said = [row for row in connection.execute(query) if has(Conversation.parse(row.conversation))]
    if not said:
        return NOTHING
    named = {(row.conversation, row.message_id) for row in said}
    people = {(row.conversation, row.sender) for row in said}

    def found(table: Table, key: str, known: set[tuple[str, Any]], *where: Any) -> list[Any]:
        among = table.c[key].in_({value for _, value in known})
        rows = connection.execute(select(table).where(among, *where))
        return [row for row in rows if (row.conversation, getattr(row, key)) in known]

    opened = found(turns, "message_id", named, turns.c.opened > since)
    return Newer(
        {
            messages.name: _ids(said),
            verdicts.name: _ids(found(verdicts, "message_id", named, verdicts.c.at > since)),
            things.name: _ids(found(things, "message_id", named, things.c.at > since)),
            speakers.name: _ids(found(speakers, "user_id", people)),
            turns.name: _ids(opened),
        },
        tuple(row.turn_id for row in opened),
    )


def _ids(rows: Iterable[Any]) -> tuple[int, ...]:
    return tuple(row.id for row in rows)


# Attempts to empty the write-ahead log beside readers; each waits as long as SQLite waits for a
# lock.
TRIES = 10
WITHOUT_ROUND = (
    tool_calls.c.result,
    steps.c.message,
    requests.c.message,
    steered.c.user,
    runs.c.state,
)
"""Text of a turn that is not in its round, or not yet."""


@dataclass(frozen=True, slots=True)
class _Whose:
    """The rows to erase: these conversations, and these rows elsewhere, but nothing `newer`."""

    conversations: str
    messages: tuple[ColumnElement[bool], ...] = ()
    turns: tuple[ColumnElement[bool], ...] = ()
    usage: tuple[ColumnElement[bool], ...] = ()
    day_usage: tuple[ColumnElement[bool], ...] = ()
    verdicts: tuple[ColumnElement[bool], ...] = ()
    memories: tuple[ColumnElement[bool], ...] = ()
    settings: tuple[ColumnElement[bool], ...] = ()
    jobs: tuple[ColumnElement[bool], ...] = ()
    newer: Newer = NOTHING
    user: int = 0
    group: int = 0


def forget_user(
    database: Database, user: int, *, now: Callable[[], float] = time.time
) -> dict[str, int]:
    """Erase a person. Returns the number of deleted rows per table. Raises ConfigError, Unusable,
    the driver's errors.
    """
    with database.connect() as connection:
        with connection.begin():
            gone = erase_user(connection, user, now=now())
        _compact(connection)
    return gone


def forget_group(
    database: Database, group: int, *, now: Callable[[], float] = time.time
) -> dict[str, int]:
    """Erase a group, for all accounts of the bot. Returns the number of deleted rows per table.
    Raises as `forget_user`.
    """
    with database.connect() as connection:
        with connection.begin():
            gone = erase_group(connection, group, now=now())
        _compact(connection)
    return gone


def has_turn(database: Database, turn_id: str) -> bool:
    """Whether the journal has a turn of this id. Raises as `forget_user`."""
    with database.reading() as connection:
        query = select(turns.c.id).where(turns.c.turn_id == turn_id).limit(1)
        return connection.scalar(query) is not None


def erase_user(
    connection: Connection, user: int, *, now: float, newer: Newer = NOTHING
) -> dict[str, int]:
    """Delete a person's rows, but newer ones, in this transaction. Returns counts per table."""
    named = f"%({user})%"
    _note_payers(connection, now)
    _claim_turns(connection, user, newer)
    whose = _Whose(
        f"%:private:{user}",
        messages=(messages.c.sender == user,),
        turns=(turns.c.asker == user, turns.c.user.like(named), turns.c.round.like(named)),
        usage=(usage.c.asker == user,),
        day_usage=(day_usage.c.asker == user,),
        verdicts=(verdicts.c.sender == user,),
        memories=(memories.c.subject == user, memories.c.author == user),
        settings=(place_settings.c.value.like(f'%"user_id":{user},%'),),  # their invitations
        jobs=(jobs.c.maker == user,),
        newer=newer,
        user=user,
    )
    _erase_summaries(connection, whose, user)
    gone = _erase(connection, whose, now)
    _erase_member(connection, user, newer)
    _erase_names(connection, user)
    published = update(sends).where(sends.c.reason.like(named))
    connection.execute(published.values(reason=""))
    by_command = update(audit).where(audit.c.address == str(user))
    connection.execute(by_command.values(address=""))
    return gone


def erase_group(
    connection: Connection, group: int, *, now: float, newer: Newer = NOTHING
) -> dict[str, int]:
    """Delete a group's rows, but newer ones, in this transaction. Returns counts per table."""
    _note_payers(connection, now)
    applicants = (place_settings.c.value.like(f'%"group_id":{group},%'),)
    whose = _Whose(f"%:group:{group}", settings=applicants, newer=newer, group=group)
    return _erase(connection, whose, now)


def _note_payers(connection: Connection, now: float) -> None:
    """Record who pays for open turns: what an erased turn uses from now on still counts for its
    asker until the day has ended.
    """
    asker = case((turns.c.uncalled, 0), else_=turns.c.asker)
    nothing = [literal(0).label(name) for name in ("prompt", "completion", "cached", "reasoning")]
    of = turns.c.turn_id, literal(PAYER), turns.c.conversation, asker, literal("")
    payers = select(*of, *nothing, literal(0.0), literal(now)).where(turns.c.closed.is_(None))
    names = "turn_id", "step", "conversation", "asker", "model"
    tokens = "prompt", "completion", "cached", "reasoning", "cost", "at"
    connection.execute(insert(usage).from_select([*names, *tokens], payers))


def _blank(connection: Connection, whose: _Whose) -> int:
    """Keep of recent messages only that their ids were received, so that the next start does not
    find them in a history and take them for new. Returns their number.
    """
    newest = select(func.max(messages.c.taken)).scalar_subquery()
    own_place = messages.c.conversation.like(whose.conversations)
    rows = (
        or_(own_place, *whose.messages),
        messages.c.taken >= newest - ACTIVE,
        ~whose.newer.has(messages),
    )
    place = case((own_place, NOWHERE), else_=messages.c.conversation)
    words = "nickname", "card", "role", "sub_type", "group_name", "message_seq", "turn_id"
    blank = update(messages).where(*rows).values(dict.fromkeys(words, ""))
    blank = blank.values(conversation=place, sender=0, via_group=0, segments="[]", erased=True)
    return connection.execute(blank).rowcount


def _claim_turns(connection: Connection, user: int, newer: Newer) -> None:
    """Assign the turns with `name#2` in them, and not `name#21`, to the person, by their number in
    each conversation. "issue-#2" is no person.
    """
    theirs = connection.execute(
        select(speakers.c.conversation, speakers.c.number).where(speakers.c.user_id == user)
    ).all()
    name = _name_of(connection, user)
    claim = update(turns).where(turns.c.id == bindparam("of")).values(asker=user)
    for conversation, number in theirs:
        named = re.compile(rf"(?:{name})#{number}(?!\d)")
        read = select(turns.c.id, turns.c.user, turns.c.round).where(
            turns.c.conversation == conversation,
            ~newer.has(turns),
            or_(turns.c.user.like(f"%#{number}%"), turns.c.round.like(f"%#{number}%")),
        )
        found = [
            {"of": turn_id}
            for turn_id, *texts in connection.execute(read)
            if any(text and named.search(text) for text in texts)
        ]
        # Also what was found, said or asked about them: failed and open turns have no round.
        for column in WITHOUT_ROUND:
            told = select(turns.c.id, column).where(
                column.table.c.turn_id == turns.c.turn_id,
                turns.c.conversation == conversation,
                ~newer.has(turns),
                column.like(f"%#{number}%"),
            )
            found += [
                {"of": turn_id} for turn_id, text in connection.execute(told) if named.search(text)
            ]
        if found:
            connection.execute(claim, found)


def _name_of(connection: Connection, user: int) -> str:
    """A pattern for what precedes the person's number: a letter, or a known name's end."""
    called = select(messages.c.nickname, messages.c.card).where(messages.c.sender == user)
    names = {name for row in connection.execute(called.distinct()) for name in row}
    names.update(connection.scalars(select(speakers.c.name).where(speakers.c.user_id == user)))
    stripped = (name.rstrip() for name in names if name.strip())
    ends = {name[-2:] if name.endswith("-") else name[-1] for name in stripped}  # not issue-#2
    return "|".join([r"\w", *map(re.escape, sorted(ends))])


def _erase_member(connection: Connection, user: int, newer: Newer) -> None:
    """Remove the owner of their numbers and attachments; the numbers stay taken."""
    whose = update(speakers).where(speakers.c.user_id == user, ~newer.has(speakers))
    connection.execute(whose.values(user_id=0, name=""))
    shown = update(things).where(things.c.sender == user, ~newer.has(things))
    connection.execute(shown.values(sender=0, message_id="", thing=None))


def _erase(connection: Connection, whose: _Whose, now: float) -> dict[str, int]:
    newer = whose.newer

    def rows(table: Table, *more: ColumnElement[bool]) -> ColumnElement[bool]:
        theirs = or_(table.c.conversation.like(whose.conversations), *more)
        return and_(theirs, ~newer.has(table))

    their_turns = rows(turns, *whose.turns)
    turn_ids, every_turn = select(turns.c.turn_id).where(their_turns), select(turns.c.turn_id)
    conditions = {
        # Also those of missing turns: a turn that was erased while running may have left some.
        **{
            table: or_(table.c.turn_id.in_(turn_ids), table.c.turn_id.not_in(every_turn))
            for table in BY_TURN
        },
        usage: and_(
            usage.c.at < now - LONGEST_DAY, rows(usage, usage.c.turn_id.in_(turn_ids), *whose.usage)
        ),
        sends: and_(rows(sends, sends.c.turn_id.in_(turn_ids)), ~newer.has_turn(sends)),
        messages: rows(messages, *whose.messages),
        windows: rows(windows) if newer is NOTHING else false(),
        verdicts: rows(verdicts, *whose.verdicts),
        speakers: rows(speakers),
        chosen: rows(chosen),
        place_settings: rows(place_settings, *whose.settings),
        jobs: rows(jobs, *whose.jobs),
        things: rows(things),
        turns: their_turns,  # last, because the other conditions select from it
    }
    # Newer turns have their read positions there, but not the summary.
    connection.execute(update(windows).where(rows(windows)).values(summary=""))
    # Their origin is unknown, and they can be made again.
    connection.execute(delete(pictures))
    # Usage of past days stays in the sums, without the person or place.
    added_up = update(day_usage).where(rows(day_usage, *whose.day_usage))
    connection.execute(added_up.values(conversation="", asker=0))
    # An operator's actions stay, without the place.
    done = update(audit).where(audit.c.object.like(whose.conversations))
    connection.execute(done.values(object=""))
    blanked = _blank(connection, whose)
    lines = _lines_about(connection, whose, turn_ids)
    gone = {
        table.name: connection.execute(delete(table).where(rows)).rowcount
        for table, rows in conditions.items()
    }
    for line in lines:
        gone[sends.name] += connection.execute(delete(sends).where(sends.c.id == line)).rowcount
    # What errands took today is still theirs until the day has ended, as what erased turns took.
    errands = usage.c.turn_id.startswith(ERRAND), usage.c.reserved == 0
    connection.execute(
        update(usage).where(rows(usage, *whose.usage), *errands).values(turn_id=ERASED_ERRAND)
    )
    there = usage.c.turn_id.in_(every_turn)  # who pays for these, they say themselves
    connection.execute(delete(usage).where(usage.c.step == PAYER, there))
    gone[messages.name] += blanked
    return gone | drop_facts(connection, rows(memories, *whose.memories))


def _lines_about(connection: Connection, whose: _Whose, turn_ids: Select[Any]) -> set[int]:
    """The sends without a turn that are about the erased: messages to owners, answers to commands.
    Some ids name a person or turn (`bot/core/actions`); the text of others contains the person's
    or group's number, or `name#2` of that conversation.
    """
    wanted = {send_prefix_of_turn(turn_id) for turn_id in connection.scalars(turn_ids)}
    wanted |= {send_prefix_of_person(whose.user)} if whose.user else set()
    marked = select(sends.c.id, sends.c.send_id).where(
        sends.c.turn_id == "", or_(*(sends.c.send_id.startswith(kind) for kind in SEND_PREFIXES))
    )
    found = {row.id for row in connection.execute(marked) if send_prefix(row.send_id) in wanted}
    note = SubjectErased(user=whose.user, group=whose.group)
    found.update(_lines_with(connection, note.is_named_in, f"%{whose.user or whose.group}%"))
    if whose.user:
        name = _name_of(connection, whose.user)
        numbered = select(speakers.c.conversation, speakers.c.number)
        theirs = connection.execute(numbered.where(speakers.c.user_id == whose.user)).all()
        for where, own in theirs:
            named = re.compile(rf"(?:{name})#{own}(?!\d)")
            there = sends.c.conversation == where
            found.update(_lines_with(connection, named.search, f"%#{own}%", there))
    return found


def _lines_with(
    connection: Connection,
    names: Callable[[str], object],
    like: str,
    *where: ColumnElement[bool],
) -> list[int]:
    query = select(sends.c.id, sends.c.segments).where(sends.c.turn_id == "", *where)
    found = connection.execute(query.where(sends.c.segments.like(like)))
    return [row.id for row in found if names(row.segments)]


def _erase_summaries(connection: Connection, whose: _Whose, user: int) -> None:
    """In every conversation where they said something, because a summary mixes everyone's text."""
    spoken = select(messages.c.conversation).where(*whose.messages)
    asked = select(turns.c.conversation).where(or_(*whose.turns))
    numbered = select(speakers.c.conversation).where(speakers.c.user_id == user)
    where = windows.c.conversation.in_(spoken.union(asked, numbered))
    theirs = or_(windows.c.summary.like(f"%({user})%"), where)
    connection.execute(update(windows).where(windows.c.summary != "", theirs).values(summary=""))


def _erase_names(connection: Connection, user: int) -> None:
    """Erase the names by which others mentioned them."""
    query = select(messages.c.id, messages.c.segments).where(
        messages.c.segments.like(f'%"user_id":{user},%')
    )
    for row_id, segments in connection.execute(query).all():
        nameless = tuple(_nameless(segment, user) for segment in codec.read(SEGMENTS, segments))
        connection.execute(
            update(messages).where(messages.c.id == row_id).values(segments=codec.write(nameless))
        )


def _nameless(segment: Segment, user: int) -> Segment:
    return (
        replace(segment, name="")
        if isinstance(segment, Mention) and segment.user_id == user
        else segment
    )


def empty_log(connection: Connection) -> None:
    """Empty SQLite's write-ahead log of earlier pages. Raises Unusable if readers never pause."""
    driver: Any = connection.connection.driver_connection
    for _ in range(TRIES):
        busy, *_pages = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
    raise Unusable(
        "it is erased, but its bytes are still in the log: stop the bot, and forget once more"
    )


def _compact(connection: Connection) -> None:
    """Rewrite the tables, so that no deleted rows are left in free space or in the log."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.execute("VACUUM").close()
        empty_log(connection)
        return
    connection.rollback()
    alone = connection.execution_options(isolation_level="AUTOCOMMIT")
    for table in metadata.sorted_tables:
        alone.execute(text(f"VACUUM FULL {table.name}"))


T = TypeVar("T")


class NotErased(BotError):
    """The erasure failed, or is incomplete."""


class SqlErasing:
    """The `Eraser` port. `commit` waits until everything put is in its tables."""

    def __init__(
        self,
        *,
        database: Database,
        batches: EntryBatches,
        writing: Executor,
        commit: Callable[[], Awaitable[bool]],
        now: Callable[[], float],
        scope: AccountScope = EVERY_ACCOUNT,
    ) -> None:
        self._database = database
        self._batches = batches
        self._writing = writing
        self._commit = commit
        self._now = now
        self._scope = scope

    async def forget_user(self, user: int, *, since: float = math.inf) -> int:
        """Erase a person. Returns the number of deleted rows. Raises NotErased."""
        return await self._forget(partial(erase_user, user=user, now=self._now()), since)

    async def forget_group(self, group: int, *, since: float = math.inf) -> int:
        """Erase a group. Returns the number of deleted rows. Raises NotErased."""
        return await self._forget(partial(erase_group, group=group, now=self._now()), since)

    async def _forget(self, erase: Callable[..., dict[str, int]], since: float) -> int:
        if not await self._commit():
            raise NotErased("the journal cannot be written now")

        def work(connection: Connection) -> dict[str, int]:
            return erase(connection, newer=newer(connection, since, self._scope.has_place))

        return await self._do(lambda: sum(self._batches.run(work).values()))

    async def sweep(self) -> None:
        """Empty SQLite's log. Raises NotErased if readers never pause."""

        def work() -> None:
            with self._database.connect() as connection:
                empty_log(connection)

        if self._database.is_sqlite:
            await self._do(work)

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writing, work)
        except Unusable as error:
            raise NotErased(str(error)) from error
        except Exception as error:
            raise NotErased(describe_error(error)) from error
