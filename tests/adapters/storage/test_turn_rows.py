from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.scanning import SLACK
from adapters.storage.queries.turns import rows
from bot.core.console_views import ROWS, UNANSWERED, TurnQuery
from bot.core.journal import Entry, Judged, MessageObserved, RequestMade
from bot.core.query_results import UsageSum
from frostagent.types.runs import Stop
from tests.adapters.storage.entries import NOW, began, closing, heard, opening, put, read, step
from tests.adapters.storage.test_books import ELSEWHERE, whole, write
from tests.fakes import GROUP, said


def silent(message_id: str, reason: str = "its sender asks too often", user: int = 888) -> list[Entry]:
    """Somebody asked, and was not answered."""
    message = said("hello?", message_id=message_id, user=user)
    judged = Judged(conversation=GROUP, message_id=message_id, sender=user, wakes=False, reason=reason)
    return [MessageObserved(message, overheard=True), judged]


def asked(turn_id: str, at: float, *, stop: Stop = Stop.ANSWERED, error: str = "", **more: Any) -> list[Entry]:
    opened = replace(opening(turn_id, said(f"question {turn_id}", message_id=turn_id, **more)), at=at)
    return [opened, step(turn_id), replace(closing(opened), stop=stop, error=error)]


def test_rows_are_turns_and_what_nobody_answered_the_latest_first(batches: EntryBatches, database: Database) -> None:
    write(batches, *asked("a", NOW - 5), *silent("s1"), *asked("b", NOW + 5, stop=Stop.FAILED, error="auth: no"))
    write(batches, *silent("s2"), Judged(conversation=GROUP, message_id="s2", sender=888, wakes=True, reason="quote"))
    found = read(database, rows, TurnQuery())
    assert [(one.turn_id, one.outcome, one.text) for one in found.rows] == [
        ("b", "failed", "question b"),
        ("", UNANSWERED, "hello?"),
        ("a", "answered", "question a"),
    ]
    assert found.next is None
    failed, unanswered, _ = found.rows
    assert (failed.error, failed.seconds, failed.usage) == ("auth: no", 1.0, UsageSum(1, 10, 3, 5, 0.25, 0))
    assert (unanswered.message_id, unanswered.asker, unanswered.reason) == ("s1", 888, "its sender asks too often")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (TurnQuery(where=str(ELSEWHERE)), ["c"]),
        (TurnQuery(asker=888), ["s1"]),
        (TurnQuery(outcome="failed"), ["b"]),
        (TurnQuery(outcome=UNANSWERED), ["s1"]),
        (TurnQuery(tool="get_weather"), ["t1"]),
        (TurnQuery(model="demo", where=str(ELSEWHERE)), ["c"]),
        (TurnQuery(model="other"), []),
        (TurnQuery(cost=0.25), ["t1", "c", "b"]),
        (TurnQuery(cost=0.3), ["t1"]),
        (TurnQuery(since=NOW + 1), ["t1"]),
        (TurnQuery(until=NOW + 1), ["c", "b", "s1"]),
        (TurnQuery(since=NOW, until=NOW), []),
    ],
)
def test_rows_can_be_filtered(batches: EntryBatches, database: Database, query: TurnQuery, found: list[str]) -> None:
    write(batches, *asked("b", NOW, stop=Stop.FAILED, error="x"), *asked("c", NOW, where=ELSEWHERE))
    write(batches, *whole(), *silent("s1"))
    assert [one.turn_id or one.message_id for one in read(database, rows, query).rows] == found


def test_pages_go_on_where_the_last_one_ended_and_no_row_is_passed_over(
    batches: EntryBatches, database: Database
) -> None:
    for number in range(ROWS):
        batches.write(put(*asked(f"t{number}", NOW + number), at=NOW + number))
        batches.write(put(*silent(f"s{number}"), at=NOW + number))
    first = read(database, rows, TurnQuery())
    assert first.next is not None
    turn, verdict = first.next
    second = read(database, rows, TurnQuery(turn=turn, verdict=verdict))
    told = [one.turn_id or one.message_id for one in (*first.rows, *second.rows)]
    assert len(first.rows) == ROWS
    assert len(told) == len(set(told)) == 2 * ROWS
    assert second.next is None


def test_what_is_rare_is_looked_for_page_by_page_in_its_order(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.storage.queries.turns.WALK", 10)
    for number in range(25):
        user = 5 if number in {1, 20} else 6
        batches.write(put(*asked(f"t{number}", NOW + number, user=user), at=NOW + number))
        if number in {3, 22}:
            batches.write(put(*silent(f"s{number}", user=5), at=NOW + number))
    told, page = list[list[str]](), read(database, rows, TurnQuery(asker=5))
    while page.next:
        told.append([one.turn_id or one.message_id for one in page.rows])
        page = read(database, rows, TurnQuery(asker=5, turn=page.next[0], verdict=page.next[1]))
    told.append([one.turn_id or one.message_id for one in page.rows])
    assert told == [["s22", "t20"], [], ["s3", "t1"]]


def test_what_is_rare_is_looked_for_in_the_time_that_was_asked_about_alone(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.storage.queries.turns.WALK", 3)
    late = NOW + 12 * SLACK
    for number in range(30):
        at = late - SLACK / 2 if number == 25 else NOW + number * SLACK / 2
        batches.write(put(*asked(f"t{number}", at, user=5 if number in {2, 20, 25} else 6), at=at))
    told, pages, query = list[str](), 1, TurnQuery(asker=5, since=NOW + 9 * SLACK, until=late)
    while True:
        page = read(database, rows, query)
        told += [one.turn_id for one in page.rows]
        if page.next is None:
            break
        pages, query = pages + 1, replace(query, turn=page.next[0], verdict=page.next[1])
    assert told == ["t25", "t20"]
    assert pages <= 4


@pytest.mark.parametrize("query", [TurnQuery(), TurnQuery(asker=5)])
@pytest.mark.parametrize("step_back", [30, 3000])
def test_pages_end_and_tell_each_row_once_though_the_clock_was_put_back(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch, query: TurnQuery, step_back: int
) -> None:
    monkeypatch.setattr("adapters.storage.queries.turns.WALK", 6)
    monkeypatch.setattr("adapters.storage.queries.turns.ROWS", 3)
    known = set()
    for number in range(40):
        at = NOW + number - (step_back if number % 15 > 9 else 0)
        kind, user = "st"[number % 3 > 0], 5 if number % 7 in {1, 2, 4} else 6
        entries = silent(f"s{number}", user=user) if kind == "s" else asked(f"t{number}", at, user=user)
        batches.write(put(*entries, at=at))
        known |= {f"{kind}{number}"} if user == 5 or not query.asker else set()
    told, page = list[str](), read(database, rows, query)
    while page.next and len(told) <= len(known):
        told += [one.turn_id or one.message_id for one in page.rows]
        page = read(database, rows, replace(query, turn=page.next[0], verdict=page.next[1]))
    told += [one.turn_id or one.message_id for one in page.rows]
    assert sorted(told) == sorted(known)


def test_a_message_that_is_gone_leaves_its_verdict(batches: EntryBatches, database: Database) -> None:
    write(batches, Judged(conversation=GROUP, message_id="x", sender=5, wakes=False, reason="r"), heard(), began("t1"))
    (row,) = read(database, rows, TurnQuery()).rows
    assert (row.text, row.name, row.asker, row.reason) == ("", "", 5, "r")


def test_a_failed_turn_tells_how_its_own_last_request_failed(batches: EntryBatches, database: Database) -> None:
    def failed(outcome: str, run: str = "", turn_id: str = "a") -> RequestMade:
        return RequestMade(turn_id=turn_id, model="demo", outcome=outcome, seconds=1.0, at=NOW, run=run)

    write(batches, *asked("a", NOW, stop=Stop.FAILED, error="overloaded: boom"), *asked("b", NOW + 1))
    write(batches, failed("timeout"), failed("overloaded:500"), failed("auth:401", run="facts"))
    write(batches, failed("overloaded:503", turn_id="b"))  # which was answered in the end
    assert [(one.turn_id, one.refusal) for one in read(database, rows, TurnQuery()).rows] == [
        ("b", ""),
        ("a", "overloaded:500"),
    ]
