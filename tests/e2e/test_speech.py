"""What a run says, and what it may take, through the whole service: once, not too often, without the prompt's frame."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from frostagent.types.errors import ModelOverloaded
from frostagent.types.messages import AssistantMessage, Completion, ModelRequest, SystemMessage, ToolMessage, Usage
from tests.e2e.town import MEMBER, WIPE, Town, open_town
from tests.fakes import Step, calls, lasting, words


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with open_town(tmp_path) as opened:
        yield opened


def send(text: str) -> tuple[str, str]:
    return "send_message", json.dumps({"messages": [{"type": "plain", "text": text}]}, ensure_ascii=False)


CODER = "use_subagent", json.dumps({"subagent_name": "Coder", "content": "写个贪吃蛇"}, ensure_ascii=False)

MESSENGER = """
[[subagent]]
name = "Messenger"
description = "tells"
prompt = "You tell."
tools = ["send_message"]
"""


async def test_a_model_that_goes_round_says_it_once(town: Town) -> None:
    async with town.live(*[calls(send("北京今天晴，25 度"))] * 12, words("北京今天晴，25 度。")) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        assert stage.group() == ["北京今天晴，25 度"]


async def test_a_model_that_says_the_question_back_is_asked_once_more(town: Town) -> None:
    async with town.live(words("北京明天的天气怎么样"), words("晴，25 度")) as stage:
        await stage.say("@bot 北京明天的天气怎么样？", user=MEMBER)
        assert stage.group() == ["晴，25 度"]


async def test_thirty_calls_in_each_step_are_five_messages_and_each_text_once(town: Town) -> None:
    same = calls(*[send("北京今天晴，25 度")] * 30)
    other = calls(*(send(f"第 {number} 句") for number in range(30)))
    async with town.live(same, other, same, other, words("说完了")) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        *sent, last = stage.group()
        assert sent == ["北京今天晴，25 度", *(f"第 {number} 句" for number in range(4))]
        assert last.endswith("说完了")


async def test_a_setting_says_how_many_messages_and_0_is_no_limit(town: Town) -> None:
    steps = [calls(send(f"第 {number} 句")) for number in range(7)]
    async with town.live(*steps, words("说完了"), bot_max_sends=2) as stage:
        await stage.say("@bot 说", user=MEMBER)
        assert len(stage.group()) == 3
    async with town.live(*steps, words("说完了"), bot_max_sends=0) as stage:
        before = len(stage.group())
        await stage.say("@bot 说", user=MEMBER)
        assert len(stage.group()) == before + 8


async def test_subagents_speak_within_the_same_five_and_repeat_nothing(town: Town, tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text(MESSENGER, "utf-8")
    ask = calls(*[("use_subagent", '{"subagent_name": "Messenger", "content": "tell"}')] * 2)
    texts = ["一", "同一句话", "三", "四", "五", "六"]

    async def answer(request: ModelRequest) -> Completion:
        if sum(isinstance(message, ToolMessage) for message in request.messages):
            return words("told")
        return calls(*map(send, texts))

    async with town.live(calls(send("同一句话")), ask, *[answer] * 4, words("都说了"), subagents=file) as stage:
        await stage.say("@bot 说", user=MEMBER)
        *sent, last = stage.group()
        assert sorted(sent) == sorted(["同一句话", "一", "三", "四", "五"])
        assert last.endswith("都说了")


@pytest.mark.parametrize(("said", "final"), [("广州明天多云，18 到 25 度", "杭州明天多云，18 到 25 度")])
async def test_the_weather_of_two_cities_is_two_answers(town: Town, said: str, final: str) -> None:
    async with town.live(calls(send(said)), words(final)) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        assert stage.group()[0] == said
        assert stage.group()[1].endswith(final)


async def test_a_frame_said_back_is_not_sent_and_not_in_the_next_prompt_before_and_after_a_restart(
    town: Town,
) -> None:
    leak = "FrostAgent#9: 晴\n小明#1: 谢谢"
    steps: list[Step] = [calls(send("[引用 小明#1 的「天气」] 等一下")), words(leak), words("多云")]
    async with town.live(*steps) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        await stage.say("@bot 明天呢", user=MEMBER)
        assert [text.rpartition(" ")[2] or text for text in stage.group()] == ["等一下", "晴", "多云"]
        before = stage.model.requests[-1].messages
    async with town.live(words("雨")) as stage:
        await stage.say("@bot 后天呢", user=MEMBER)
        after = stage.model.requests[-1].messages
    assert [lasting(message.text) for message in after[: len(before)]] == [lasting(message.text) for message in before]
    for message in after:
        if isinstance(message, AssistantMessage):
            assert "小明" not in str(message)
            assert "引用" not in str(message)


async def test_after_messages_alone_the_next_prompt_has_no_words_of_ours_in_its_mouth(town: Town) -> None:
    async with town.live(calls(send("晴")), words(""), words("多云")) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        await stage.say("@bot 明天呢", user=MEMBER)
        shown = stage.model.requests[-1].messages
        assert [m.text for m in shown if isinstance(m, AssistantMessage)] == [""]
        assert isinstance(shown[-2], ToolMessage)


# --- one budget for the tree of a run ---------------------------------------------------------------


def is_coder(request: ModelRequest) -> bool:
    first = request.messages[0]
    return isinstance(first, SystemMessage) and first.text.startswith("You are Coder")


@pytest.mark.parametrize("limit", [1, 2, 5, 24])
async def test_sixteen_coders_in_each_step_stay_within_one_budget_and_the_asker_gets_words(
    town: Town, tmp_path: Path, limit: int
) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('[[subagent]]\nname = "Coder"\nmax_steps = 12\ntools = ["ring_bell"]\n', "utf-8")

    async def answer(request: ModelRequest) -> Completion:
        if not request.tools:
            return words("到此为止" if is_coder(request) else "最后的话")
        return calls(("ring_bell", '{"times": 1}')) if is_coder(request) else calls(*[CODER] * 16)

    # The script is used up exactly where the whole budget is.
    async with town.live(*[answer] * limit, subagents=file, bot_run_requests=limit) as stage:
        await stage.say("@bot 写", user=MEMBER)
        assert len(stage.model.requests) == limit
        assert stage.group()[-1].endswith("最后的话")
        assert not stage.model.requests[-1].tools
        results = [m.content for m in stage.model.requests[-1].messages if isinstance(m, ToolMessage)]
        if limit == 24:
            assert len(results) == 16
            assert sum("the budget of this question is used up" in result for result in results) > 0
            assert sum("stopped early: the budget of this question was used up" in result for result in results) > 0


async def test_attempts_that_failed_count_and_the_end_is_a_polite_line(town: Town) -> None:
    async with town.live(*[ModelOverloaded("busy", retry_after=0)] * 3, bot_run_requests=3) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        assert len(stage.model.requests) == 3
        assert "抱歉，这次没能回答上来" in stage.group()[-1]


async def test_tokens_are_a_budget_too(town: Town) -> None:
    dear = replace(calls(("send_message", "{}")), usage=Usage(9000, 10))
    async with town.live(dear, words("最后的话"), bot_run_tokens=10_000) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        assert [bool(request.tools) for request in stage.model.requests] == [True, False]
        assert stage.group()[-1].endswith("最后的话")
    async with town.live(calls(("send_message", "{}")), words("最后的话"), bot_run_tokens=10_000) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        assert [bool(request.tools) for request in stage.model.requests] == [True, True]
    async with town.live(words("最后的话"), bot_run_tokens=100) as stage:
        await stage.say("@bot 天气", user=MEMBER)
        assert [bool(request.tools) for request in stage.model.requests] == [False]


async def test_a_run_that_waited_for_somebodys_word_has_spent_what_it_spent(town: Town) -> None:
    """The budget goes on over a wait, also in another process."""
    async with town.live(calls(send("先说一句")), WIPE, bot_run_requests=3, bot_max_sends=1) as stage:
        await stage.ask()
    async with town.live(words("最后的话"), bot_run_requests=3, bot_max_sends=1) as stage:
        await stage.answer("同意 A1")
        assert [bool(request.tools) for request in stage.model.requests] == [False]
        assert stage.group()[-1].endswith("最后的话")
