from __future__ import annotations

import re
import time
from typing import Any

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.memories import Kind, MemoriesForgotten, MemoriesUsed, MemoryKept, StoredFact, Visibility
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from frostagent.types.errors import InvalidArguments, ToolDenied
from frostagent.types.runs import Asker
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext
from frostagent.types.traits import Audience
from tests.bot.memory.facts import KeptFacts
from tests.cases import each_case
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

    async def write(self, text: str, *, about: str = "me", by: ToolContext | None = None, **more: Any) -> str:
        more = {"kind": Kind.OTHER, "told": Visibility.HERE} | more
        return (await self.book.write(by or asks(MING), text, about=about, **more)).text

    async def recalled(self, where: Conversation, user: int, question: str) -> tuple[str, ...]:
        return (await self.book.recalled(where, user, lambda: question)).lines


def asks(user: int, *, where: Conversation = GROUP, role: str = "member") -> ToolContext:
    asker = Asker(str(user), role=role, is_owner=user == OWNER)
    return replace(tool_context(), conversation=str(where), asker=asker)


async def test_what_somebody_tells_of_himself_is_known_when_a_question_is_about_it() -> None:
    room = Room()
    said = await room.write("对花生\n过敏")
    assert re.fullmatch(r"remembered: 小明#1: 对花生 过敏 \[\w+\]", said)
    assert await room.recalled(GROUP, HONG, "谁不能吃花生？") == ("小明#1: 对花生 过敏",)
    assert (await room.book.recalled(GROUP, HONG, lambda: "谁不能吃花生？")).authors == {MING}
    assert await room.recalled(GROUP, HONG, "今天吃什么") == ()
    used = room.store.entries[-1]
    assert isinstance(used, MemoriesUsed)
    assert used.expires == room.clock.now() + 180 * 86_400


async def test_where_nothing_is_remembered_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    await room.write("对花生过敏")

    async def nothing(*_: object) -> bool:
        return False

    monkeypatch.setattr(room.facts, "has_any", nothing)
    assert await room.recalled(GROUP, HONG, "谁不能吃花生？") == ()


async def test_what_nobody_wants_any_more_is_not_kept() -> None:
    room = Room()
    fact = StoredFact(memory_id="", scope=GROUP, subject=MING, author=MING, text="对花生过敏")
    await room.book.keep(fact, wanted=lambda: False)
    assert await room.facts.listed() == ()
    await room.book.keep(fact)
    assert [one.text for one in await room.facts.listed()] == ["对花生过敏"]


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
    forgotten = await room.book.forget(asks(HONG), fact.memory_id)
    assert room.store.entries[-1] == MemoriesForgotten((fact.memory_id,), ((GROUP, OWNER),))
    assert (forgotten.text, forgotten.sources) == (f"forgotten: [{fact.memory_id}]", ())  # without its words
    assert await room.facts.listed() == ()


async def test_what_was_forgotten_is_told_no_more_though_the_tables_have_it_still() -> None:
    room = Room()
    await room.write("对花生过敏")
    (fact,) = await room.facts.listed()
    await room.book.forget(asks(MING), fact.memory_id)
    room.store.entries = [one for one in room.store.entries if not isinstance(one, MemoriesForgotten)]
    assert await room.facts.listed() == (fact,)
    assert await room.recalled(GROUP, MING, "花生能吃吗") == ()
    assert "nothing" in (await room.book.search(asks(MING), "花生")).text


async def test_facts_about_the_group_are_anybodys_to_tell_and_its_admins_to_forget() -> None:
    room = Room()
    await room.write("每周六晚上打副本", about="here")
    (fact,) = await room.facts.listed()
    assert fact.subject == 0
    with pytest.raises(ToolDenied):
        await room.book.forget(asks(HONG), fact.memory_id)
    await room.book.forget(asks(HONG, role="admin"), f"[{fact.memory_id}]")
    assert await room.facts.listed() == ()


async def test_nobody_rewrites_what_another_told_of_the_group_or_an_owner_told_everywhere() -> None:
    room = Room()
    await room.write("每周六晚上打副本", about="here", by=asks(OWNER))
    await room.write("每周五晚上打副本", about="here", by=asks(HONG))
    await room.write("喜欢住在杭州西湖边", about="#1", by=asks(OWNER), told=Visibility.EVERYWHERE)
    await room.write("喜欢住在杭州西湖边上")
    texts = {(one.text, one.visibility) for one in await room.facts.listed()}
    assert {("每周六晚上打副本", Visibility.HERE), ("喜欢住在杭州西湖边", Visibility.EVERYWHERE)} < texts
    assert len(texts) == 4


@each_case(
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
        await room.write("群规在公告里", about="here", told=Visibility.EVERYWHERE)
    await room.write("群规在公告里", about="here", by=asks(OWNER), told=Visibility.EVERYWHERE)
    assert await room.recalled(ELSEWHERE, HONG, "群规在哪") == ("?#3 说: 群规在公告里",)


async def test_an_owner_who_passes_on_or_heard_others_has_nothing_known_everywhere_by_himself() -> None:
    room, own = Room(), asks(OWNER)
    passes_on = replace(own, asker=replace(own.asker, authority=Audience.EVERYONE))
    heard = replace(own, asker=replace(own.asker, overheard=Audience.EVERYONE))
    for about in ("here", "#1"):
        with pytest.raises(ToolDenied):
            await room.write("群规在公告里", about=about, by=passes_on, told=Visibility.EVERYWHERE)
    with pytest.raises(ToolDenied):
        await room.write("喜欢小红", about="#1", by=passes_on)
    with pytest.raises(Suspend, match="到处都记住：群规在公告里"):
        await room.write("群规在公告里", about="here", by=heard, told=Visibility.EVERYWHERE)
    assert not any(isinstance(entry, MemoryKept) for entry in room.store.entries)
    await room.write("群规在公告里", about="here", by=replace(heard, allowed=True), told=Visibility.EVERYWHERE)


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
        assert (await room.book.search(asks(user), "喜欢小红")).text == "nothing is remembered about that"
        assert (await room.book.listed(asks(user), about="#1")).text == "nothing is remembered about that"
    for fact in await room.facts.listed():
        with pytest.raises(InvalidArguments, match="there is no fact"):
            await room.book.forget(asks(MING), fact.memory_id)
    assert await room.recalled(PRIVATE, MING, "小红") == ("?#1: 喜欢小红",)


async def test_what_somebody_tells_of_himself_follows_him_at_his_word_and_not_the_other_way() -> None:
    room = Room()
    await room.write("对花生过敏", told=Visibility.PERSON)
    assert await room.recalled(ELSEWHERE, MING, "花生能吃吗") == ("小明#1: 对花生过敏",)
    assert await room.recalled(ELSEWHERE, HONG, "花生能吃吗") == ()
    assert "told person" in (await room.book.listed(asks(MING, where=ELSEWHERE), about="me")).text
    await room.write("对花生过敏")
    assert await room.recalled(ELSEWHERE, MING, "花生能吃吗") == ()
    await room.write("对花生过敏", told=Visibility.PERSON)
    ming = StoredFact(memory_id="", scope=GROUP, subject=MING, author=MING, text="对花生过敏。")
    await room.book.keep(ming, picked=True)
    assert [(one.text, one.visibility) for one in await room.facts.listed()] == [("对花生过敏。", Visibility.PERSON)]


async def test_what_an_owner_says_of_somebody_does_not_end_what_follows_him_at_his_own_word() -> None:
    room = Room()
    await room.write("对花生过敏", told=Visibility.PERSON)
    await room.write("对花生过敏", about="#1", by=asks(OWNER))
    assert {(one.author, one.visibility) for one in await room.facts.listed()} == {
        (MING, Visibility.PERSON),
        (OWNER, Visibility.HERE),
    }


async def test_nothing_follows_anybody_that_is_about_another_or_that_a_tool_has_brought() -> None:
    room = Room()
    read = asks(MING)
    read = replace(read, asker=replace(read.asker, read=("fetch",)))
    for by, about in ((asks(OWNER), "#2"), (asks(MING), "here"), (read, "me")):
        with pytest.raises(ToolDenied, match="about himself"):
            await room.write("喜欢猫", about=about, by=by, told=Visibility.PERSON)


async def test_what_is_told_in_private_follows_nobody_into_a_group() -> None:
    room = Room()
    await room.write("喜欢小红", by=asks(MING, where=PRIVATE), told=Visibility.PERSON)
    assert await room.recalled(GROUP, MING, "谁喜欢小红") == ()
    assert "nothing" in (await room.book.listed(asks(MING), about="me")).text


async def test_who_said_it_is_told_with_what_is_not_about_himself() -> None:
    room = Room()
    await room.write("每周六晚上打副本", about="here", by=asks(HONG))
    await room.write("喜欢副本里的音乐", about="#1", by=asks(OWNER))
    assert set(await room.recalled(GROUP, MING, "副本")) == {
        "小红#2 说: 每周六晚上打副本",
        "小明#1 (?#3 说): 喜欢副本里的音乐",
    }


async def test_a_plan_is_told_with_the_day_it_was_told_last() -> None:
    room = Room()
    await room.write("下周三去北京", kind=Kind.PLAN)
    room.clock.time += 3 * 86_400
    await room.write("下周三去北京", kind=Kind.PLAN)
    day = time.strftime("%Y-%m-%d", time.localtime(room.clock.now()))
    assert await room.recalled(GROUP, MING, "谁去北京") == (f"小明#1: 下周三去北京 ({day})",)
    assert "(plan, said" in (await room.book.search(asks(MING), "北京")).text


async def test_a_fact_is_found_by_its_kind() -> None:
    room = Room()
    await room.write("每天一杯冰美式", kind=Kind.TASTE)
    await room.write("在杭州读书", kind=Kind.LIFE)
    assert await room.recalled(GROUP, HONG, "小明喜欢什么") == ("小明#1: 每天一杯冰美式",)


async def test_a_fact_names_the_messages_it_was_said_in() -> None:
    room = Room()
    await room.write("对花生过敏", by=replace(asks(MING), asked=("5", "6")))
    assert [one.sources for one in await room.facts.listed()] == [("5", "6")]


async def test_what_is_found_names_the_messages_of_here_that_it_was_said_in() -> None:
    room = Room()
    await room.write("对花生过敏", by=replace(asks(MING), asked=("5", "6")), told=Visibility.PERSON)
    await room.write("爱吃花生糖", by=replace(asks(MING), asked=("6", "7")))
    for found in (await room.book.search(asks(MING), "花生"), await room.book.listed(asks(MING), about="me")):
        assert sorted(found.sources) == ["5", "6", "7"]
    elsewhere = await room.book.search(asks(MING, where=ELSEWHERE), "花生")
    assert "对花生过敏" in elsewhere.text
    assert elsewhere.sources == ()  # their ids are others' there


async def test_what_is_found_of_elsewhere_is_not_kept_but_for_its_id_and_whom_it_is_about() -> None:
    room = Room()
    await room.write("对花生过敏", told=Visibility.PERSON)
    await room.write("花生酱也爱吃", by=asks(MING, where=ELSEWHERE))
    here, there = await room.facts.listed(scope=GROUP), await room.facts.listed(scope=ELSEWHERE)
    for found in (
        await room.book.search(asks(MING, where=ELSEWHERE), "花生"),
        await room.book.listed(asks(MING, where=ELSEWHERE), about="me"),
    ):
        assert "小明#1: 对花生过敏" in found.text
        assert "对花生过敏" not in found.kept
        assert f"[{here[0].memory_id}] 小明#1: (a fact from elsewhere" in found.kept
        assert f"[{there[0].memory_id}] 小明#1: 花生酱也爱吃" in found.kept
    for found in (await room.book.search(asks(MING), "花生"), await room.book.search(asks(MING), "橘猫")):
        assert found.kept == ""
