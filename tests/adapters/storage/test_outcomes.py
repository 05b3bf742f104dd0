from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.export import run_lines
from adapters.storage.queries.sums import day_counts, ends
from adapters.storage.queries.turns import rows, story
from adapters.storage.queries.unfinished import spoken
from adapters.storage.tables import messages, runs, sends, steps, turns, usage, verdicts
from bot.core.actions import SendMessage
from bot.core.console_views import ROWS, UNANSWERED, TurnQuery
from bot.core.conversation import Conversation
from bot.core.journal import (
    ENDINGS,
    Entry,
    Judged,
    MessageObserved,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendQueued,
    SendState,
    TurnOpened,
    Undelivered,
)
from frostagent.types.runs import Stop
from frostagent.types.speech import Text
from tests.adapters.storage.entries import NOW, closing, opening, put, read, step
from tests.adapters.storage.test_books import ELSEWHERE, write
from tests.fakes import GROUP, said

CLOSED = NOW + 1  # when `closing` closes what `opening` opened


def send(turn: TurnOpened, name: str, *, final: bool = True, where: Conversation = GROUP) -> SendQueued:
    """It goes on the wire before the turn is over."""
    action = SendMessage(where, (Text("晴"),))
    return SendQueued(
        send_id=f"{turn.turn_id}-{name}",
        turn_id=turn.turn_id,
        action=action,
        final=final,
        at=NOW,
        state=SendState.SENDING,
    )


def change(sent: SendQueued, state: SendState, *, later: float = 0.0) -> SendChanged:
    return SendChanged(send_id=sent.send_id, state=state, at=NOW + later, message_id="9", reason=f"why {state}")


def written(name: str) -> list[Entry]:
    """A turn of each kind, from its question to all that is known of its words."""
    question = said(f"question {name}", message_id=name)
    turn = opening(name, question)
    end, one, two = closing(turn), send(turn, "1"), send(turn, "2")
    unconfirmed = replace(end, undelivered=Undelivered.UNCONFIRMED)
    unknown, sent = change(one, SendState.UNKNOWN), change(one, SendState.CONFIRMED)
    late = change(one, SendState.CONFIRMED, later=9.0)
    kinds: dict[str, list[Entry]] = {
        "as older rows say it": [one, change(one, SendState.REFUSED), end],
        "arrived": [one, sent, end],
        "refused": [
            one,
            change(one, SendState.REFUSED),
            two,
            change(two, SendState.CONFIRMED),
            replace(end, undelivered=Undelivered.NOT_DELIVERED),
        ],
        "not confirmed": [one, unknown, unconfirmed],
        "confirmed late": [one, unknown, unconfirmed, late],
        "still queued": [replace(one, state=SendState.QUEUED), unconfirmed],
        "dropped late": [one, unconfirmed, change(one, SendState.DROPPED, later=9.0)],
        "lost, and its asker told": [
            *(one, unknown, unconfirmed, change(one, SendState.DROPPED, later=9.0)),
            *(replace(two, at=NOW + 9), change(two, SendState.CONFIRMED, later=10.0)),
        ],
        "a forward refused, its pieces confirmed late": [
            *(one, change(one, SendState.REFUSED), two, change(two, SendState.UNKNOWN)),
            *(unconfirmed, change(two, SendState.CONFIRMED, later=9.0)),
        ],
        "the first confirmed late, the second never sent": [
            *(one, unknown, two, change(two, SendState.WITHDRAWN), unconfirmed, late)
        ],
        "said elsewhere in vain": [
            *(one, unknown, unconfirmed, late, over := send(turn, "3", final=False, where=ELSEWHERE)),
            change(over, SendState.DROPPED, later=9.0),
        ],
        "refused while its run went on": [one, change(one, SendState.REFUSED), unconfirmed],
        "its sends are gone": [unconfirmed],
        "failed": [replace(end, stop=Stop.FAILED, error="auth: no")],
        "goes on": [one],
    }
    return [MessageObserved(question, overheard=False), turn, step(name), *kinds[name]]


OUTCOMES = {
    "as older rows say it": "answered",
    "arrived": "answered",
    "refused": "not_delivered",
    "not confirmed": "unconfirmed",
    "confirmed late": "answered",
    "still queued": "unconfirmed",
    "dropped late": "not_delivered",
    "lost, and its asker told": "not_delivered",
    "a forward refused, its pieces confirmed late": "answered",
    "the first confirmed late, the second never sent": "not_delivered",
    "said elsewhere in vain": "answered",
    "refused while its run went on": "not_delivered",
    "its sends are gone": "unconfirmed",
    "failed": "failed",
    "goes on": "",
}


def test_a_turn_is_answered_once_its_answer_has_arrived_wherever_that_is_told(
    batches: EntryBatches, database: Database
) -> None:
    for name in OUTCOMES:
        write(batches, *written(name))

    def listed(outcome: str) -> set[str]:
        return {row.turn_id for row in read(database, rows, TurnQuery(outcome=outcome)).rows}

    told = {row.turn_id: row.outcome for row in read(database, rows, TurnQuery()).rows}
    assert told == OUTCOMES | {"goes on": "running"}
    kinds = set(OUTCOMES.values()) - {""}
    assert {kind: listed(kind) for kind in kinds} == {
        kind: {name for name, outcome in OUTCOMES.items() if outcome == kind} for kind in kinds
    }
    assert {name: read(database, story, GROUP, name).stop for name in OUTCOMES} == OUTCOMES
    told_late = {name: read(database, spoken, name) for name in OUTCOMES}
    assert {name: one and one.outcome for name, one in told_late.items()} == OUTCOMES
    day = read(database, day_counts, 0.0, 1e12)
    assert dict(day.turns) == Counter(told.values())
    lines = read(database, lambda connection: [*run_lines(connection, limit=50, content=False)])
    ends = {line["run"]: line["outcome"] for line in lines if (line["layer"], line["action"]) == ("run", "end")}
    assert ends == {name: outcome for name, outcome in OUTCOMES.items() if outcome}


def test_owners_read_in_the_story_why_the_words_were_not_sent(batches: EntryBatches, database: Database) -> None:
    write(batches, *written("refused"), *written("arrived"))
    assert read(database, story, GROUP, "refused").loss == "why refused"
    assert read(database, story, GROUP, "arrived").loss == ""


class Asked(NamedTuple):
    """A message, and what became of it: a turn that is there or not, that was suspended and perhaps goes on, what its
    send came to before and after its end, and that. Times may be of the day before, and not in their order.
    """

    at: float
    message: int
    wakes: bool
    has_turn: bool
    used: bool
    waits: bool
    goes_on: bool
    sent: SendState | None
    end: Stop | Undelivered | None
    later: SendState | None


STATES = st.none() | st.sampled_from(SendState)
ASKED = st.builds(
    Asked,
    at=st.sampled_from((-90_000.0, -7_200.0, -1.0, 0.0, 1.0, 50.0, 3_000.0)),
    message=st.integers(0, 12),
    wakes=st.booleans(),
    has_turn=st.booleans(),
    used=st.booleans(),
    waits=st.booleans(),
    goes_on=st.booleans(),
    sent=STATES,
    end=st.none() | st.sampled_from((*Stop, *Undelivered)),
    later=STATES,
)


def happened(number: int, asked: Asked) -> list[Entry]:
    """The entries of one of them."""
    question = said("?", message_id=f"m{asked.message}")
    judged = Judged(conversation=GROUP, message_id=question.message_id, sender=777, wakes=asked.wakes, reason="rate")
    told: list[Entry] = [MessageObserved(question, overheard=not asked.wakes), judged]
    if not asked.has_turn:
        return told
    turn = replace(opening(f"t{number}", question), at=NOW + asked.at)
    told.append(turn)
    if asked.used:
        told.append(step(turn.turn_id))
    if asked.waits:
        told.append(RunSuspended(turn_id=turn.turn_id, state="{}", expires=NOW + 60))
    if asked.waits and asked.goes_on:
        told.append(RunResumed(turn_id=turn.turn_id))
    one = send(turn, "1")
    if asked.sent is not None:
        told += [one, change(one, asked.sent)]
    match asked.end:
        case None:
            return told
        case Undelivered():
            told.append(replace(closing(turn), undelivered=asked.end))
        case Stop():
            told.append(replace(closing(turn), stop=asked.end, error="auth: no" if asked.end is Stop.FAILED else ""))
    if asked.later is not None:
        told.append(change(one, asked.later, later=9.0))
    return told


def test_a_turn_without_an_end_waits_while_it_is_suspended_and_else_goes_on(
    batches: EntryBatches, database: Database
) -> None:
    for turn_id in ("runs", "waits", "resumed"):
        write(batches, opening(turn_id, at=NOW))
    for turn_id in ("waits", "resumed"):
        write(batches, RunSuspended(turn_id=turn_id, state="{}", expires=NOW + 60))
    write(batches, RunResumed(turn_id="resumed"))
    found = {one.turn_id: one.outcome for one in read(database, rows, TurnQuery()).rows}
    assert found == {"runs": "running", "waits": "waiting", "resumed": "running"}
    assert read(database, day_counts, 0.0, 0.0).turns == (("running", 2), ("waiting", 1))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    journal=st.lists(ASKED, max_size=18),
    size=st.sampled_from((2, 5, ROWS)),
    walk=st.sampled_from((3, 5_000)),
    since=st.sampled_from((NOW, NOW - 200_000)),
)
def test_the_counts_of_a_day_add_up_to_the_rows_that_each_of_them_lists_whatever_the_journal(
    database: Database, journal: list[Asked], size: int, walk: int, since: float
) -> None:
    with database.connect() as connection, connection.begin():
        for table in (messages, turns, runs, steps, sends, usage, verdicts):
            connection.execute(table.delete())
    batches = EntryBatches(database, stamp=lambda: "now")
    for number, asked in enumerate(journal):
        batches.write(put(*happened(number, asked), at=NOW + asked.at))
    batches.close()

    def listed(outcome: str = "") -> list[str]:
        """The outcomes of the rows on all pages."""
        told, query = list[str](), TurnQuery(since=since, outcome=outcome)
        for _ in range(100):
            found = read(database, rows, query)
            told += [row.outcome for row in found.rows]
            if found.next is None:
                return told
            query = replace(query, turn=found.next[0], verdict=found.next[1])
        raise AssertionError("the pages have no end")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adapters.storage.queries.turns.ROWS", size)
        patch.setattr("adapters.storage.queries.turns.WALK", walk)
        day = read(database, day_counts, since, 0.0)
        counts = Counter(dict(day.turns) | {UNANSWERED: day.unanswered})
        assert (day.questions, Counter(listed())) == (counts.total(), counts)
        for outcome in (*ENDINGS, UNANSWERED):
            assert listed(outcome) == [outcome] * counts[outcome]
        ended, failed = read(database, ends, since)
        assert failed == counts[Stop.FAILED] <= ended
