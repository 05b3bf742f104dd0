"""When the tool is offered, and who may do what with whose job."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, cast

from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobKind, Reminders, Subscriptions
from bot.jobs.changes import JobChanges
from bot.jobs.reminders import HINT, JobBook, may_change, may_see
from bot.prompt.compose import Question
from frostagent.types.runs import Asker
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, said
from tests.settings import kept_settings

ELSEWHERE = Conversation(BOT, "group", 9)
PRIVATE = Conversation(BOT, "private", 5)


def offered(*lines: str, book: JobBook | None = None) -> set[type]:
    """The ports of the tools that are offered for a question of these lines."""
    *earlier, last = map(said, lines)
    return {*(book or job_book()).on_demand(Question(last, lines=tuple(earlier)))}


def job_book() -> JobBook:
    store, unused = RecordingStore(), cast("Any", None)
    return JobBook(
        jobs=unused,
        changes=JobChanges(),
        store=store,
        settings=kept_settings(store),
        owners=(),
        zone="",
        clock=ManualClock(),
        look=unused,
        web=unused,
    )


@each_case(
    ("words", "wants"),
    [
        ("明天八点提醒我交作业", True),
        ("十分钟后叫我", True),
        ("每天早上报一下天气", True),
        ("每个工作日打卡", True),
        ("J3 改到九点", True),
        ("Remind me at 8", True),
        ("tell me in 10 minutes", True),
        ("in half an hour tell us the score", True),
        ("every day at 9 say good morning", True),
        ("设个闹钟", True),
        ("每个人都去吗", False),
        ("叫小明来", False),
        ("以后再说吧", False),
        ("what is the weather like today", False),
        ("everything is fine", False),
        ("I have to work for an hour", False),
        ("", False),
    ],
)
def test_a_question_wants_a_reminder_or_not(words: str, wants: bool) -> None:
    assert offered(words) == ({Reminders} if wants else set())


@each_case(
    ("words", "wants"),
    [("订阅 https://a.test", True), ("An RSS feed", True), ("SUBSCRIBE to it", True), ("your feedback", False)],
)
def test_a_question_wants_a_feed_or_not(words: str, wants: bool) -> None:
    assert offered(words) == ({Reminders, Subscriptions} if wants else set())


def test_any_line_of_a_question_may_want_it_but_no_two_together() -> None:
    assert offered("J3", "改到九点", "谢谢") == {Reminders}
    assert offered("五分钟", "后来呢") == set()


def test_a_chat_that_once_wanted_it_is_offered_it_for_good() -> None:
    book = job_book()
    assert offered("订阅 https://a.test", book=book) == {Reminders, Subscriptions}
    assert offered("今天天气如何", book=book) == {Reminders, Subscriptions}


def test_a_plain_question_is_asked_about_in_few_calls() -> None:
    book, calls = job_book(), list[str]()
    question = Question(said("今天晚上去不去香山看红叶，人可能有点多"))

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        book.on_demand(question)
    finally:
        sys.setprofile(None)
    assert HINT.search("今天晚上去不去香山看红叶，人可能有点多") is None
    assert calls == ["on_demand", "get", "get"]


def job(maker: int, where: Conversation = GROUP) -> Job:
    return Job(number=1, where=where, maker=maker, kind=JobKind.TEXT, words="喝水", made=0, due=1, wake=1)


MEMBER, ADMIN, OWNER = Asker("5"), Asker("6", role="admin"), Asker("7", is_owner=True)
LED = Asker("6", role="admin", authority=Audience.EVERYONE)


@each_case(
    ("asker", "made", "where", "sees", "changes"),
    [
        (MEMBER, job(5), GROUP, True, True),
        (MEMBER, job(6), GROUP, True, False),
        (ADMIN, job(5), GROUP, True, True),
        (LED, job(5), GROUP, True, False),
        (LED, job(6), GROUP, True, True),
        (OWNER, job(5), GROUP, True, True),
        (MEMBER, job(5), ELSEWHERE, False, True),
        (MEMBER, job(5), PRIVATE, True, True),
        (Asker("6"), job(5), PRIVATE, False, False),
        (OWNER, job(5), PRIVATE, True, True),
    ],
)
def test_whose_job_it_is_decides(asker: Asker, made: Job, where: Conversation, sees: bool, changes: bool) -> None:
    assert (may_see(asker, made, where=where), may_change(asker, made)) == (sees, changes)
