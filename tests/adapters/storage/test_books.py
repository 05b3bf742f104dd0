from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.conversations import audited, busiest, choices, groups, settings
from adapters.storage.queries.sums import spent
from adapters.storage.queries.turns import CALLS, story
from adapters.storage.tables import tool_calls
from bot.core.conversation import Conversation
from bot.core.journal import (
    Audited,
    Entry,
    Judged,
    MemberNumbered,
    MessageErased,
    MessageObserved,
    PersonaChosen,
    PlaceSet,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendState,
    UsageAdded,
)
from bot.core.query_results import PlaceSum, Publication, StoryCall, UsageSum
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from frostagent.types.runs import Stop, ToolFinished
from tests.adapters.storage.entries import NOW, began, closing, ended, heard, opening, put, read, sending, step, verdict
from tests.fakes import BOT, GROUP, PRIVATE, said

ELSEWHERE = Conversation(BOT, "group", 4343)
QUESTION = said("北京天气", message_id="5")


def whole(turn_id: str = "t1") -> list[Entry]:
    """A question that was answered, with a call and two sends of which one was refused."""
    opened = replace(opening(turn_id, QUESTION), at=NOW + 1)
    return [
        MessageObserved(QUESTION, overheard=False, judged=verdict()),
        opened,
        step(turn_id, 1),
        began(turn_id),
        ended(turn_id, ToolMessage("c1", "get_weather", "晴"), code="ok", seconds=1.5),
        step(turn_id, 2),
        sending("s1", turn_id),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW + 3, message_id="6"),
        sending("s2", turn_id),
        SendChanged(send_id="s2", state=SendState.REFUSED, at=NOW + 3),
        closing(opened),
    ]


def write(batches: EntryBatches, *entries: Entry) -> None:
    assert batches.write(put(*entries)).failure == ""


def test_a_question_and_its_answer_tell_the_same_story(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole(), heard("overheard", message_id="9"))
    told = read(database, story, GROUP, "5")
    assert told is not None
    assert (told.asker, told.wakes, told.reason, told.turn_id) == (777, True, "mention", "t1")
    assert told.until == 0
    assert (told.taken, told.opened, told.closed, told.stop) == (NOW, NOW + 1, NOW + 2, "answered")
    assert (told.steps, told.calls, told.models) == (2, (StoryCall("get_weather", "ok", 1.5),), ("demo",))
    assert told.usage == UsageSum(2, 20, 6, 10, 0.5, 0)
    assert (told.sends, told.failed) == (1, 1)
    assert read(database, story, GROUP, "6") == told  # the answer's id
    assert read(database, story, GROUP, "") == told  # the last one there
    assert not read(database, story, ELSEWHERE, "5").is_known


@pytest.mark.parametrize("code", ["TOOL_DENIED", "TOOL_UNAVAILABLE"])
def test_of_a_call_that_was_not_allowed_or_not_possible_is_told_what_the_model_read(
    code: str, batches: EntryBatches, database: Database
) -> None:
    told = f"error: no [{code}]"
    denied = ended("t1", ToolMessage("c1", "get_weather", told), code=code, seconds=0.0)
    write(batches, *(denied if isinstance(entry, ToolFinished) else entry for entry in whole()))
    assert read(database, story, GROUP, "5").calls == (StoryCall("get_weather", code, 0.0, told),)
    with database.connect() as connection, connection.begin():
        connection.execute(update(tool_calls).values(result="{"))
    assert read(database, story, GROUP, "5").calls == (StoryCall("get_weather", code, 0.0),)


def drafted(turn_id: str = "t1") -> list[Entry]:
    """Three drafts: one published, of two messages, one in other words, one left."""
    names = ("draft-7-a", "draft-7-b", "draft-8-a", "draft-9-a")
    published = SendChanged(send_id="draft-7-a", state=SendState.PUBLISHED, at=NOW + 60, reason="主人(999)")
    return [
        *(replace(sending(name, turn_id), state=SendState.DRAFT) for name in names),
        published,
        replace(published, send_id="draft-7-b"),
        replace(published, send_id="draft-8-a", state=SendState.REWORDED, reason="控制台"),
    ]


def test_of_drafts_is_told_who_published_them_and_who_changed_them(batches: EntryBatches, database: Database) -> None:
    write(batches, *whole(), *drafted())
    told = read(database, story, GROUP, "5")
    assert told.drafts == (7, 8, 9)
    assert told.published == (Publication(7, "主人(999)"), Publication(8, "控制台", changed=True))
    assert (told.sends, told.failed) == (1, 1)


def test_a_message_that_was_only_overheard_has_no_turn(batches: EntryBatches, database: Database) -> None:
    write(batches, heard("chatter", message_id="4"), *whole())
    told = read(database, story, GROUP, "4")
    assert (told.is_known, told.is_gone, told.wakes, told.turn_id) == (True, False, None, "")
    write(batches, heard("/help", message_id="3"), MessageErased(GROUP, "3"))
    assert read(database, story, GROUP, "3").is_gone
    muted = Judged(conversation=GROUP, message_id="4", sender=888, wakes=False, reason="muted", until=NOW + 60)
    write(batches, muted)
    told = read(database, story, GROUP, "4")
    assert told is not None
    assert (told.asker, told.wakes, told.reason, told.turn_id) == (888, False, "muted", "")
    assert told.until == NOW + 60


def test_a_turn_that_goes_on_has_no_end_and_many_calls_are_cut(batches: EntryBatches, database: Database) -> None:
    calls = [began("t1", 1, f"c{number}") for number in range(CALLS + 5)]
    write(batches, MessageObserved(QUESTION, overheard=False), opening("t1", QUESTION), *calls)
    told = read(database, story, GROUP, "5")
    assert told is not None
    assert (told.stop, told.closed, len(told.calls), told.calls[0].code) == ("", 0.0, CALLS, "")


def test_a_question_waits_until_its_turn_comes_and_a_recalled_one_does_not(
    batches: EntryBatches, database: Database
) -> None:
    write(batches, MessageObserved(QUESTION, overheard=False, judged=verdict()))
    told = read(database, story, GROUP, "5")
    assert (told.waits, told.is_gone, told.taken) == (True, False, NOW)
    write(batches, opening("t1", QUESTION))
    assert not read(database, story, GROUP, "5").waits
    other = said("上海天气", message_id="7")
    write(
        batches,
        MessageObserved(other, overheard=False, judged=replace(verdict(), message_id="7")),
        MessageErased(GROUP, "7"),
    )
    told = read(database, story, GROUP, "7")
    assert (told.waits, told.is_gone, told.wakes) == (False, True, True)
    write(batches, heard("chatter", message_id="4"))
    assert not read(database, story, GROUP, "4").waits
    refused = replace(verdict(), message_id="8", wakes=False, reason="muted")
    write(batches, MessageObserved(said("广州", message_id="8"), overheard=False, judged=refused))
    assert not read(database, story, GROUP, "8").waits


def test_a_run_that_waits_for_a_word_does_so_until_it_expires(batches: EntryBatches, database: Database) -> None:
    opened = opening("t1", QUESTION)
    write(batches, MessageObserved(QUESTION, overheard=False, judged=verdict()), opened)
    write(batches, RunSuspended(turn_id="t1", state="{}", expires=NOW + 600))
    assert read(database, story, GROUP, "5").expires == NOW + 600
    write(batches, RunResumed(turn_id="t1"))
    assert read(database, story, GROUP, "5").expires == 0


def test_last_words_that_nothing_was_sent_of_are_told_of_an_answer_alone(
    batches: EntryBatches, database: Database
) -> None:
    for number, (stop, sends, message, unsaid) in enumerate(
        [
            (Stop.ANSWERED, [], AssistantMessage("明天"), True),
            (Stop.ANSWERED, [replace(sending("between", "t1"), final=False)], AssistantMessage("明天"), True),
            (Stop.ANSWERED, [sending("final", "t2")], AssistantMessage("明天"), False),
            (Stop.ANSWERED, [], AssistantMessage(" "), False),
            (Stop.ANSWERED, [], AssistantMessage("明天", (ToolCall("c1", "stay_silent", "{}"),)), False),
            (Stop.OUT_OF_BUDGET, [], AssistantMessage("明天"), False),
        ]
    ):
        turn, question = f"t{number}", said("什么时候", message_id=f"{50 + number}")
        opened = opening(turn, question)
        mine = [replace(send, turn_id=turn) for send in sends]
        heard_it = MessageObserved(question, overheard=False)
        write(batches, heard_it, opened, step(turn, 1, message), *mine, closing(opened, stop=stop))
        assert read(database, story, GROUP, f"{50 + number}").unsaid is unsaid, number


def test_sums_are_of_a_time_a_place_and_a_person(batches: EntryBatches, database: Database) -> None:
    for turn_id, where, user in (("a", GROUP, 777), ("b", ELSEWHERE, 777), ("c", GROUP, 888)):
        write(batches, opening(turn_id, said("?", where=where, user=user)))
        unpriced = UsageAdded(turn_id=turn_id, model="m", usage=Usage(5, 5, 0, 0, None), at=NOW - 100)
        write(batches, step(turn_id), unpriced)
    one, other = UsageSum(1, 10, 3, 5, 0.25, 0), UsageSum(2, 15, 3, 10, 0.25, 1)
    assert read(database, spent, NOW, GROUP, 777) == one
    assert read(database, spent, NOW - 100, GROUP, 777) == other
    assert read(database, spent, NOW, GROUP, None).requests == 2
    assert read(database, spent, NOW, None, 777).requests == 2
    assert read(database, spent, NOW - 100, None, None).requests == 6
    assert read(database, spent, NOW + 1, None, None) == UsageSum()


def test_the_last_choice_of_a_persona_counts_in_its_conversation(batches: EntryBatches, database: Database) -> None:
    write(batches, PersonaChosen(GROUP, "owl"), PersonaChosen(ELSEWHERE, "owl"), PersonaChosen(GROUP, "fox"))
    assert read(database, choices) == {GROUP: "fox", ELSEWHERE: "owl"}


def test_the_last_that_was_set_under_a_name_counts(batches: EntryBatches, database: Database) -> None:
    write(batches, PlaceSet(GROUP, "hush", "mute"), PlaceSet(ELSEWHERE, "hush", "9"), PlaceSet(GROUP, "other", "x"))
    assert read(database, settings, "hush") == {GROUP: "mute", ELSEWHERE: "9"}
    write(batches, PlaceSet(GROUP, "hush", ""))
    assert read(database, settings, "hush") == {ELSEWHERE: "9"}


def test_groups_are_known_by_what_was_said_or_by_those_who_had_a_number(
    batches: EntryBatches, database: Database
) -> None:
    left = Conversation(BOT, "group", 4444)
    messages = [
        MessageObserved(said("hi", where=where), overheard=True) for where in (GROUP, ELSEWHERE, GROUP, PRIVATE)
    ]
    write(batches, *messages, MemberNumbered(conversation=left, number=1, user_id=777))
    assert read(database, groups) == {GROUP, ELSEWHERE, left}


def test_places_are_told_the_busiest_first(batches: EntryBatches, database: Database) -> None:
    write(batches, heard("1", where=ELSEWHERE), heard("2"), heard("3"))
    assert read(database, busiest, NOW) == (PlaceSum(GROUP, 2, NOW), PlaceSum(ELSEWHERE, 1, NOW))
    assert read(database, busiest, NOW + 1) == ()


def test_what_was_done_in_the_console_is_told_the_latest_first(batches: EntryBatches, database: Database) -> None:
    done = [Audited(at=NOW + n, login="a", address="::1", action="login", object=str(n)) for n in range(3)]
    write(batches, *done)
    assert read(database, audited, 2) == (done[2], done[1])
