from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.journal import LogQuery
from bot.core.ports import LogPage
from bot.core.segments import Card
from bot.memory.chat_log import NOTHING, StoredChatLog
from frostagent.types.errors import InvalidArguments, ToolFailed
from frostagent.types.speech import Text
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock, RecordingStore, said

NOW = datetime(2026, 11, 22, 14, 10, tzinfo=UTC).timestamp()
OWNER = 20001


class Numbers:
    def number(self, conversation: Conversation, user_id: int) -> int:
        return user_id

    def user_id(self, conversation: Conversation, number: int, name: str = "") -> int | None:
        return {1: OWNER, 2: 777}.get(number)


def line(message: MessageReceived) -> str:
    return "小明#2: " + "".join(segment.text for segment in message.segments if isinstance(segment, Text))


def at(text: str, day: int, hour: int, minute: int, user: int = 777) -> MessageReceived:
    time = datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp()
    return replace(said(text, at=False, user=user), time=time)


class Log:
    """A log of these messages, and what it asked the journal."""

    def __init__(self, *known: MessageReceived) -> None:
        self.store = RecordingStore(known=known)
        self.log = StoredChatLog(
            store=self.store,
            members=Numbers(),
            render=line,
            owners=frozenset({OWNER}),
            clock=ManualClock(NOW),
            zone=UTC,
        )

    async def read(self, *, since: str = "", until: str = "", who: str = "", words: str = "") -> LogPage:
        return await self.log.read(GROUP, since=since, until=until, who=who, words=words)

    async def asked(self, **more: str) -> LogQuery:
        await self.read(**more)
        return self.store.searched[-1]


async def test_lines_have_their_time_and_a_date_where_the_day_changes() -> None:
    page = await Log(at("晚安", 21, 23, 58), at("早", 22, 8, 1), at("早呀", 22, 8, 2)).read()
    assert page.text == "[2026-11-21]\n23:58 小明#2: 晚安\n[2026-11-22]\n08:01 小明#2: 早\n08:02 小明#2: 早呀"
    assert len(page.sources) == 3


async def test_the_latest_forty_are_told_and_how_to_read_on() -> None:
    lines = [at(f"第{number}句", 22, 13, number) for number in range(40 + 5)]
    page = await Log(*lines).read()
    assert page.text.splitlines()[:3] == [
        '(There is more before these: ask again with until="2026-11-22 13:05".)',
        "[2026-11-22]",
        "13:05 小明#2: 第5句",
    ]
    assert page.sources == tuple(one.message_id for one in lines[5:])


async def test_words_that_only_the_form_of_a_message_has_are_not_found() -> None:
    log = Log(at("周六 OK", 22, 8, 0), at("text", 22, 8, 1), at("周日", 22, 8, 2))
    assert (await log.read(words="text")).text == "[2026-11-22]\n08:01 小明#2: text"
    assert (await log.read(words="ok 周六")).text == "[2026-11-22]\n08:00 小明#2: 周六 OK"
    assert log.store.searched[-1].words == ("ok", "周六")
    assert (await log.read(words="周一")).text == NOTHING


@each_case(
    ("since", "day", "hour", "minute"),
    [
        ("14:02", 22, 14, 2),
        ("23：30", 21, 23, 30),  # not yet today
        ("11-20 09:15", 20, 9, 15),
        ("2026/11/20 9:15", 20, 9, 15),
        ("2026-11-20T09:15", 20, 9, 15),
        ("2026-11-20", 20, 0, 0),
        ("2026-11-20 Friday 09:15", 20, 9, 15),  # as prompts tell a day
        ("2026-11-20 星期五", 20, 0, 0),
    ],
)
async def test_a_time_is_written_as_people_write_it(since: str, day: int, hour: int, minute: int) -> None:
    query = await Log().asked(since=since)
    assert query.since == at("", day, hour, minute).time
    assert query.until > NOW


async def test_an_end_is_the_end_of_its_minute_or_day() -> None:
    minute, day = (await Log().asked(until="14:02")).until, (await Log().asked(until="2026-11-20")).until
    assert at("", 22, 14, 3).time - 1 < minute < at("", 22, 14, 3).time
    assert at("", 21, 0, 0).time - 1 < day < at("", 21, 0, 0).time


@each_case("told", ["小 红#2: 周六 OK", "小明#2 ↩阿澈#1「去吗」: 周六 OK"])
async def test_words_may_be_given_with_the_name_that_prompts_write_before_them(told: str) -> None:
    assert (await Log().asked(words=told)).words == ("周六", "OK")


async def test_where_not_all_was_looked_through_that_is_said() -> None:
    page = await Log(*[at("text" if n == 399 else "x", 22, 13, n % 60) for n in range(400)]).read(words="text")
    assert page.text.splitlines()[0].startswith("(There is more before these")


@each_case("who", ["#2", "2", "小明#2", " # 2 "])
async def test_a_person_is_asked_for_by_his_number_here(who: str) -> None:
    query = await Log().asked(who=who)
    assert (query.conversation, query.sender) == (GROUP, 777)


@each_case("wrong", [{"who": "#9"}, {"who": "小明"}, {"since": "昨天"}, {"until": "25:00"}])
async def test_what_is_no_person_and_no_time_is_said_to_be_none(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidArguments):
        await Log().read(**wrong)


async def test_while_the_journal_cannot_be_read_that_is_said() -> None:
    log = Log()
    log.store.trouble = True
    with pytest.raises(ToolFailed):
        await log.read()


async def test_a_page_has_the_least_authority_of_those_in_it() -> None:
    owner = at("我的", 22, 8, 0, user=OWNER)
    card = replace(owner, segments=(Card("json", "标题"),), message_id="77")
    admin = replace(at("管理", 22, 8, 1), sender=Sender(5, "管理", role="admin"))
    assert (await Log(owner).read()).authority is Audience.OWNER
    assert (await Log(owner, admin).read()).authority is Audience.GROUP_ADMIN
    assert (await Log(owner, card).read()).authority is Audience.EVERYONE
    assert (await Log(owner, at("别人", 22, 8, 2)).read()).authority is Audience.EVERYONE
