"""Reading the journal for people: what was spent, and how one answer came about. Blocks, but for
`SqlBooks`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, Table, case, func, select

from adapters.storage.day_sums import day
from adapters.storage.reads import NOWHERE, Reading
from adapters.storage.reads import places as names_in
from adapters.storage.tables import (
    PAYER,
    audit,
    chosen,
    messages,
    place_settings,
    runs,
    sends,
    speakers,
    steps,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from adapters.storage.turn_queries import outcome_of
from bot.domain import codec
from bot.domain.cluster_messages import WHOLE, ClusterPartition
from bot.domain.drafts import draft_of
from bot.domain.errors import ToolDenied
from bot.domain.events import Conversation
from bot.domain.journal import Audited, SendState
from bot.domain.model_messages import AssistantMessage, ToolMessage
from bot.domain.query_results import (
    DaySum,
    PlaceSum,
    Publication,
    SpentSum,
    Story,
    StoryCall,
    UsageSum,
)
from bot.domain.run import Stop

SENT = ("confirmed", "sending", "unknown")
FAILED = ("refused", "dropped")
PUBLISHED = (SendState.PUBLISHED, SendState.REWORDED)
CALLS = 20  # of one turn, the first
PLACES = 30


class SqlBooks:
    """Fits `JournalQueries`. What was set for conversations is told of those in the `share`
    alone.
    """

    def __init__(self, read: Reading, share: ClusterPartition = WHOLE) -> None:
        self._read = read
        self._share = share

    async def usage(
        self,
        *,
        since: float,
        where: Conversation | None = None,
        asker: int | None = None,
        turn_id: str | None = None,
    ) -> UsageSum | None:
        """The sum spent since then: there, by questions of somebody, by a turn, or in all."""
        return await self._read(
            lambda connection: spent(connection, since, where, asker, turn_id), None
        )

    async def taken(self, *, since: float, until: float) -> tuple[SpentSum, ...] | None:
        """The sums of what was taken from then on, to `until`, by place and person."""
        return await self._read(lambda connection: taken(connection, since, until), None)

    async def latest_payers(
        self, *, latest: int
    ) -> tuple[tuple[str, Conversation, int], ...] | None:
        """So many turns, the latest first: the id, where it was, and who asked."""
        return await self._read(lambda connection: payers(connection, latest), None)

    async def audit(self, *, latest: int) -> tuple[Audited, ...] | None:
        """So many entries of the console's audit, the latest first."""
        return await self._read(lambda connection: audited(connection, latest), None)

    async def day(
        self, *, since: float, until: float, where: Conversation | None = None
    ) -> DaySum | None:
        """The sums of the time from then on, before `until`: there, or in all."""
        return await self._read(lambda connection: day(connection, since, until, where), None)

    async def places(self, *, since: float) -> tuple[PlaceSum, ...] | None:
        """The conversations heard since then, the busiest first."""
        return await self._read(lambda connection: places(connection, since), None)

    async def choices(self) -> Mapping[Conversation, str] | None:
        """The persona's key in each conversation where one was chosen."""
        return self._ours(await self._read(choices, None))

    async def groups(self) -> Collection[Conversation] | None:
        """The groups in which anything was ever heard."""
        return await self._read(groups, None)

    async def settings(self, name: str) -> Mapping[Conversation, str] | None:
        """The values set under this name by command, by conversation."""
        return self._ours(await self._read(lambda connection: settings(connection, name), None))

    async def story(self, where: Conversation, message_id: str = "") -> Story | None:
        """How a message fared, or the one it answers; of the last turn there without an id."""
        return await self._read(lambda connection: story(connection, where, message_id), None)

    def _ours(self, found: Mapping[Conversation, str] | None) -> Mapping[Conversation, str] | None:
        if found is None:
            return None
        return {where: value for where, value in found.items() if self._share.has_place(where)}


def choices(connection: Connection) -> dict[Conversation, str]:
    """Which persona was chosen where."""
    query = select(chosen.c.conversation, chosen.c.persona)
    return {Conversation.parse(here): persona for here, persona in connection.execute(query)}


def groups(connection: Connection) -> frozenset[Conversation]:
    """The groups with messages; and those that only numbers of people are left of."""
    known = (names_in(table).c.name for table in (messages, speakers))
    found = {here for name in known for here in connection.scalars(select(name)) if here}
    return frozenset(where for where in map(Conversation.parse, found) if where.is_group)


def settings(connection: Connection, name: str) -> dict[Conversation, str]:
    """The values set under this name, by conversation."""
    query = select(place_settings.c.conversation, place_settings.c.value).where(
        place_settings.c.name == name, place_settings.c.value != ""
    )
    return {Conversation.parse(here): value for here, value in connection.execute(query)}


def spent(
    connection: Connection,
    since: float,
    where: Conversation | None,
    asker: int | None,
    turn_id: str | None = None,
) -> UsageSum:
    """The sums of what was used since then."""
    query = select(
        func.count(),
        func.coalesce(func.sum(usage.c.prompt), 0),
        func.coalesce(func.sum(usage.c.cached), 0),
        func.coalesce(func.sum(usage.c.completion), 0),
        func.coalesce(func.sum(usage.c.cost), 0.0),
        func.count() - func.count(usage.c.cost),
    ).where(usage.c.at >= since, usage.c.step != PAYER)
    if where is not None:
        query = query.where(usage.c.conversation == str(where))
    if asker is not None:
        query = query.where(usage.c.asker == asker)
    if turn_id is not None:
        query = query.where(usage.c.turn_id == turn_id)
    requests, prompt, cached, completion, cost, unpriced = connection.execute(query).one()
    return UsageSum(requests, int(prompt), int(cached), int(completion), float(cost), unpriced)


def taken(connection: Connection, since: float, until: float) -> tuple[SpentSum, ...]:
    """The sums taken from then on, to `until`."""
    query = select(
        usage.c.conversation,
        usage.c.asker,
        func.sum(usage.c.prompt + usage.c.completion),
        func.coalesce(func.sum(usage.c.cost), 0.0),
    ).where(usage.c.at >= since, usage.c.at <= until)
    return tuple(
        SpentSum(Conversation.parse(here) if here else None, who, int(tokens), float(cost))
        for here, who, tokens, cost in connection.execute(
            query.group_by(usage.c.conversation, usage.c.asker)
        )
    )


def payers(connection: Connection, latest: int) -> tuple[tuple[str, Conversation, int], ...]:
    """Whose the latest turns are; what nobody called for is nobody's."""
    payer = case((turns.c.uncalled, 0), else_=turns.c.asker)
    query = select(turns.c.turn_id, turns.c.conversation, payer)
    rows = connection.execute(query.order_by(turns.c.id.desc()).limit(latest))
    return tuple((turn_id, Conversation.parse(here), who) for turn_id, here, who in rows)


def audited(connection: Connection, latest: int) -> tuple[Audited, ...]:
    """The audit of the console, the latest entry first."""
    rows = connection.execute(select(audit).order_by(audit.c.id.desc()).limit(latest))
    return tuple(
        Audited(
            at=row.at,
            login=row.login,
            address=row.address,
            action=row.action,
            object=row.object,
            outcome=row.outcome,
        )
        for row in rows
    )


def places(connection: Connection, since: float) -> tuple[PlaceSum, ...]:
    """The busiest conversations since then."""
    number = func.count().label("number")
    query = (
        select(messages.c.conversation, number, func.max(messages.c.taken))
        .where(messages.c.taken >= since, messages.c.conversation != NOWHERE)
        .group_by(messages.c.conversation)
        .order_by(number.desc(), messages.c.conversation)
        .limit(PLACES)
    )
    return tuple(
        PlaceSum(Conversation.parse(here), count, last)
        for here, count, last in connection.execute(query)
    )


def story(connection: Connection, where: Conversation, message_id: str) -> Story:
    """The story of a message and of its turn, which may be empty."""
    here = str(where)
    turn = _turn(connection, here, message_id)
    asked = message_id if turn is None else turn.message_id
    message = _latest(connection, messages, here, asked)
    verdict = _latest(connection, verdicts, here, asked)
    told = Story(asker=0)
    if message is not None:
        told = replace(told, taken=message.taken, is_gone=message.erased)
    if verdict is not None:
        told = replace(
            told,
            asker=verdict.sender,
            wakes=verdict.wakes,
            weak=verdict.weak,
            reason=verdict.reason,
            until=verdict.until or 0.0,
        )
    if turn is not None:
        return _with_turn(connection, told, turn)
    is_open = message is not None and not (message.overheard or message.erased)
    return replace(told, waits=is_open and told.wakes is True)


def _latest(connection: Connection, table: Table, here: str, message_id: str) -> Row[Any] | None:
    query = select(table).where(table.c.conversation == here, table.c.message_id == message_id)
    return connection.execute(query.order_by(table.c.id.desc()).limit(1)).one_or_none()


def _turn(connection: Connection, here: str, message_id: str) -> Row[Any] | None:
    """The turn that a message asked for or answers; the last one there without an id."""
    if not message_id:
        last = select(turns).where(turns.c.conversation == here)
        return connection.execute(last.order_by(turns.c.id.desc()).limit(1)).one_or_none()
    for table in (sends, messages):
        row = _latest(connection, table, here, message_id)
        if row is None or not row.turn_id:
            continue
        query = select(turns).where(turns.c.turn_id == row.turn_id)
        turn = connection.execute(query.order_by(turns.c.id.desc()).limit(1)).one_or_none()
        # A message that was only overheard was read by a turn that it did not ask for; what was
        # merged with a question, or steered its run, is a part of it.
        if turn is not None and (table is sends or not row.overheard):
            return turn
    return None


def _with_turn(connection: Connection, told: Story, turn: Row[Any]) -> Story:
    turn_id = turn.turn_id
    run = connection.execute(select(runs, outcome_of()).where(runs.c.turn_id == turn_id)).first()
    calls = connection.execute(
        select(tool_calls).where(tool_calls.c.turn_id == turn_id).order_by(tool_calls.c.id)
    ).all()
    rows = connection.execute(
        select(sends.c.send_id, sends.c.state, sends.c.conversation, sends.c.reason, sends.c.final)
        .where(sends.c.turn_id == turn_id)
        .order_by(sends.c.id)
    ).all()
    drafts = tuple(dict.fromkeys(filter(None, (draft_of(row.send_id) for row in rows))))
    # Owners were shown those: that is not what was said.
    said = [row for row in rows if not drafts or row.conversation == turn.conversation]
    failed = [row for row in said if row.state in FAILED]
    published = {
        number: Publication(number, row.reason, row.state == SendState.REWORDED)
        for row in rows
        if (number := draft_of(row.send_id)) and row.state in PUBLISHED
    }
    used = connection.execute(select(usage).where(usage.c.turn_id == turn_id)).all()
    done = connection.execute(
        select(steps.c.message).where(steps.c.turn_id == turn_id).order_by(steps.c.id)
    ).all()
    has_said = run is None or run.stop != Stop.ANSWERED or any(row.final for row in rows)
    return replace(
        told,
        asker=turn.asker,
        turn_id=turn_id,
        opened=turn.opened,
        closed=turn.closed or 0.0,
        stop="" if run is None else run.outcome,
        expires=0.0 if run is None or run.state is None else run.expires or 0.0,
        error="" if run is None else run.error,
        steps=len(done),
        calls=tuple(map(_call, calls[:CALLS])),
        models=tuple(dict.fromkeys(row.model for row in used if row.model)),
        usage=_sum(used),
        sends=sum(row.state in SENT for row in said),
        failed=len(failed),
        loss=failed[-1].reason if failed else "",
        unsaid=not has_said and bool(done) and _is_answer(done[-1].message),
        drafts=drafts,
        published=tuple(published.values()),
    )


def _call(row: Row[Any]) -> StoryCall:
    told = StoryCall(row.name, row.code, row.seconds or 0.0)
    if row.code != ToolDenied.code:
        return told
    try:
        return replace(told, denied=codec.read(ToolMessage, row.result or "").content)
    except codec.Unreadable:
        return told


def _is_answer(message: str | None) -> bool:
    """Whether a step ended with words alone."""
    try:
        answer = codec.read(AssistantMessage, message) if message else AssistantMessage()
    except codec.Unreadable:
        return False
    return bool(answer.text.strip()) and not answer.tool_calls


def _sum(used: Sequence[Row[Any]]) -> UsageSum:
    priced = [row.cost for row in used if row.cost is not None]
    return UsageSum(
        requests=len(used),
        prompt=sum(row.prompt for row in used),
        cached=sum(row.cached for row in used),
        completion=sum(row.completion for row in used),
        cost=sum(priced),
        unpriced=len(used) - len(priced),
    )
