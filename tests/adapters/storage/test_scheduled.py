"""What is scheduled, as the console shows it, and what was set in a conversation, by whom."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries import scheduled as module
from adapters.storage.queries.conversations import audited, settings_of
from adapters.storage.queries.scheduled import count_jobs, scheduled
from bot.core.console_views import FIRST_JOB
from bot.core.conversation import Conversation
from bot.core.jobs import JobChanged, JobKind, JobState
from bot.core.journal import Audited, MemberNumbered, MessageObserved, PlaceSet, SendChanged, SendState
from frostagent.types.messages import AssistantMessage
from frostagent.types.runs import Stop
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, closing, job, opening, put, read, sending
from tests.fakes import BOT, GROUP, said

ELSEWHERE = Conversation(10002, "group", 9)


def test_the_jobs_of_all_accounts_come_in_the_order_of_their_moments_page_by_page(
    batches: EntryBatches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakes = {1: NOW + 30, 2: NOW + 10, 3: NOW + 20, 4: NOW + 20, 5: NOW + 20}
    made = [job(number, where=ELSEWHERE if number in {3, 5} else GROUP, wake=wake) for number, wake in wakes.items()]
    ended = job(6).job
    batches.write(put(*made, job(6), JobChanged(replace(ended, state=JobState.ENDED))))
    assert [one.number for one in read(database, scheduled).rows] == [2, 3, 4, 5, 1]
    assert [one.number for one in read(database, scheduled, FIRST_JOB, ELSEWHERE).rows] == [3, 5]
    assert read(database, count_jobs) == {BOT: 3, ELSEWHERE.platform_id: 2}
    monkeypatch.setattr(module, "ROWS", 2)
    pages = [read(database, scheduled)]
    while (following := pages[-1].next) is not None:
        pages.append(read(database, scheduled, following))
    assert [[one.number for one in page.rows] for page in pages] == [[2, 3], [4, 5], [1]]
    monkeypatch.setattr(module, "ROWS", 5)
    assert read(database, scheduled).next is None


def test_nothing_is_scheduled_in_a_new_journal(batches: EntryBatches, database: Database) -> None:
    batches.open()
    assert (read(database, scheduled).rows, read(database, count_jobs)) == ((), {})


def test_a_job_comes_with_the_names_of_its_place_and_of_who_made_it(batches: EntryBatches, database: Database) -> None:
    made = job(7, "喝水", kind=JobKind.TEXT, rule="every 30", zone="Asia/Tokyo", fired=3, missed=1)
    renamed = [replace(said("hi", message_id=name), group_name=name) for name in ("old", "new")]
    batches.write(
        put(
            made,
            job(1, where=ELSEWHERE),
            *(MessageObserved(one, overheard=True) for one in renamed),
            MemberNumbered(conversation=GROUP, number=1, user_id=777, name="小明"),
            MemberNumbered(conversation=GROUP, number=2, user_id=5, name="小红"),
            MemberNumbered(conversation=ELSEWHERE, number=1, user_id=5, name="elsewhere"),
        )
    )
    found = {one.number: one for one in read(database, scheduled).rows}
    assert (found[7].group, found[7].name) == ("new", "小明")
    assert (found[1].group, found[1].name) == ("", "")
    one = made.job
    assert (found[7].where, found[7].maker, found[7].words, found[7].rule) == (GROUP, 777, "喝水", "every 30")
    assert (found[7].kind, found[7].zone, found[7].due, found[7].state) == ("text", "Asia/Tokyo", one.due, "waiting")
    assert (found[7].fired, found[7].missed, found[7].last) == (3, 1, None)


def test_what_came_of_a_job_last_is_that_of_its_latest_message_or_turn(
    batches: EntryBatches, database: Database
) -> None:
    asked = [opening(f"t{number}", said("?", message_id=str(number))) for number in range(2)]
    batches.write(
        put(
            job(1, claim="s1"),
            job(2, claim="t0", kind=JobKind.RUN),
            job(3, claim="t1", kind=JobKind.RUN),
            job(4, claim="erased"),
            sending("s1", "", "⏰ 喝水"),
            SendChanged(send_id="s1", state=SendState.REFUSED, at=NOW + 5, reason="muted"),
            *asked,
            replace(closing(asked[0], AssistantMessage("done")), stop=Stop.FAILED),
        )
    )
    last = {one.number: one.last for one in read(database, scheduled).rows}
    assert last[4] is None
    said_last, failed, running = last[1], last[2], last[3]
    assert said_last is not None
    assert (said_last.at, said_last.outcome, said_last.text, said_last.turn_id) == (NOW + 5, "refused", "⏰ 喝水", "")
    assert failed is not None
    assert (failed.at, failed.outcome, failed.text, failed.turn_id) == (asked[0].at, "failed", "", "t0")
    assert running is not None
    assert running.outcome == "running"


def test_what_was_set_in_one_conversation_and_what_was_done_about_it(batches: EntryBatches, database: Database) -> None:
    def done(action: str, where: Conversation) -> Audited:
        return Audited(at=NOW, login="", address="777", action=action, object=str(where))

    batches.write(
        put(
            PlaceSet(GROUP, "welcome", "Hi {name}"),
            PlaceSet(GROUP, "farewell", "Bye"),
            PlaceSet(GROUP, "farewell", ""),
            PlaceSet(ELSEWHERE, "welcome", "elsewhere"),
            done("welcome", GROUP),
            done("farewell", ELSEWHERE),
            done("farewell", GROUP),
        )
    )
    assert read(database, settings_of, GROUP) == {"welcome": "Hi {name}"}
    assert [one.action for one in read(database, audited, 9, str(GROUP))] == ["farewell", "welcome"]
    assert [one.action for one in read(database, audited, 1, str(GROUP))] == ["farewell"]
    assert len(read(database, audited, 9)) == 3


async def test_a_worker_counts_its_own_accounts_jobs_and_reads_every_conversations_settings(url: str) -> None:
    scope = ClusterPartition(partition_of(BOT, 16), 16)
    assert not scope.has(ELSEWHERE.platform_id)
    async with opened(url, scope=scope) as at:
        books = at.store.books
        assert await books.count_jobs() == 0
        assert await at.store.commit(job(1), job(2), job(3, where=ELSEWHERE), PlaceSet(ELSEWHERE, "welcome", "hi"))
        await at.store.commit()
        assert await books.count_jobs() == 2
        found = await books.scheduled()
        assert found is not None
        assert sorted(one.number for one in found.rows) == [1, 2, 3]
        assert await books.settings("welcome") == {}
        assert await books.settings_of(ELSEWHERE) == {"welcome": "hi"}
