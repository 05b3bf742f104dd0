"""What is newer than the first erasure, in both databases."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from adapters.storage import erasure as module
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.erasure import NOTHING, erase_group, erase_user, newer
from adapters.storage.tables import messages, metadata, things, turns, verdicts, windows
from bot.core.conversation import Conversation
from bot.core.journal import Entry, Judged, MemberNumbered, MessageErased, MessageObserved, WindowMoved
from frostagent.types.messages import AssistantMessage, UserMessage
from tests.adapters.storage.entries import NOW, closing, opening, put, sending, step, thing
from tests.fakes import BOT, GROUP, said

MING, HONG = 777, 888
ANOTHER, PRIVATE = Conversation(BOT, "group", 9), Conversation(BOT, "private", MING)
THEN, AFTER = NOW + 1, NOW + 2


def asking(
    name: str, number: int, *, at: float = NOW, opened: float = 0.0, user: int = MING, where: Conversation = GROUP
) -> list[Entry]:
    """A question, all that there is of it, its answer, and what prompts call its asker; each has the name in it."""
    question = said(name, message_id=name, user=user, where=where)
    turn = opening(name, question, at=opened or at)
    turn = replace(turn, user=UserMessage(f"[提问]\n{name}#{number}({user}): {name}"))
    return [
        MessageObserved(question, overheard=False),
        Judged(conversation=where, message_id=name, sender=user, wakes=True, reason="mention"),
        MemberNumbered(conversation=where, number=number, user_id=user, name=name),
        thing(number, message_id=name, user=user, where=where),
        turn,
        sending(f"s-{name}", name, name, where=where),
        closing(turn),
    ]


def rows(database: Database, name: str) -> list[str]:
    """Everything that has this name in it, by table."""
    with database.reading() as connection:
        found = [(table.name, row) for table in metadata.sorted_tables for row in connection.execute(table.select())]
    return [f"{table} {row}" for table, row in found if name in str(row)]


def erase(batches: EntryBatches, whose: str, *, since: float = THEN) -> None:
    def work(connection: Connection) -> dict[str, int]:
        stays = newer(connection, since, lambda _: True)
        if whose == "group":
            return erase_group(connection, GROUP.session_id, now=AFTER, newer=stays)
        return erase_user(connection, MING, now=AFTER, newer=stays)

    batches.run(work)


@pytest.mark.parametrize(
    ("whose", "there", "old"),
    [("person", GROUP, ANOTHER), ("person", PRIVATE, GROUP), ("group", GROUP, GROUP)],
)
def test_what_is_newer_stays_whole_and_what_is_older_goes_whole(
    batches: EntryBatches, database: Database, whose: str, there: Conversation, old: Conversation
) -> None:
    user = MING if whose == "person" else HONG
    batches.write(put(*asking("wen-old", 1, user=user, where=old)))
    batches.write(put(*asking("wen-new", 2, at=AFTER, where=there), at=AFTER))
    kept = rows(database, "wen-new")
    tables = {row.split()[0] for row in kept}
    assert {"messages", "turns", "runs", "verdicts", "sends", "things", "speakers"} <= tables
    erase(batches, whose)
    assert rows(database, "wen-new") == kept
    assert rows(database, "wen-old") == [row for row in rows(database, "wen-old") if row.startswith("messages")]
    assert len(rows(database, "wen-old")) == 1  # its bare id, so that no history tells it anew
    erase(batches, whose, since=math.inf)
    assert all(row.startswith(("messages", "usage")) for row in rows(database, "wen-new"))


def test_a_turn_that_was_opened_since_for_what_was_asked_before_goes(batches: EntryBatches, database: Database) -> None:
    """It may have been prepared before all was let go of; and so does one opened before then, whoever asked since."""
    batches.write(put(*asking("late", 1, opened=AFTER)))
    batches.write(put(*asking("early", 2, at=AFTER, opened=NOW, where=ANOTHER), at=AFTER))
    erase(batches, "person")
    with database.reading() as connection:
        assert connection.execute(turns.select()).all() == []


def test_the_turn_of_somebody_else_who_asked_since_stays_though_it_names_whoever_is_forgotten(
    batches: EntryBatches, database: Database
) -> None:
    for name, at in (("before", NOW), ("since", AFTER)):
        turn = replace(
            opening(name, said(name, message_id=name, user=HONG), at=at),
            user=UserMessage("[提问]\n小红#2: 小明#1 在吗"),
        )
        numbered = MemberNumbered(conversation=GROUP, number=1, user_id=MING, name="小明")
        observed = MessageObserved(said(name, message_id=name, user=HONG), overheard=False)
        said_of = step(name, 1, AssistantMessage("小明#1 在"))
        batches.write(put(numbered, observed, turn, said_of, closing(turn), at=at))
    erase(batches, "person")
    with database.reading() as connection:
        assert [(row.turn_id, row.asker) for row in connection.execute(turns.select())] == [("since", HONG)]


@pytest.mark.parametrize(("whose", "where"), [("person", PRIVATE), ("group", GROUP)])
def test_what_the_bot_says_since_what_was_recalled_and_summaries_go(
    batches: EntryBatches, database: Database, whose: str, where: Conversation
) -> None:
    """What was read is marked as before: else it would be overheard once more."""
    own = said("own words", message_id="o", user=BOT, where=where)
    taken_back = said("taken back", message_id="r", where=where)
    batches.write(put(MessageObserved(own, overheard=False), MessageObserved(taken_back, overheard=True), at=AFTER))
    batches.write(put(MessageErased(where, "r"), *asking("wen-new", 2, at=AFTER, where=where), at=AFTER))
    batches.write(put(WindowMoved(where, "wen-new", summary="a summary of before"), at=AFTER))
    erase(batches, whose)
    assert rows(database, "own words") == rows(database, "a summary") == []
    with database.reading() as connection:
        theirs = messages.select().where(messages.c.sender != 0)
        assert [row.message_id for row in connection.execute(theirs)] == ["wen-new"]
        (window,) = connection.execute(windows.select())
        assert (window.read_to > 0, window.first_turn > 0) == (True, True)


def test_of_messages_with_one_id_the_older_ones_go(batches: EntryBatches, database: Database) -> None:
    """Some servers give many messages the same one."""
    batches.write(put(*asking("0", 1, where=GROUP)))
    again = said("x", message_id="0", where=GROUP)
    judged = Judged(conversation=GROUP, message_id="0", sender=MING, wakes=True, reason="mention")
    batches.write(put(MessageObserved(again, overheard=False), judged, at=AFTER))
    erase(batches, "person")
    with database.reading() as connection:
        assert [row.at for row in connection.execute(verdicts.select())] == [AFTER]
        assert [row.thing for row in connection.execute(things.select())] == [None]


def test_the_same_id_elsewhere_is_another_message(batches: EntryBatches, database: Database) -> None:
    batches.write(put(*asking("same", 1, where=ANOTHER)))
    since = said("x", message_id="same", where=GROUP)
    batches.write(put(MessageObserved(since, overheard=True), at=AFTER))
    erase(batches, "person")
    assert [row.split()[0] for row in rows(database, "same")] == ["messages", "messages"]


def test_only_our_own_conversations_have_anything_newer_and_only_so_much(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches.write(put(*asking("a", 1, at=AFTER), *asking("b", 2, at=AFTER, where=ANOTHER), at=AFTER))
    with database.reading() as connection:
        assert newer(connection, THEN, lambda where: where == ANOTHER).turn_ids == ("b",)
        assert newer(connection, THEN, lambda _: False) is NOTHING
        assert newer(connection, AFTER, lambda _: True) is NOTHING
        assert newer(connection, math.inf, lambda _: True) is NOTHING
        monkeypatch.setattr(module, "MOST", 1)
        assert newer(connection, THEN, lambda _: True).turn_ids == ("b",)
