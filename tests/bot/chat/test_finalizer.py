from __future__ import annotations

import asyncio
from typing import Any

from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.journal import TurnClosed
from bot.policy.wake import CALLED, Wake
from bot.prompt.wording_zh import ZH
from frostagent.types.errors import BotError, ModelBilling
from frostagent.types.messages import AssistantMessage, UserMessage
from frostagent.types.suspension import Allow
from tests.bot.chat.test_turn import living, mark_recalled, speak
from tests.bot.outbox.post import Looking
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import (
    GROUP,
    calls,
    said,
    until,
    words,
)


@each_case("final", ["北京今天晴，25 度。", "北京今天晴， 25度", ""])
async def test_what_was_said_by_the_tool_is_not_said_again(final: str) -> None:
    async with living(calls(speak("北京今天晴，25度！")), words(final)) as house:
        await house.turns.answer(said("北京天气"))
    assert house.transport.texts == ["北京今天晴，25度！"]
    assert any(isinstance(m, AssistantMessage) and m.tool_calls for m in house.history.messages(GROUP))


async def test_the_last_words_go_on_from_what_the_run_has_said() -> None:
    async with living(calls(speak("一二")), words("三四")) as house:
        house.outbox.screen = looking = Looking()
        await house.turns.answer(said("数"))
    assert house.transport.texts == ["一二", "三四"]
    assert [text for text in looking.earlier if text] == ["一二"]


async def test_a_failed_run_says_one_polite_line_with_its_trace_id_and_nothing_else() -> None:
    async with living(ModelBilling("Insufficient Balance sk-secret")) as house:
        await house.turns.answer(said("hi"))
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]
    kept = [message.text for message in house.history.messages(GROUP)[1:]]  # no words of the model's
    assert kept == [f"[系统记录]\n  {ZH.about.unanswered}"]


async def test_after_a_round_without_an_answer_the_model_reads_all_it_read_before_and_no_words_it_did_not_say() -> None:
    async with living(ModelBilling("no"), words("here"), words("there")) as house:
        for asked in ("where?", "and now?", "and then?"):
            await house.turns.answer(said(asked))
    first, second, third = (request.messages[1:] for request in house.model.requests)
    assert not any(isinstance(message, AssistantMessage) for message in second)
    note = UserMessage(f"[系统记录]\n  {ZH.about.unanswered}")
    stored = first[0].text.partition("\n[此刻]")[0]
    assert (second[0].text, second[1]) == (stored, note)
    assert third[:2] == second[:2]
    assert third[3] == AssistantMessage("here")


async def test_the_model_is_told_in_the_language_of_its_prompt_and_whoever_asks_in_his() -> None:
    async with living(words(""), ModelBilling("no"), ModelBilling("no"), words("晴")) as house:
        await house.turns.answer(said("今天北京天气怎么样？"))
        told = house.model.requests[1].messages[-1]
        assert isinstance(told, UserMessage)
        assert told.text.endswith(ZH.engine[0].empty)
        await house.turns.answer(said("What is the weather like?", user=888))
        house.transport.failures.append(ActionRefused("send_group_msg", retcode=1, wording="消息内容过长"))
        await house.turns.answer(said("What will it be like tomorrow?", user=888))
    assert house.transport.texts == [
        "抱歉，这次没能回答上来，请稍后再试。（编号 t1）",
        "Sorry, I could not answer that. Please try again later. (run t2)",
        "Sorry, QQ did not take so long an answer. Please ask for a shorter one.",
    ]


async def test_an_answer_that_is_being_said_when_its_question_is_recalled_stays_in_the_history() -> None:
    question = said("hi")
    async with living(words("the answer")) as house:
        house.transport.failures.append(NotConnected("away"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.answer(question))
            await until(lambda: house.store.of("send_changed"))
            mark_recalled(house, question)
            task.cancel()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.round[-1] == AssistantMessage("the answer")


async def test_a_failure_of_the_transport_never_gets_out_of_a_turn() -> None:
    failures: list[BotError] = [ActionRefused("send_group_msg", retcode=1, wording="no")]
    async with living(words("hello")) as house:
        house.transport.failures = [*failures, *failures]
        await house.turns.answer(said("hi"))
    assert house.transport.sent == []


SOMEBODY_LEFT = ActionRefused("send_group_msg", retcode=200, wording="Get Uid Error")
MUTED = ActionRefused("send_group_msg", retcode=200, wording='EventRet: {"result":120}')
LEFT = ActionRefused("send_group_msg", retcode=200, wording='EventRet: {"result":110}')
LATE = ActionUnanswered("no answer came")
LOST_LINE = "刚才的回答没能发出来，请再问一次。"
ENDS: dict[str, tuple[list[Any], list[BotError], Wake, str, list[str]]] = {
    "arrived": ([words("晴")], [], CALLED, "answered", ["晴"]),
    "refused": ([words("晴")], [SOMEBODY_LEFT], CALLED, "not_delivered", [LOST_LINE]),
    "refused, and the line too": ([words("晴")], [SOMEBODY_LEFT] * 2, CALLED, "not_delivered", []),
    "muted: nothing else can be said": ([words("晴")], [MUTED], CALLED, "not_delivered", []),
    "it left the group: nothing else either": ([words("晴")], [LEFT], CALLED, "not_delivered", []),
    "no one waits for it": ([words("晴")], [SOMEBODY_LEFT], Wake("chance"), "not_delivered", []),
    "never confirmed": ([words("晴")], [LATE], CALLED, "unconfirmed", []),
    "said by the tool": ([calls(speak("北京晴")), words("北京晴")], [], CALLED, "answered", ["北京晴"]),
    "said by the tool, never confirmed": (
        [calls(speak("北京晴")), words("北京晴")],
        [LATE],
        CALLED,
        "unconfirmed",
        [],
    ),
    "said by the tool in vain, then at the end": (
        [calls(speak("北京晴")), words("北京今天晴")],
        [SOMEBODY_LEFT],
        CALLED,
        "answered",
        ["北京今天晴"],
    ),
    "said by the tool in vain, then silence": (
        [calls(speak("北京晴")), words("")],
        [SOMEBODY_LEFT],
        Wake("name", weak=True),
        "not_delivered",
        [LOST_LINE],
    ),
    "silence": ([words("")], [], Wake("name", weak=True), "silent", []),
}


async def test_what_did_not_arrive_is_no_answered_turn() -> None:
    wrong = {}
    for name, (steps, failures, wake, outcome, texts) in ENDS.items():
        async with living(*steps) as house:
            house.transport.failures = list(failures)
            await house.turns.answer(said("天气怎么样"), wake=wake)
            (closed,) = house.store.of("turn_closed")
            assert isinstance(closed, TurnClosed)
            got = closed.outcome, house.transport.texts
        if got != (outcome, texts):
            wrong[name] = got
    assert wrong == {}


async def test_owners_hear_the_servers_words_and_the_model_that_nobody_read_its_own() -> None:
    async with living(words("晴"), words("我再说一遍")) as house:
        house.transport.failures = [SOMEBODY_LEFT]
        await house.turns.answer(said("天气怎么样"))
        await house.turns.answer(said("啊？"))
        told = [message.text for message in house.model.requests[1].messages if "没有送达" in message.text]
    assert house.lost == ["Get Uid Error"]
    assert len(told) == 1


async def test_of_a_place_that_rests_owners_hear_nothing_else_however_its_answer_was_refused() -> None:
    lost = []
    for *steps, wake in ((words("晴"), CALLED), (calls(speak("晴")), words(""), Wake("name", weak=True))):
        async with living(*steps) as house:
            house.transport.failures = [LEFT]
            await house.turns.answer(said("天气怎么样"), wake=wake)
            lost.append((house.lost, house.outbox.unreachable.holds_in(GROUP)))
    assert lost == [([], True)] * 2


async def test_a_turn_that_ends_takes_its_requests_with_it() -> None:
    async with living(calls(("ask_first", "")), words("done")) as house:
        house.toolset.register(ask_first)
        await house.turns.answer(said("please"))
        ((turn_id, run),) = house.suspensions.waiting().items()
        await house.turns.resume(turn_id, {run.pending[0].call.id: Allow()})
        assert house.asked[-1] == "A1 不用管了：提问已经撤回或结束，没有做。"
