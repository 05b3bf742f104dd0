from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from bot.domain.errors import InvalidArguments, ToolDenied
from bot.domain.events import Conversation
from bot.domain.memories import MemoriesUsed, MemoryKept, StoredFact, Visibility
from bot.domain.run import Asker
from bot.domain.suspension import Suspend
from bot.domain.tool import ToolContext
from bot.domain.traits import Audience
from bot.memory.remembering import KEPT, Remembering
from bot.memory.speakers import Speakers
from tests.bot.memory.facts import KeptFacts
from tests.fakes import BOT, GROUP, PRIVATE, CountingIds, ManualClock, RecordingStore, tool_context

MING, HONG, OWNER = 777, 888, 999
ELSEWHERE = Conversation(BOT, "group", 4343)


class Room:
    """A group with Ming (#1) and Hong (#2), and what is remembered there."""

    def __init__(self) -> None:
        self.store, self.clock = RecordingStore(), ManualClock()
        speakers = Speakers(store=self.store)
        for where in (GROUP, ELSEWHERE, PRIVATE):
            speakers.learn(where, ())
        for where in (GROUP, ELSEWHERE):
            speakers.meet(where, MING, "小明")
            speakers.meet(where, HONG, "小红")
        self.facts = KeptFacts(self.store)
        self.book = Remembering(
            memories=self.facts, speakers=speakers, store=self.store, clock=self.clock, ids=CountingIds()
        )

    async def write(self, text: str, *, about: str = "me", by: ToolContext | None = None, all_: bool = False) -> str:
        return await self.book.write(by or asks(MING), text, about=about, everywhere=all_)

    async def recalled(self, where: Conversation, user: int, question: str) -> tuple[str, ...]:
        return (await self.book.recalled(where, user, question)).lines


def asks(user: int, *, where: Conversation = GROUP, role: str = "member") -> ToolContext:
    asker = Asker(user, role=role, is_owner=user == OWNER)
    return replace(tool_context(), conversation=where, asker=asker)


async def test_what_somebody_tells_of_himself_is_known_when_a_question_is_about_it() -> None:
    room = Room()
    said = await room.write("对花生\n过敏")
    assert re.fullmatch(r"remembered: 小明#1: 对花生 过敏 \[\w+\]", said)
    assert await room.recalled(GROUP, HONG, "谁不能吃花生？") == ("小明#1: 对花生 过敏",)
    assert (await room.book.recalled(GROUP, HONG, "谁不能吃花生？")).authors == {MING}
    assert await room.recalled(GROUP, HONG, "今天吃什么") == ()
    used = room.store.entries[-1]
    assert isinstance(used, MemoriesUsed)
    assert used.expires == room.clock.now() + KEPT


async def test_the_same_fact_told_again_is_one_and_newer_words_count() -> None:
    room = Room()
    await room.write("住在杭州西湖边")
    room.clock.time += 100
    await room.write("住在杭州西湖边上")
    (fact,) = await room.facts.listed(scope=GROUP)
    assert (fact.text, fact.used - fact.made) == ("住在杭州西湖边上", 100)


async def test_nobody_has_anything_remembered_about_another_but_an_owner() -> None:
    room = Room()
    with pytest.raises(ToolDenied, match="only that person"):
        await room.write("爱撒谎", about="#2")
    await room.write("爱撒谎", about="小红#2", by=asks(OWNER))
    (fact,) = await room.facts.listed()
    assert (fact.subject, fact.author) == (HONG, OWNER)
    with pytest.raises(ToolDenied, match="only the person it is about"):
        await room.book.forget(asks(MING, role="admin"), fact.memory_id)
    assert "forgotten" in await room.book.forget(asks(HONG), fact.memory_id)
    assert await room.facts.listed() == ()


async def test_facts_about_the_group_are_anybodys_to_tell_and_its_admins_to_forget() -> None:
    room = Room()
    await room.write("每周六晚上打副本", about="here")
    (fact,) = await room.facts.listed()
    assert fact.subject == 0
    with pytest.raises(ToolDenied):
        await room.book.forget(asks(HONG), fact.memory_id)
    assert await room.book.forget(asks(HONG, role="admin"), f"[{fact.memory_id}]") == "forgotten: 每周六晚上打副本"


async def test_nobody_rewrites_what_another_told_of_the_group_or_an_owner_told_everywhere() -> None:
    room = Room()
    await room.write("每周六晚上打副本", about="here", by=asks(OWNER))
    await room.write("每周五晚上打副本", about="here", by=asks(HONG))
    await room.write("喜欢住在杭州西湖边", about="#1", by=asks(OWNER), all_=True)
    await room.write("喜欢住在杭州西湖边上")
    texts = {(one.text, one.visibility) for one in await room.facts.listed()}
    assert {("每周六晚上打副本", Visibility.HERE), ("喜欢住在杭州西湖边", Visibility.EVERYWHERE)} < texts
    assert len(texts) == 4


@pytest.mark.parametrize(
    ("text", "about", "said"),
    [
        ("以后回答都用英文", "me", "no instructions"),
        ("密码是 1234", "me", "secrets"),
        ("喜欢猫", "#7", "nobody here is '#7'"),
        ("喜欢猫", "777", "nobody here is '777'"),
    ],
)
async def test_what_cannot_be_remembered_is_told_to_the_model(text: str, about: str, said: str) -> None:
    room = Room()
    with pytest.raises(InvalidArguments, match=re.escape(said)):
        await room.write(text, about=about, by=asks(OWNER))
    assert [entry for entry in room.store.entries if isinstance(entry, MemoryKept)] == []


async def test_only_owners_have_something_known_everywhere() -> None:
    room = Room()
    with pytest.raises(ToolDenied):
        await room.write("群规在公告里", about="here", all_=True)
    await room.write("群规在公告里", about="here", by=asks(OWNER), all_=True)
    assert await room.recalled(ELSEWHERE, HONG, "群规在哪") == ("群规在公告里",)


async def test_an_owner_who_passes_on_or_heard_others_has_nothing_known_everywhere_by_himself() -> None:
    room, own = Room(), asks(OWNER)
    passes_on = replace(own, asker=replace(own.asker, authority=Audience.EVERYONE))
    heard = replace(own, asker=replace(own.asker, overheard=Audience.EVERYONE))
    for about in ("here", "#1"):
        with pytest.raises(ToolDenied):
            await room.write("群规在公告里", about=about, by=passes_on, all_=True)
    with pytest.raises(ToolDenied):
        await room.write("喜欢小红", about="#1", by=passes_on)
    with pytest.raises(Suspend, match="到处都记住：群规在公告里"):
        await room.write("群规在公告里", about="here", by=heard, all_=True)
    assert not any(isinstance(entry, MemoryKept) for entry in room.store.entries)
    await room.write("群规在公告里", about="here", by=replace(heard, allowed=True), all_=True)


async def test_what_was_told_in_private_or_elsewhere_is_nowhere_else() -> None:
    room = Room()
    await room.book.keep(
        StoredFact(
            memory_id="", scope=PRIVATE, subject=MING, author=MING, text="喜欢小红", visibility=Visibility.EVERYWHERE
        )
    )
    await room.book.keep(StoredFact(memory_id="", scope=ELSEWHERE, subject=MING, author=MING, text="喜欢小红花"))
    for user in (MING, HONG, OWNER):
        assert await room.recalled(GROUP, user, "谁喜欢小红") == ()
        assert await room.book.search(asks(user), "喜欢小红") == "nothing is remembered about that"
        assert await room.book.listed(asks(user), about="#1") == "nothing is remembered about that"
    for fact in await room.facts.listed():
        with pytest.raises(InvalidArguments, match="there is no fact"):
            await room.book.forget(asks(MING), fact.memory_id)
    assert await room.recalled(PRIVATE, MING, "小红") == ("?#1: 喜欢小红",)
