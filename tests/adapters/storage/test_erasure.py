"""Forgetting: nothing is left in any table, nor a byte in any file; everybody else's words stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import func, select

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from adapters.storage.erasure import forget_group, forget_user
from adapters.storage.queries import conversations
from adapters.storage.queries.conversations import audited, busiest
from adapters.storage.queries.sums import taken
from adapters.storage.retention import LONGEST_DAY, Retention
from adapters.storage.tables import messages, metadata, sends, turns, usage
from bot.approvals.join_requests import request_text as asked_of_owners
from bot.approvals.tool_call_wording import asker_line
from bot.core import codec
from bot.core.actions import SendMessage, SentSegment, send_prefix_of_person, send_prefix_of_turn
from bot.core.conversation import Conversation
from bot.core.group_admin import JoinRequest
from bot.core.journal import (
    Audited,
    Entry,
    MemberNumbered,
    MessageObserved,
    PersonaChosen,
    PictureDescribed,
    PlaceSet,
    Remembered,
    RunSuspended,
    SendChanged,
    SendState,
    UsageAdded,
    UsageReserved,
    WindowMoved,
)
from bot.core.query_results import SpentSum
from bot.core.segments import Mention
from bot.policy.memory_rules import terms
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from frostagent.types.runs import Asker
from frostagent.types.speech import Attachment, Text
from tests.adapters.storage.entries import (
    NOW,
    asked,
    began,
    beside,
    closing,
    ended,
    fact,
    heard,
    job,
    opening,
    sending,
    steering,
    step,
    thing,
    verdict,
)
from tests.fakes import BOT, GROUP, said

SECRET = "planted-霜降-word"
USER = 12345
PRIVATE = Conversation(BOT, "private", USER)
ELSEWHERE = Conversation(10002, "group", 9)


def put(*entries: Entry) -> list[Put]:
    return [Put(entry, NOW) for entry in entries]


def whole_turn(turn_id: str, word: str, *, where: Conversation = GROUP, user: int = 777) -> list[Entry]:
    """A turn that has the word in every place where a word may be."""
    question = said(word, where=where, user=user, name=word)
    opened = replace(opening(turn_id, question), user=UserMessage(f"[提问]\n{word}({user}): {word}"))
    call = AssistantMessage(word, (ToolCall("c", word, f'{{"q": "{word}"}}'),))
    result = ToolMessage("c", word, word)
    return [
        MessageObserved(question, overheard=False),
        opened,
        step(turn_id, 1, call),
        began(turn_id, 1, "c", word),
        ended(turn_id, result, 1, code="ok", seconds=1.0),
        RunSuspended(turn_id=turn_id, state=word, expires=NOW),
        sending(f"s-{turn_id}", turn_id, word, where=where),
        replace(closing(opened, call, result, AssistantMessage(word)), error=word),
        WindowMoved(where, turn_id, turn_id, f"{word} said {word}"),
        UsageAdded(turn_id=turn_id, model="demo", usage=Usage(1), at=NOW),
    ]


def contains(database: Database, word: str) -> bool:
    """Whether the word is in any column, and (SQLite) anywhere in the folder's files."""
    with database.reading() as connection:
        for table in metadata.sorted_tables:
            if any(word in str(value) for row in connection.execute(select(table)) for value in row):
                return True
    if database.file is None:
        return False
    return any(word.encode() in file.read_bytes() for file in database.file.parent.iterdir())


def places_of(database: Database, user: int) -> set[str]:
    """The tables that name a person by the number."""
    with database.reading() as connection:
        return {
            table.name
            for table in metadata.sorted_tables
            if any(str(user) in str(row) for row in connection.execute(select(table)))
        }


def numbers(database: Database) -> dict[str, int]:
    with database.reading() as connection:
        return {t.name: connection.scalar(select(func.count()).select_from(t)) or 0 for t in metadata.sorted_tables}


@pytest.fixture
def filled(batches: EntryBatches, database: Database) -> Database:
    """Others' words here and elsewhere, and what nothing may happen to."""
    batches.write(put(*whole_turn("t-others", "harmless"), *whole_turn("t-elsewhere", "elsewhere", where=ELSEWHERE)))
    batches.write(put(heard("chatter", user=99)))
    return database


def everything_of(user: int) -> list[Entry]:
    """All the ways a person's words get into the journal."""
    overhearing = replace(
        opening("t-overhearing", said("and now?", user=777)),
        user=UserMessage(f"[群聊记录]\n{SECRET}({user}): {SECRET}\n[提问]\n小明(777): and now?"),
    )
    return [
        *whole_turn("t-own", SECRET, user=user),
        *whole_turn("t-private", SECRET, where=Conversation(BOT, "private", user), user=user),
        MemberNumbered(conversation=Conversation(BOT, "private", user), number=1, user_id=user, name=SECRET),
        thing(1, message_id=SECRET, user=user, where=Conversation(BOT, "private", user)),
        MessageObserved(
            replace(said(SECRET, user=user, name=SECRET), group_name=SECRET, sub_type=SECRET), overheard=True
        ),
        overhearing,
        steering("t-own", said(SECRET, user=user)),
        verdict(sender=user),
        PersonaChosen(Conversation(BOT, "private", user), SECRET),
        PlaceSet(Conversation(BOT, "private", user), "hush", SECRET),
        fact("m-about", SECRET, subject=user, author=777),
        fact("m-of", SECRET, where=ELSEWHERE, subject=0, author=user),
        job(1, SECRET, maker=user),
        job(2, SECRET, maker=user, where=ELSEWHERE),
        step("t-overhearing", 1, AssistantMessage(SECRET)),
        beside("t-overhearing", AssistantMessage(SECRET)),
        closing(overhearing, AssistantMessage(SECRET)),
    ]


def test_no_table_names_who_is_forgotten_though_an_operator_or_an_invite_did(
    batches: EntryBatches, filled: Database
) -> None:
    invite = JoinRequest(account=BOT, kind="invite", user_id=USER, group_id=GROUP.session_id, comment=SECRET, flag="f")
    paused = Audited(at=NOW, login="a", address="::1", action="pause", object=str(PRIVATE))
    others = Audited(at=NOW, login="a", address="::1", action="pause", object=str(GROUP))
    command = Audited(at=NOW, login="", address=str(USER), action="welcome", object=str(GROUP))
    batches.write(
        put(*everything_of(USER), paused, others, command, PlaceSet(invite.where, "petition", codec.write(invite)))
    )
    draft = replace(sending("draft-1-a", "t1"), state=SendState.DRAFT)
    batches.write(put(draft, SendChanged(send_id="draft-1-a", state=SendState.PUBLISHED, at=NOW, reason=f"某({USER})")))
    batches.close()
    assert {"audit", "place_settings", "sends"} <= places_of(filled, USER)
    forget_user(filled, USER)
    assert not contains(filled, SECRET)
    assert places_of(filled, USER) == set()
    with filled.reading() as connection:
        done = [(one.object, one.address) for one in audited(connection, 9)]
        assert done == [(str(GROUP), ""), (str(GROUP), "::1"), ("", "::1")]


def test_a_person_is_forgotten_everywhere(batches: EntryBatches, filled: Database) -> None:
    before = numbers(filled)
    batches.write(put(*everything_of(USER)))
    assert contains(filled, SECRET)
    batches.close()
    gone = forget_user(filled, USER)
    assert not contains(filled, SECRET)
    after = numbers(filled)
    assert after == {**before, "messages": before["messages"] + 3}  # that they were taken, by their ids alone
    assert gone == {
        "runs": 3,
        "steps": 3,
        "steered": 1,
        "tool_calls": 2,
        "requests": 1,
        "usage": 5,
        "sends": 2,
        "messages": 3,
        "windows": 1,
        "speakers": 1,
        "choices": 1,
        "place_settings": 1,
        "things": 1,
        "turns": 3,
        "verdicts": 1,
        "jobs": 2,
        "memories": 2,
        "memory_terms": 2 * len(terms(SECRET)),
    }


@pytest.mark.parametrize("forget", [forget_user, forget_group])
def test_what_was_taken_today_counts_until_the_day_has_ended_without_a_word_of_theirs(
    batches: EntryBatches, filled: Database, forget: Callable[..., dict[str, int]]
) -> None:
    whom = USER if forget is forget_user else GROUP.session_id
    today = NOW - LONGEST_DAY
    yesterday = UsageAdded(turn_id="t-own", model="demo", usage=Usage(9), at=today - 1)
    reserved = UsageReserved(turn_id="t-own", number=1, model="demo", usage=Usage(5), at=NOW)
    nobodys = UsageAdded(turn_id="t-nobodys", model="demo", usage=Usage(7), at=today - 1)
    batches.write(put(*everything_of(USER), yesterday, reserved, nobodys))

    def sums() -> set[SpentSum]:
        with filled.reading() as connection:
            return set(taken(connection, today, NOW))

    before, rows = sums(), numbers(filled)["usage"]
    batches.close()
    forget(filled, whom, now=lambda: NOW)
    assert sums() == before
    assert numbers(filled)["usage"] == rows - 1
    settled = Usage(5, reserved=1)
    batches.write(put(UsageAdded(turn_id="t-own", model="demo", usage=settled, at=NOW)))
    assert sums() == before  # it went on meanwhile
    if forget is forget_user:
        assert not contains(filled, SECRET)
        assert places_of(filled, USER) == {"usage"}
    keep, over = Retention(0, 0), NOW + LONGEST_DAY
    assert not batches.run(lambda connection: keep.sweep(connection, now=over, surplus=0.0))
    assert batches.run(lambda connection: keep.sweep(connection, now=over + 1, surplus=0.0))
    batches.close()
    if forget is forget_user:
        assert not places_of(filled, USER)
    with filled.reading() as connection:
        kept = set(connection.scalars(select(usage.c.turn_id)))
        assert kept == {*connection.scalars(select(turns.c.turn_id)), "t-nobodys"}


def test_who_is_forgotten_is_forgotten_by_number_and_nobody_gets_it(batches: EntryBatches, filled: Database) -> None:
    def numbered(number: int, user_id: int, name: str) -> MemberNumbered:
        return MemberNumbered(conversation=GROUP, number=number, user_id=user_id, name=name)

    def reading(turn_id: str, who: str) -> list[Entry]:
        opened = replace(opening(turn_id, said("hm", user=99)), user=UserMessage(f"[群聊记录]\n{who}: hi"))
        return [opened, closing(opened)]

    batches.write(put(numbered(1, 99, "other"), numbered(2, USER, SECRET), numbered(2, USER, f"{SECRET}!")))
    batches.write(put(thing(1), thing(2, user=USER, message_id=SECRET), PictureDescribed("d", SECRET)))
    batches.write(put(*reading("t-named", "小红#2"), *reading("t-another", "小红#21")))
    batches.close()
    assert forget_user(filled, USER)["turns"] == 1
    batches.write(put(numbered(2, USER, SECRET)))
    assert not contains(filled, SECRET)
    with filled.reading() as connection:
        remembered = conversations.remember(connection, GROUP)
    assert remembered.members == (numbered(1, 99, "other"), numbered(2, 0, ""))
    assert [(one.sender.user_id, one.segment is None) for one in remembered.things] == [(777, False), (0, True)]
    assert [round_.turn_id for round_ in remembered.rounds] == ["t-others", "t-another"]


def test_a_turn_that_goes_on_while_it_is_erased_leaves_no_words_behind(batches: EntryBatches, filled: Database) -> None:
    before = numbers(filled)
    batches.write(put(opening("t-own", said(SECRET, user=USER))))
    batches.close()
    forget_user(filled, USER)
    going_on = whole_turn("t-own", SECRET, user=USER)[2:8]  # its step, a call, what is told of it, and how it ends
    told = steering("t-own", said(SECRET, user=USER)), SendChanged(send_id="s-t-own", state=SendState.CONFIRMED, at=NOW)
    batches.write(put(*going_on, *told, beside("t-own", AssistantMessage(SECRET))))
    assert not contains(filled, SECRET)
    assert {**numbers(filled), "usage": 0} == {**before, "usage": 0}


def test_a_summary_goes_where_they_said_something_and_stays_elsewhere(batches: EntryBatches, filled: Database) -> None:
    batches.write(put(heard(SECRET, user=USER)))
    batches.close()
    forget_user(filled, USER)
    with filled.reading() as connection:
        assert conversations.remember(connection, GROUP).summary == ""
        assert conversations.remember(connection, ELSEWHERE).summary == "elsewhere said elsewhere"


def test_a_summary_that_names_a_person_goes(batches: EntryBatches, filled: Database) -> None:
    batches.write(put(WindowMoved(ELSEWHERE, "t-elsewhere", summary=f"小红({USER}) 来过")))
    batches.close()
    forget_user(filled, USER)
    with filled.reading() as connection:
        assert conversations.remember(connection, ELSEWHERE).summary == ""


def test_others_mentions_of_a_person_stay_without_the_name(batches: EntryBatches, filled: Database) -> None:
    mention = said((Mention(USER, SECRET), Mention(7, "小红"), Text(" hi")), message_id="m", at=False)
    batches.write(put(MessageObserved(mention, overheard=True)))
    batches.close()
    forget_user(filled, USER)
    assert not contains(filled, SECRET)
    with filled.reading() as connection:
        found = conversations.find(connection, GROUP, "m")
    assert found is not None
    assert found.segments == (Mention(USER), Mention(7, "小红"), Text(" hi"))


def test_a_number_that_only_looks_alike_is_somebody_else(batches: EntryBatches, database: Database) -> None:
    others = [*everything_of(123456), *whole_turn("t-2", SECRET, where=Conversation(BOT, "private", 212345), user=2)]
    batches.write(put(*others))
    before = numbers(database)
    batches.close()
    assert set(forget_user(database, USER).values()) == {0}
    assert numbers(database) == before


OWNERS_CHAT = Conversation(BOT, "private", 999)
PETITION = JoinRequest(account=BOT, kind="friend", user_id=USER, group_id=0, comment=SECRET, flag="f", number=3)
ABOUT_THEM = {
    "a friend request": ("b-1", asked_of_owners(PETITION, days=7), OWNERS_CHAT),
    "who asked for a call": ("b-2", asker_line(Asker(str(USER), SECRET), ELSEWHERE, SECRET), OWNERS_CHAT),
    "a call that their words led to": (f"{send_prefix_of_turn('t-own')}b-3", f"#A4 send {SECRET}", OWNERS_CHAT),
    "a loop": ("b-4", f"{SECRET}({USER}) keeps answering in {ELSEWHERE}", OWNERS_CHAT),
    "a digest": ("b-5", f"People: {SECRET}({USER}) $0.10, 某(34567) $0.01", OWNERS_CHAT),
    "what a command told them": (f"{send_prefix_of_person(USER)}b-6", f"· {SECRET}", GROUP),
    "what a command told of them": ("b-7", f"阿霜#1: {SECRET}", GROUP),
}
ABOUT_OTHERS = {
    "longer": ("b-8", f"#R4 9{USER} asks, #R5 {USER}0 asks", OWNERS_CHAT),
    "another's number": ("b-9", "阿霜#10: kept, 阿霜 #1", GROUP),
    "the same number elsewhere": ("b-10", "阿霜#1: kept", ELSEWHERE),
    "another turn": (f"{send_prefix_of_turn('t-others')}b-11", "#A5 send kept", OWNERS_CHAT),
    "another person": (f"{send_prefix_of_person(1234)}b-12", "· kept", GROUP),
}


def test_what_owners_and_commands_were_told_about_them_goes_and_about_others_stays(
    batches: EntryBatches, filled: Database
) -> None:
    batches.write(put(*whole_turn("t-own", SECRET, user=USER)))
    batches.write(put(MemberNumbered(conversation=GROUP, number=1, user_id=USER, name="阿霜")))
    lines = {**ABOUT_THEM, **ABOUT_OTHERS}
    batches.write(put(*(sending(of, "", text, where) for of, text, where in lines.values())))
    batches.close()
    before = numbers(filled)["sends"]
    gone = forget_user(filled, USER)
    with filled.reading() as connection:
        left = set(connection.scalars(select(sends.c.send_id).where(sends.c.turn_id == "")))
    assert {name for name, (of, *_) in lines.items() if of in left} == set(ABOUT_OTHERS)
    assert gone["sends"] == before - numbers(filled)["sends"]
    assert not contains(filled, SECRET)


def test_what_owners_were_told_about_a_group_goes_with_it(batches: EntryBatches, filled: Database) -> None:
    batches.write(put(*whole_turn("t-there", SECRET)))
    file = Attachment("file", f"base64://{SECRET}", "A4.txt")
    lines: dict[str, tuple[SentSegment, ...]] = {
        "b-1": (Text(f"a new group, {GROUP.session_id}: {SECRET}"),),
        f"{send_prefix_of_turn('t-there')}b-2": (file,),
        "b-3": (Text(f"{ELSEWHERE} and {GROUP.session_id}0 are others"),),
    }
    for of, segments in lines.items():
        batches.write(put(replace(sending(of, ""), action=SendMessage(OWNERS_CHAT, segments))))
    batches.close()
    forget_group(filled, GROUP.session_id)
    with filled.reading() as connection:
        assert connection.scalars(select(sends.c.send_id).where(sends.c.turn_id == "")).all() == ["b-3"]
    assert not contains(filled, SECRET)


def test_a_group_is_forgotten_for_every_account(batches: EntryBatches, filled: Database) -> None:
    with_others = [
        *whole_turn("t-a", SECRET, where=Conversation(BOT, "group", 555)),
        *whole_turn("t-b", SECRET, where=Conversation(10002, "group", 555)),
        heard(SECRET, where=Conversation(BOT, "group", 555)),
    ]
    before = numbers(filled)
    batches.write(put(*with_others))
    batches.write(
        put(
            asked("stays", where=Conversation(BOT, "group", 5555)),
            asked("too", where=Conversation(BOT, "private", 555)),
        )
    )
    batches.close()
    gone = forget_group(filled, 555)
    assert (gone["messages"], gone["turns"], gone["windows"]) == (3, 2, 2)
    assert not contains(filled, SECRET)
    assert numbers(filled) == {**before, "messages": before["messages"] + 2 + 3}


def test_what_was_forgotten_is_known_as_taken_by_its_id_alone_so_that_no_history_tells_it_anew(
    batches: EntryBatches, filled: Database
) -> None:
    private, group = Conversation(BOT, "private", USER), Conversation(BOT, "group", USER)
    batches.write(put(*[heard(user=USER, message_id=place.message_type, where=place) for place in (private, group)]))
    batches.write(put(heard(user=USER, message_id="52"), asked(message_id="53", user=USER)))
    batches.close()
    forget_user(filled, USER)
    forget_group(filled, USER)
    assert not contains(filled, str(USER))
    with filled.reading() as connection:
        assert conversations.heard(connection, private, ["private", "50"]) == {"private"}
        assert conversations.heard(connection, group, ["group", "50"]) == {"group"}
        assert conversations.heard(connection, GROUP, ["52", "53", "54"]) == {"52", "53"}
        assert conversations.find(connection, GROUP, "52") is None
        assert conversations.remember(connection, private) == Remembered()
        assert [place.where for place in busiest(connection, 0.0)] == [GROUP, ELSEWHERE]


def test_what_was_remembered_begins_after_the_gap(batches: EntryBatches, database: Database) -> None:
    """The mark of what was read survives, though the turn that set it is gone."""
    batches.write(put(*[heard(str(n), message_id=f"o{n}") for n in range(40)], *whole_turn("t", SECRET, user=USER)))
    batches.close()
    forget_user(database, USER)
    with database.reading() as connection:
        assert conversations.remember(connection, GROUP) == Remembered()


def test_bytes_deleted_long_ago_are_gone_as_well(sqlite: str) -> None:
    database = Database(sqlite, migrate=lambda _: None)
    writing = EntryBatches(database, stamp=str)
    writing.write(put(*[heard(SECRET * 50, user=USER) for _ in range(50)]))
    driver: Any = writing._connected().connection.driver_connection
    driver.execute("PRAGMA secure_delete=OFF").close()  # as SQLite does it by itself, unless Debian built it
    writing.run(lambda connection: connection.execute(messages.delete()))
    writing.close()
    assert contains(database, SECRET)
    forget_user(database, USER)
    assert not contains(database, SECRET)
    database.close()


@pytest.mark.parametrize("forget", [forget_user, forget_group])
def test_forgetting_who_was_never_there_changes_nothing(
    filled: Database, forget: Callable[..., dict[str, int]], batches: EntryBatches
) -> None:
    before = numbers(filled)
    batches.close()
    assert set(forget(filled, 987654).values()) == {0}
    assert numbers(filled) == before


def test_a_turn_closed_again_is_still_the_persons(batches: EntryBatches, database: Database) -> None:
    """The round alone may name them: what a tool brought, say."""
    opened = opening("t", said("who?", user=777))
    round_ = (opened.user, AssistantMessage(f"it was {SECRET}({USER})"))
    closed = closing(opened)
    batches.write(put(opened, replace(closed, round=round_)))
    batches.close()
    assert forget_user(database, USER)["turns"] == 1
    assert not contains(database, SECRET)
