from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.erasure import forget_group, forget_user
from adapters.storage.queries import conversations as module
from adapters.storage.queries.conversations import chat, chats, line
from adapters.storage.tables import messages
from bot.core.conversation import Conversation
from bot.core.journal import MessageErased, MessageObserved, WindowMoved
from tests.adapters.storage.entries import NOW, closing, heard, opening, put, read
from tests.adapters.storage.test_books import ELSEWHERE, whole, write
from tests.adapters.storage.test_turn_rows import asked, silent
from tests.fakes import BOT, GROUP, said


def test_conversations_are_told_the_last_spoken_in_first_and_page_by_page(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, where in enumerate((GROUP, ELSEWHERE, GROUP)):
        observed = MessageObserved(said(f"line {number}", message_id=f"m{number}", where=where), overheard=True)
        batches.write(put(observed, at=NOW + number))
    whole_list = read(database, chats, 0)
    assert [(one.where, one.text) for one in whole_list.rows] == [(GROUP, "line 2"), (ELSEWHERE, "line 1")]
    assert whole_list.next is None
    monkeypatch.setattr(module, "ROWS", 1)
    first = read(database, chats, 0)
    assert [one.where for one in first.rows] == [GROUP]
    second = read(database, chats, first.next)
    assert ([one.where for one in second.rows], second.next) == ([ELSEWHERE], None)


@pytest.mark.parametrize(("forget", "whom"), [(forget_group, GROUP.session_id), (forget_user, 777)])
def test_a_chat_that_was_forgotten_is_no_conversation_under_any_other_name(
    batches: EntryBatches, database: Database, forget: Callable[..., dict[str, int]], whom: int
) -> None:
    """Its latest messages stay, by their ids alone."""
    private = Conversation(BOT, "private", 777)
    for number, where in enumerate((GROUP if forget is forget_group else private, ELSEWHERE)):
        observed = MessageObserved(said("hi", message_id=f"m{number}", user=777 + number, where=where), overheard=True)
        batches.write(put(observed, at=NOW + number))
    batches.close()
    forget(database, whom)
    assert [one.where for one in read(database, chats, 0).rows] == [ELSEWHERE]
    with database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(messages)) == 2


def test_a_conversation_has_what_both_sides_said_with_verdicts_and_where_the_prompt_begins(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(batches, *whole(), *silent("s1"), WindowMoved(GROUP, first_turn="t1", summary="before"))
    found = read(database, chat, GROUP, 0)
    assert found.summary == "before"
    assert [line.message_id for line in found.lines if line.begins] == ["5"]
    assert [line.reason for line in found.lines if line.message_id == "s1"] == ["its sender asks too often"]
    own = [line for line in found.lines if line.is_own]
    assert own
    assert {line.turn_id for line in own} == {"t1"}
    again = next(line.message_id for line in own if line.message_id)
    write(batches, MessageObserved(said("heard of the server, too", message_id=again, user=BOT), overheard=True))
    assert [line.message_id for line in read(database, chat, GROUP, 0).lines].count(again) == 1
    write(batches, *silent("s1"))
    monkeypatch.setattr(module, "ROWS", 1)
    latest = read(database, chat, GROUP, 0)
    assert latest.next is not None
    assert "s1" not in {line.message_id for line in read(database, chat, GROUP, latest.next).lines}


def test_rounds_are_those_that_the_prompt_repeats_and_no_more_than_some_are_counted(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounds(before: int = 0) -> tuple[int, str, int]:
        found = read(database, chat, GROUP, before)
        return found.rounds, "".join(one.turn_id for one in found.told), found.light

    write(batches, opening("open"))
    assert rounds() == (0, "", 0)
    for number, turn_id in enumerate("abcd"):
        write(batches, *asked(turn_id, NOW + number))
    unkept = opening("e", said("not kept", message_id="e"), at=NOW + 5)
    write(batches, unkept, closing(unkept, keep=False), *asked("f", NOW, where=ELSEWHERE))
    assert rounds() == (4, "abcd", 0)
    assert rounds(before=99) == (4, "", 0)
    monkeypatch.setattr(module, "ROUNDS", 3)
    assert rounds() == (3, "", 0)
    write(batches, WindowMoved(GROUP, first_turn="c", summary="before", light_to="c"))
    assert rounds() == (2, "cd", 1)


def test_a_message_is_found_by_its_id_and_without_words_once_it_is_recalled(
    batches: EntryBatches, database: Database
) -> None:
    write(batches, heard("hello", message_id="4"), heard("hello again", message_id="5"))
    found = read(database, line, GROUP, "4")
    assert found is not None
    assert (found.message_id, found.text, found.sender, found.is_gone) == ("4", "hello", 777, False)
    write(batches, MessageErased(GROUP, "4"))
    found = read(database, line, GROUP, "4")
    assert found is not None
    assert (found.text, found.is_gone) == ("", True)
    write(batches, heard("another of that id", message_id="5"))
    found = read(database, line, GROUP, "5")
    assert found is not None
    assert found.text == "another of that id"
    assert read(database, line, GROUP, "6") is None
    assert read(database, line, ELSEWHERE, "5") is None
