"""A subagent through the whole service: the file in the chat, what it costs, the wait, and what it may not do."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import SecretStr

from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World, demo_world
from bot.app import open_service
from config.settings import Settings
from frostagent.clock import SystemClock
from frostagent.engine.subagents import PATIENCE
from frostagent.models.openai.client import OpenAIModel
from frostagent.types.messages import Completion, ModelRequest, SystemMessage
from tests.e2e.town import GROUP, MEMBER, OWNER, Town, open_town
from tests.fakes import ScriptedModel, calls, words

T = TypeVar("T")

LONG = "print('贪吃蛇')\n" * 150
SNAKE = f"写好了：\n\n```python snake.py\n{LONG}```\n\n运行即可。"
ASK = calls(("use_subagent", json.dumps({"subagent_name": "Coder", "content": "写个贪吃蛇"}, ensure_ascii=False)))

AGENTS = """
[[subagent]]
name = "Wiper"
description = "wipes"
prompt = "You wipe."
tools = ["wipe_disk", "ring_bell"]
"""


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with open_town(tmp_path) as opened:
        yield opened


def files(stage: Any) -> list[Mapping[str, Any]]:
    return [
        segment["data"] for message in stage.simulator.sent for segment in message.segments if segment["type"] == "file"
    ]


@pytest.mark.parametrize("where", ["group", "private"])
async def test_long_code_arrives_as_a_file_and_the_answer_says_the_rest(town: Town, where: str) -> None:
    async with town.live(ASK, words(SNAKE), words("贪吃蛇写好了，直接运行。")) as stage:
        if where == "group":
            await stage.say("@bot 写个贪吃蛇", user=MEMBER)
        else:
            await stage.answer("写个贪吃蛇", user=OWNER)
        (file,) = files(stage)
        assert file["name"] == "snake.py"
        assert base64.b64decode(file["file"].removeprefix("base64://")).decode() == LONG
        assert stage.told.startswith("(Sent to the chat as a file: snake.py (150 lines).")
        said = stage.group() if where == "group" else stage.private()
        assert said[-1].endswith("贪吃蛇写好了，直接运行。")
        assert len(said) == 2


async def test_what_it_takes_is_the_turns_and_its_run_names_that(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bot.runtime.observers")
    async with town.live(ASK, words("好了"), words("给你")) as stage:
        await stage.say("@bot 写个贪吃蛇", user=MEMBER)
        outer = caplog.messages[0].split()[1]
        inner = f"run {outer}/1/c0"
        assert caplog.messages[1] == f"{inner} started inside of run {outer}"
        assert caplog.messages[2].startswith(f"{inner} answered")
        assert caplog.messages[2].endswith("1 steps, 10 + 5 tokens")
        assert caplog.messages[3].endswith("2 steps, 30 + 15 tokens")
        coder = stage.model.requests[1]
        assert isinstance(coder.messages[0], SystemMessage)
        assert coder.messages[0].text.startswith("You are Coder")
        assert coder.tools == ()


async def test_a_coder_that_gives_nothing_is_told_and_the_question_is_answered(town: Town) -> None:
    async with town.live(ASK, *[words("")] * 3, words("抱歉，没写出来。")) as stage:
        await stage.say("@bot 写个贪吃蛇", user=MEMBER)
        assert "Coder gave an empty answer" in stage.told
        assert stage.group()[-1].endswith("抱歉，没写出来。")


async def test_whoever_waits_long_is_told_and_still_gets_the_answer(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, sleep = asyncio.Event(), SystemClock.sleep

    async def shorter(clock: SystemClock, seconds: float) -> None:
        if seconds == PATIENCE:
            await waiting.wait()
        else:
            await sleep(clock, seconds)

    async def slowly(request: ModelRequest) -> Completion:
        waiting.set()
        await stage.until(lambda: len(stage.group()) == 1)
        return words("print(1)")

    monkeypatch.setattr(SystemClock, "sleep", shorter)
    async with town.live(ASK, slowly, words("print(1) 就行")) as stage:
        await stage.say("@bot 打印 1", user=MEMBER)
        assert stage.group()[0] == "Coder 还在处理，请再稍等一会儿～"
        assert stage.group()[1].endswith("print(1) 就行")


async def test_it_has_the_askers_rights_and_can_wait_for_no_owner(town: Town, tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text(AGENTS, "utf-8")
    ask = calls(("use_subagent", '{"subagent_name": "Wiper", "content": "wipe"}'))
    tries = calls(("wipe_disk", '{"disk": "sda"}'), ("ring_bell", '{"times": 1}'), ("use_subagent", "{}"))
    async with town.live(ask, tries, words("不行"), words("不行"), subagents=file) as stage:
        await stage.say("@bot wipe it", user=MEMBER)
        results = [message for message in stage.model.requests[2].messages if message.type == "tool"]
        assert stage.done == []
        assert stage.private() == []
    codes = [result.content.rpartition("[")[2] for result in results]
    assert codes == ["TOOL_DENIED]", "TOOL_DENIED]", "TOOL_NOT_FOUND]"]


async def test_two_accounts_each_get_their_file_in_their_own_chat(tmp_path: Path) -> None:
    settings = Settings(
        llm_base_url="http://127.0.0.1:9/v1",
        llm_model="scripted",
        onebot_host="127.0.0.1",
        onebot_port=0,
        onebot_access_token=SecretStr("correct-horse"),
        store_url=SecretStr(f"sqlite:///{tmp_path}/bot.db"),
        web_port=0,
    )
    other = World(self_id=20002, nickname="bot")
    other.add_group(GROUP, "the same number", [Person(555, "小红")])
    with ScriptedModel(*[ASK, words(SNAKE), words("好了")] * 2) as model:

        def wrap(port: T, /) -> T:
            scripted: Any = model
            return scripted if isinstance(port, OpenAIModel) else port

        async with (
            open_service(settings, wrap=wrap) as service,
            Simulator(demo_world(), reconnect=0.05) as first,
            Simulator(other, reconnect=0.05) as second,
        ):
            for simulator, user in ((first, 20001), (second, 555)):
                simulator.dial(f"ws://127.0.0.1:{service.port}/", token="correct-horse")
                await simulator.wait_connected()
                await simulator.say("@bot 写个贪吃蛇", user_id=user, group_id=GROUP)
                file, answer = await simulator.wait_sent(2)
                assert file.segments[0]["data"]["name"] == "snake.py"
                assert answer.text.endswith("好了")
            await service.wait_idle()
            assert (len(first.sent), len(second.sent)) == (2, 2)
