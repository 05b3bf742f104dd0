"""When the tool is offered, and who may do what with whose job."""

from __future__ import annotations

from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobKind
from bot.jobs.reminders import HINTS, may_change, may_see, wants_reminder
from frostagent.types.runs import Asker
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import BOT, GROUP

ELSEWHERE = Conversation(BOT, "group", 9)
PRIVATE = Conversation(BOT, "private", 5)


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
    assert wants_reminder(words) is wants


def test_most_questions_are_not_searched() -> None:
    assert not any(hint in "今天晚上去不去香山看红叶，人可能有点多" for hint in HINTS)


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
