from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from operator import is_

import pytest
from msgspec.structs import replace

from bot.chat.context_builder import spent_by
from bot.chat.suspended import SuspendedTurn
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import MemberNumbered, Remembered, Round
from bot.core.segments import Mention
from bot.memory.personas import Cast, Persona
from bot.prompt.compose import Question, user_message
from bot.prompt.render import View
from frostagent.models.tokens import estimate_messages
from frostagent.types.messages import AssistantMessage, Message, Usage, UserMessage
from frostagent.types.runs import Asker, Spent, SuspendedRun
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience
from tests.bot.chat.test_recovery import turn
from tests.bot.chat.test_turn import OWNER, living, speak
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.fakes import (
    GROUP,
    calls,
    said,
    words,
)

MOMENT = re.compile(r"\n\[此刻\][^\n]*$")


def lasting(messages: Sequence[Message]) -> list[Message]:
    """The messages without what is so at the moment only."""
    return [replace(one, text=MOMENT.sub("", one.text)) if isinstance(one, UserMessage) else one for one in messages]


async def test_the_next_prompt_begins_as_the_one_before_and_has_what_was_said() -> None:
    async with living(calls(speak("one")), words("two"), words("three")) as house:
        await house.turns.answer(said("first"))
        await house.turns.answer(said("second"))
    before, after = house.model.requests[1].messages, house.model.requests[2].messages
    assert list(after[: len(before)]) == lasting(before)
    assert [m.text for m in after if isinstance(m, AssistantMessage)] == ["", "two"]


async def test_of_a_prompt_all_rounds_but_the_first_were_counted_when_they_were_kept() -> None:
    """With a summary, which is told in the first, and a persona's examples before it."""
    examples = (UserMessage("How are you?"), AssistantMessage("Fine."))
    rounds = tuple(Round(f"t{n}", (UserMessage(f"q{n}"), AssistantMessage(f"a{n}"))) for n in range(3))
    async with living(words("one"), words("two")) as house:
        house.personas.become(Cast(Persona("be kind", "Frost", examples=examples)))
        house.store.remembered[GROUP] = Remembered(rounds, summary="they met")
        await house.turns.answer(said("first"))
        await house.turns.answer(said("second"))
    for number, request in enumerate(house.model.requests):
        known, whole = request.counted, request.messages
        assert known.messages == whole[known.place : -1]
        assert len(known.messages) == 2 * (2 + number)
        assert known.tokens == pytest.approx(estimate_messages(known.messages))
        assert all(map(is_, known.messages, whole[known.place :]))  # the same, not equal ones


async def test_what_is_let_go_of_while_a_turn_is_prepared_is_read_anew_before_it_is_asked() -> None:
    """As when somebody is forgotten elsewhere: the prompt had neither history nor numbers."""
    rounds = (Round("t0", (UserMessage("小明#2: earlier"), AssistantMessage("indeed"))),)
    numbered = MemberNumbered(conversation=GROUP, number=2, user_id=777, name="小明")
    async with living(words("a")) as house:
        house.store.remembered[GROUP] = Remembered(
            rounds, (said("overheard", user=5, message_id="4"),), members=(numbered,)
        )
        look, looks = house.store.find, list[str]()

        async def find(where: Conversation, message_id: str) -> MessageReceived | None:
            looks.append(message_id)
            if len(looks) == 1:
                assert await house.history.reread()
            return await look(where, message_id)

        house.store.find = find  # type: ignore[method-assign,assignment]  # one look of a fake
        line = said((Quote("99"), Text("and")), message_id="6")
        await house.turns.answer(said("hi", message_id="7"), lines=(line,))
    (request,) = house.model.requests
    told = [one.text for one in request.messages[1:] if isinstance(one, UserMessage | AssistantMessage)]
    assert told[:2] == ["小明#2: earlier", "indeed"]
    assert told[2].count("overheard") == 1
    assert "#2: hi" in told[2]
    assert len(looks) > 1


async def test_what_is_so_at_the_moment_stands_last_and_is_not_kept() -> None:
    async with living(words("a")) as house:
        await house.turns.answer(replace(said("hi", role="owner"), group_name="登山"))
    asked = house.model.requests[0].messages[-1]
    assert asked.text.splitlines()[-1] == f"[此刻] {house_date()}，群「登山」，提问的是群主"
    assert "此刻" not in str(house.history.messages(GROUP))
    assert "此刻" not in str(house.store.of("turn_opened"))


def house_date() -> str:
    return View().date(said("").time)


async def test_what_was_overheard_stands_before_the_question_once() -> None:
    async with living(words("a"), words("b")) as house:
        house.history.overhear(said("我爱喝茶", user=5, name="小红", at=False, message_id="7"))
        await house.turns.answer(said("她爱喝什么？", message_id="8"))
        await house.turns.answer(said("真的？", message_id="9"))
    time = View().clock(said("").time)
    first, second = (lasting(request.messages)[-1] for request in house.model.requests)
    assert first == UserMessage(
        f"[{house_date()}]\n[群聊记录 {time}]\n小红#1: 我爱喝茶\n[提问 {time}]\n小明#2: 她爱喝什么？",
        sources=("7", "8"),
    )
    assert second == UserMessage(f"[提问 {time}]\n小明#2: 真的？", sources=("9",))


async def test_what_is_overheard_while_a_quote_is_looked_up_is_read_by_the_turn_that_opens_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with living(words("a")) as house:
        meanwhile = said("我也去", user=6, name="小刚", at=False, message_id="8")
        find = house.store.find

        async def slow(where: Conversation, message_id: str) -> MessageReceived | None:
            house.history.overhear(meanwhile)
            return await find(where, message_id)

        monkeypatch.setattr(house.store, "find", slow)
        quoting = (Quote("unknown"), Text("去香山吗"))
        house.history.overhear(said(quoting, user=5, name="小红", at=False, message_id="7"))
        await house.turns.answer(said("谁去？", message_id="9"))
    asked = lasting(house.model.requests[0].messages)[-1]
    assert isinstance(asked, UserMessage)
    assert asked.sources == ("7", "8", "9")
    assert house.history.unread(GROUP).take() == ()


async def test_the_prompt_goes_on_from_what_the_store_remembers() -> None:
    rounds = (Round("t0", (UserMessage("早先"), AssistantMessage("indeed"))),)
    overheard = (said((Quote("1"), Text("我爱喝茶")), user=5, name="小红", at=False, message_id="7"),)
    members = [MemberNumbered(conversation=GROUP, number=4, user_id=5, name="红"), NUMBERED]
    async with living(words("茶")) as house:
        house.store.remembered[GROUP] = Remembered(rounds, overheard, missed=40, members=tuple(members))
        house.history.know(said("你呢", user=6, name="小刚", message_id="1"))
        question = said((Mention(6, "x"), Text("她爱喝什么？")), message_id="8")
        await house.turns.answer(question)
        _, *rest = lasting(house.model.requests[0].messages)
    time = View().clock(said("").time)
    assert rest == [
        UserMessage("早先"),
        AssistantMessage("indeed"),
        UserMessage(
            f"[{house_date()}]\n[群聊记录 {time}]\n(另有 40 条)\n小红#4 ↩小刚#9「你呢」: 我爱喝茶\n"
            f"[提问 {time}]\n小明#10: @刚哥#9 她爱喝什么？",
            sources=("7", "8"),
            quotes=(("7", "1"),),
        ),
    ]
    assert house.store.of("member_numbered") == [
        replace(members[0], name="小红"),
        MemberNumbered(conversation=GROUP, number=10, user_id=777, name="小明"),
    ]


NUMBERED = MemberNumbered(conversation=GROUP, number=9, user_id=6, name="刚哥")


@each_case(("asked", "heading"), [("frostagent 你好", "提问"), ("你好, how are you?", "Asked")])
async def test_what_the_bot_is_called_says_nothing_of_the_language(asked: str, heading: str) -> None:
    async with living(words("a")) as house:
        house.personas.become(Cast(Persona("p", "FrostAgent", ("",))))
        await house.turns.answer(said(asked))
    assert f"[{heading} " in house.model.requests[0].messages[-1].text


async def test_a_conversation_in_english_is_told_in_english_unless_one_language_is_chosen() -> None:
    async with living(words("a"), words("b")) as house:
        await house.turns.answer(said("how are you today, my friend?"))
        house.personas.become(Cast(Persona("p", "n", language="zh")))
        await house.turns.answer(said("and what is for dinner tonight?"))
    english, chinese = house.model.requests
    assert "How this chat works" in english.messages[0].text
    assert "[Asked " in english.messages[-1].text
    assert "关于这个聊天" in chinese.messages[0].text
    assert "[提问 " in chinese.messages[-1].text


async def test_the_owner_has_no_authority_beside_the_words_of_whoever_was_quoted_among_others() -> None:
    async with living() as house:
        begin = house.context_builder.begin
        house.history.know(said("hm", user=5, message_id="1"))
        for segments in ((Text("hi"),), (Quote("1"), Text("hi"))):
            house.history.overhear(said(segments, user=OWNER, at=False))
            asker = (await begin(said("wipe it", user=OWNER), None)).run.asker
            assert asker.overheard is (Audience.OWNER if len(segments) == 1 else Audience.EVERYONE)


async def test_a_retry_whose_words_may_be_others_too_has_nobodys_authority() -> None:
    question = said("wipe it", user=OWNER)
    alone = replace(turn(question), user=user_message(Question(question), VIEW))
    crowded = replace(
        alone, user=UserMessage(f"[群聊记录]\n小红#5: hi\n{alone.user.text}", sources=("1", *alone.user.sources))
    )
    async with living() as house:
        begin = house.context_builder.begin
        askers = [(await begin(question, retry)).run.asker for retry in (alone, crowded)]
    assert [asker.authority for asker in askers] == [Audience.OWNER, Audience.EVERYONE]


@each_case("before", [Audience.OWNER, Audience.EVERYONE])
@each_case("meanwhile", ["主人#1: hi", "小红#2: hi"])
async def test_a_turn_that_goes_on_has_no_more_authority_than_it_had_or_is_left(
    before: Audience, meanwhile: str
) -> None:
    asker = Asker(str(OWNER), is_owner=True, authority=Audience.GROUP_ADMIN, overheard=before)
    waiting = SuspendedTurn(said("hi", user=OWNER), UserMessage("hi"), suspended(asker))
    async with living() as house:
        house.history.speakers.learn(GROUP, [])
        assert [house.history.speakers.number(GROUP, user) for user in (OWNER, 5)] == [1, 2]
        house.history.add_round(GROUP, "t0", UserMessage(f"[提问]\n{meanwhile}", sources=("1",)), [])
        asker = house.context_builder.go_on("t1", waiting).run.asker
    left = Audience.EVERYONE if "小红" in meanwhile else before
    assert (asker.authority, asker.overheard) == (Audience.GROUP_ADMIN, left)


def suspended(asker: Asker) -> SuspendedRun:
    return SuspendedRun(
        run_id="t1",
        conversation=str(GROUP),
        asker=asker,
        messages=(),
        message=AssistantMessage(),
        answers=(),
        usage=Usage(30, 12),
        steps=2,
    )


def test_what_a_waiting_turn_has_spent_is_what_was_written_down_or_can_be_told_from_it() -> None:
    run = suspended(Asker("777"))
    waiting = SuspendedTurn(said("hi"), UserMessage("hi"), run, ("one", ""))
    assert spent_by(waiting) == Spent(2, 42, 2)
    spent = Spent(7, 99.0, 4)
    assert spent_by(dataclasses.replace(waiting, run=replace(run, spent=spent))) == spent
