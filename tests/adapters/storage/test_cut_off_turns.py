"""Turns left open whose first request may have been at a model, with no row that tells what it took."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries import unfinished
from bot.core.journal import Entry, UsageAdded, UsageReleased, UsageReserved
from frostagent.types.messages import Usage
from tests.adapters.storage.entries import NOW, asked, opening, put, read, sending, step


def added(step: int = 0) -> UsageAdded:
    return UsageAdded(turn_id="t1", model="m", usage=Usage(9), at=NOW, step=step)


def reserved(step: int = 1) -> UsageReserved:
    return UsageReserved(turn_id="t1", model="m", usage=Usage(9), at=NOW, number=7, step=step)


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (added(), reserved(0)),  # somebody else was asked for it, what a picture shows
        (reserved(), UsageReleased(turn_id="t1", number=7)),  # it failed, and may be made once more
        (sending("s0", "t2"),),
        (replace(sending("s1", "t1"), final=False),),
    ],
)
def test_of_a_turn_left_open_the_first_request_may_have_been_under_way(
    batches: EntryBatches, database: Database, entries: tuple[Entry, ...]
) -> None:
    batches.write(put(opening("t1"), *entries))
    (turn,) = read(database, unfinished.recover, NOW).turns
    assert turn.uncounted


UNTOLD = replace(step("t1"), completion=replace(step("t1").completion, usage=None))


@pytest.mark.parametrize("entry", [step("t1"), UNTOLD, reserved(), reserved(2), added(1), sending("s1", "t1")])
def test_of_a_turn_left_open_whose_request_is_a_row_or_which_had_ended_none_was(
    batches: EntryBatches, database: Database, entry: Entry
) -> None:
    batches.write(put(opening("t1"), entry))
    (turn,) = read(database, unfinished.recover, NOW).turns
    assert not turn.uncounted


def test_an_answer_in_another_turn_of_its_question_says_nothing_of_the_request_of_this_one(
    batches: EntryBatches, database: Database
) -> None:
    question = asked(message_id="1")
    batches.write(put(question, opening("t1", question.message), at=NOW - 9))
    batches.write(put(question, opening("t2", question.message), sending("s2", "t2"), at=NOW - 8))
    one, two = read(database, unfinished.recover, NOW).turns
    assert [send.send_id for send in one.sends] == ["s2"]
    assert (one.uncounted, two.uncounted) == (True, False)
