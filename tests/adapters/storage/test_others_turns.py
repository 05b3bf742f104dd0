"""What others' turns that have no round, or none yet, tell of somebody who is forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.erasure import forget_user
from bot.core.journal import Entry, MemberNumbered, RunSuspended
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage
from tests.adapters.storage.entries import NOW, beside, ended, opening, steering, step
from tests.adapters.storage.test_erasure import ELSEWHERE, SECRET, USER, contains, put
from tests.fakes import GROUP, said


def found(turn_id: str, words: str) -> Entry:
    return ended(turn_id, ToolMessage("c1", "memory", words))


def answered(turn_id: str, words: str) -> Entry:
    return step(turn_id, 1, AssistantMessage(words))


def asked_beside(turn_id: str, words: str) -> Entry:
    return beside(turn_id, AssistantMessage("", (ToolCall("c", "look", json.dumps({"q": words}, ensure_ascii=False)),)))


def taken_in(turn_id: str, words: str) -> Entry:
    return steering(turn_id, said(words))


def suspended(turn_id: str, words: str) -> Entry:
    return RunSuspended(turn_id=turn_id, state=words, expires=NOW)


@pytest.mark.parametrize("kept", [found, answered, asked_beside, taken_in, suspended])
def test_what_was_found_said_or_asked_of_them_leaves_a_turn_without_a_round(
    batches: EntryBatches, database: Database, kept: Callable[[str, str], Entry]
) -> None:
    for turn_id, number in (("t-1", 5), ("t-2", 51)):
        batches.write(put(opening(turn_id), kept(turn_id, f"小明#{number}: {SECRET}-{number}.")))
    elsewhere = opening("t-3", said("hm", where=ELSEWHERE))
    batches.write(put(elsewhere, kept("t-3", f"小红#5: {SECRET}-3.")))
    batches.write(put(MemberNumbered(conversation=GROUP, number=5, user_id=USER, name="小明")))
    batches.close()
    forget_user(database, USER)
    assert [contains(database, f"{SECRET}-{number}.") for number in (5, 51, 3)] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "words", "stays"),
    [
        ("小明", "小明#5: hi", False),
        ("小明", "他以前叫大明#5 的", False),
        ("~小明~", "~小明~#5: hi", False),
        ("小明🐱", "↩小明🐱#5「hi」", False),
        ("小明", "issue-#5 is closed", True),
        ("小明", "see #5, or the colour #555", True),
        ("a-", "a-#5: hi", False),
        ("a-", "issue-#5 is closed", True),
    ],
)
def test_a_number_without_a_name_before_it_is_nobodys(
    batches: EntryBatches, database: Database, name: str, words: str, stays: bool
) -> None:
    batches.write(put(opening("t-1"), answered("t-1", f"{words} {SECRET}")))
    batches.write(put(MemberNumbered(conversation=GROUP, number=5, user_id=USER, name=name)))
    batches.close()
    forget_user(database, USER)
    assert contains(database, SECRET) is stays
