from __future__ import annotations

from msgspec.structs import replace

from adapters.storage.batches import EntryBatches
from adapters.storage.books import story
from adapters.storage.database import Database
from adapters.storage.day_sums import day_counts
from adapters.storage.run_lines import run_lines
from adapters.storage.turn_rows import rows
from adapters.storage.unfinished import spoken
from bot.domain.actions import SendMessage
from bot.domain.events import Conversation
from bot.domain.journal import Entry, MessageObserved, SendChanged, SendQueued, SendState, TurnOpened, Undelivered
from bot.domain.run import Stop
from bot.domain.segments import Text
from bot.domain.shown import TurnQuery
from tests.adapters.storage.entries import NOW, closing, opening, read, step
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

    assert {row.turn_id: row.outcome for row in read(database, rows, TurnQuery()).rows} == OUTCOMES
    kinds = set(OUTCOMES.values()) - {""}
    assert {kind: listed(kind) for kind in kinds} == {
        kind: {name for name, outcome in OUTCOMES.items() if outcome == kind} for kind in kinds
    }
    assert {name: read(database, story, GROUP, name).stop for name in OUTCOMES} == OUTCOMES
    told_late = {name: read(database, spoken, name) for name in OUTCOMES}
    assert {name: one and one.outcome for name, one in told_late.items()} == OUTCOMES
    day = read(database, day_counts, 0.0, 1e12)
    assert (day.answered, day.undelivered, day.unconfirmed) == tuple(
        list(OUTCOMES.values()).count(kind) for kind in ("answered", "not_delivered", "unconfirmed")
    )
    told = read(database, lambda connection: [*run_lines(connection, limit=50, content=False)])
    ends = {line["run"]: line["outcome"] for line in told if (line["layer"], line["action"]) == ("run", "end")}
    assert ends == {name: outcome for name, outcome in OUTCOMES.items() if outcome}


def test_owners_read_in_the_story_why_the_words_were_not_sent(batches: EntryBatches, database: Database) -> None:
    write(batches, *written("refused"), *written("arrived"))
    assert read(database, story, GROUP, "refused").loss == "why refused"
    assert read(database, story, GROUP, "arrived").loss == ""
