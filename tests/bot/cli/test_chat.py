from __future__ import annotations

import asyncio
import io
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

import aiohttp
import pytest
from PIL import Image
from pydantic import SecretStr

from adapters.offline.server import OfflineModel
from adapters.simulator.world import demo_world
from bot.cli.chat import chat_settings, converse, open_chat, read_lines, speaking_as
from bot.cli.control_commands import answer_to
from bot.core.trial_group import TrialOptions
from bot.trial.simulated_trial import SimulatedTrial
from config.settings import Settings
from config.values import Owners
from frostagent.types.errors import ConfigError
from tests.cases import each_case
from tests.fakes import until


def link() -> str:
    """The link that `frostagent console` prints."""
    with answer_to("console", or_chat=True) as answered:
        return str(answered.answer["link"])


async def chat(text: str) -> list[str]:
    said: list[str] = []
    await converse(Settings(bot_debounce=0.0), io.StringIO(text), said.append, lambda _: None)
    return said


async def test_each_line_is_a_message_and_only_what_is_addressed_is_answered() -> None:
    said = await chat("@bot hello\nuser3: nothing for you\n\nuser2: @bot thanks\n")
    assert len(said) == 2
    assert all(line.startswith("bot: ") for line in said)


async def test_the_answers_to_one_line_stand_before_those_to_the_next() -> None:
    said = await chat("@bot send me a message with a picture\n@bot hello")
    assert "[image" in said[0]
    assert "demo model" in said[-1]
    assert len(said) == 3


async def test_a_command_in_the_last_line_is_answered() -> None:
    (answer,) = await chat("@bot /help")
    assert "/stop stop what I am doing" in answer


async def test_a_reminder_comes_when_the_time_is_put_forward() -> None:
    said = await chat("@bot 一小时后提醒我喝水\n!time +59m\n@bot /提醒\n!time +1m\n@bot cancel J1\n")
    assert "已设好 J1" in said[0]
    assert "还有 1 分钟" in said[1]
    assert said[2].endswith("[@user1] ⏰ 提醒：喝水")
    assert len(said) == 4


async def test_a_persona_is_tried_by_its_own_names_and_those_of_groups_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "fox.md"
    file.write_text('+++\nname = "小霜"\n+++\n你是一只狐狸。', "utf-8")
    usual = Settings(bot_debounce=0.0, bot_name="Frost", system_prompt="x", personas_dir=tmp_path / "gone")
    for line, answers in (("Frost, hello", 0), ("小霜，你好", 1)):
        said: list[str] = []
        await converse(speaking_as(usual, file), io.StringIO(line), said.append, lambda _: None)
        assert len(said) == answers
    file.write_text("+++\nname = \n+++\nx", "utf-8")
    with pytest.raises(ConfigError, match=r"fox.md line 2"):
        speaking_as(usual, file)


async def test_who_types_is_heard_whatever_is_set_for_the_groups_people_and_hours_of_qq() -> None:
    told: list[str] = []
    said: list[str] = []
    somebody = frozenset({98765})
    settings = Settings(
        bot_debounce=0.0,
        bot_owners=Owners(somebody),
        bot_groups=somebody,
        bot_users=somebody,
        bot_block=frozenset({20001}),
        bot_quiet="00:00-23:59",
        bot_quiet_mode="all",
        bot_send_rate=0.0,  # equal words need not stand apart
    )
    await converse(settings, io.StringIO("@bot hello\n" * 8), said.append, told.append)
    assert len(said) == 8  # nor is who types fast taken for a robot
    assert [line for line in told if "4242" in line] == []  # nobody is asked about the group


async def test_the_drafts_that_the_bot_keeps_in_its_media_folder_are_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / ".drafts" / "D7"
    kept.parent.mkdir()
    kept.write_bytes(b"a picture")
    said: list[str] = []
    async with OfflineModel() as model:
        real = Settings(llm_base_url=model.base_url, llm_model="demo", media_dir=tmp_path, bot_debounce=0.0)
        await converse(real, io.StringIO("@bot hello"), said.append, lambda _: None)
        assert model.requests
    assert len(said) == 1
    assert kept.read_bytes() == b"a picture"


async def test_of_the_owners_those_stay_who_are_in_the_simulated_group() -> None:
    people = frozenset({20001, 20002})
    owners = chat_settings(Settings(bot_owners=Owners((20001, 98765), (20001, 98765))), "x", people)["bot_owners"]
    assert isinstance(owners, Owners)
    assert [set(owners), set(owners.quiet)] == [{20001}, {20001}]


async def test_a_bot_beside_the_chat_has_its_ports_and_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        token = SecretStr("0123456789abcdef0123456789abcdef")
        beside = Settings(web_port=port, console_port=port, console_token=token, console_origin="https://bot.example")
        said: list[str] = []
        await converse(beside, io.StringIO("@bot hello"), said.append, lambda _: None)
    assert len(said) == 1
    chat = beside.model_copy(update=chat_settings(beside, "x", frozenset()))
    assert (chat.console_origin, chat.console_host) == ("", "127.0.0.1")


async def test_an_empty_input_ends_the_chat() -> None:
    assert await chat("") == []


async def test_a_line_with_an_exclamation_mark_is_for_the_simulator() -> None:
    said: list[str] = []
    told: list[str] = []
    lines = "!help\n!timeout next\n!nonsense\n@bot hello\n!faults\n! faults are what I make\n"
    await converse(Settings(bot_debounce=0.0), io.StringIO(lines), said.append, told.append)
    assert len(said) == 1
    _, listing, armed, unknown, nothing, other = told
    assert "timeout" in listing
    assert armed == "timeout next"
    assert unknown.startswith("!nonsense: there is no fault")
    assert nothing == "nothing is armed"
    assert other.endswith("Try !help")


async def test_a_line_after_a_reconnect_waits_for_the_bot() -> None:
    said = await chat("!reconnect\n@bot hello\n")
    assert len(said) == 1


async def test_nobody_hears_what_is_said_to_an_account_that_is_offline() -> None:
    told: list[str] = []
    said: list[str] = []
    await converse(
        Settings(bot_debounce=0.0), io.StringIO("!offline\n@bot hello\n!online\n@bot again\n"), said.append, told.append
    )
    assert len(said) == 1
    assert [line for line in told if line.startswith("The bot did not hear that")]


async def test_lines_come_without_their_ends() -> None:
    assert [line async for line in read_lines(io.StringIO("一\r\n\ntwo"))] == ["一", "", "two"]


async def test_input_that_is_not_text_ends_the_chat_instead_of_breaking_it() -> None:
    broken = io.TextIOWrapper(io.BytesIO("好\n".encode() + b"\xff\xfe\n"), encoding="utf-8")
    assert [line async for line in read_lines(broken)] in ([], ["好"])


async def test_a_call_that_must_be_allowed_is_asked_about_on_the_terminal_and_the_next_line_answers() -> None:
    said: list[str] = []
    told: list[str] = []
    lines = "@bot send me a message with a picture\n同意 A1\n@bot send me a message with a picture\ndeny a2 no\n"
    settings = Settings(bot_debounce=0.0, tools_approve=("send_message",))
    await converse(settings, io.StringIO(lines), said.append, told.append)
    asked = [line for line in told if line.startswith("#A")]
    assert len(asked) == 2
    assert asked[0].startswith("#A1 send_message {")
    assert asked[0].endswith("  同意 A1 / 拒绝 A1")
    assert [line for line in told if line.startswith("A")] == ["A1 已同意。", "A2 已拒绝。"]
    assert sum("[image" in line for line in said) == 1


async def test_a_call_that_nobody_answers_about_does_not_hold_up_the_end_of_the_chat() -> None:
    told: list[str] = []
    settings = Settings(bot_debounce=0.0, tools_approve=("send_message",))
    line = "@bot send me a message with a picture"
    await converse(settings, io.StringIO(line), told.append, told.append)
    assert not any("[image" in line for line in told)


async def test_on_a_terminal_the_same_group_can_be_talked_in_by_browsers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO")
    said, told, end = list[str](), list[str](), threading.Event()

    class Terminal:
        def isatty(self) -> bool:
            return True

        def __iter__(self) -> Iterator[str]:
            end.wait(30)
            return iter(())

    settings = Settings(bot_debounce=0.0, bot_pace=False)
    async with (
        asyncio.TaskGroup() as group,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        group.create_task(converse(settings, cast("TextIO", Terminal()), said.append, told.append))
        try:
            await until(lambda: any("/login#" in line for line in told))
            page, _, code = told[-1].rpartition(" ")[2].partition("#")
            url, same = page.replace("/login", "/try"), {"Sec-Fetch-Site": "same-origin"}
            assert (await session.post(page, data={"code": code}, headers=same)).url.path == "/try"
            another = await asyncio.to_thread(link)
            assert another.partition("#")[0] == page
            assert (await session.get(another)).url.path == "/try"
            (form,) = set(re.findall(r'name="form" value="(\w+)"', await (await session.get(url)).text()))
            fields = {"form": form, "as": "user2", "text": "你好", "call": "1"}
            text = await (await session.post(url, data=fields, headers=same)).text()
        finally:
            end.set()
    assert "the console is at" not in caplog.text  # the link alone lets in
    assert "演示模型" in text
    assert any("演示模型" in line for line in said)


@each_case(
    ("text", "start"),
    [
        ("look at this", "I have got your picture (320 × 200 pixels)."),
        ("看看这个", "看到图片了（320 × 200 像素）。"),
        ("what is it?", "I have got your picture"),
        ("thanks", "You are welcome"),
    ],
)
async def test_the_demo_model_looks_at_a_picture_and_answers_in_the_language_of_the_question(
    text: str, start: str
) -> None:
    said, trial = list[str](), SimulatedTrial(world := demo_world(), wanted=TrialOptions())
    settings = Settings(bot_debounce=0.0, bot_pace=False)
    out = io.BytesIO()
    Image.new("RGB", (320, 200), "#1d6fb8").save(out, "PNG")
    async with open_chat(settings, world, said.append, said.append, trial) as (service, simulator):
        trial.connect(service, simulator)
        await trial.say("user2", f"@bot {text}", out.getvalue())
        assert trial.lines[-1].text.startswith(start)


async def test_what_came_of_a_line_on_the_terminal_is_news_on_the_page() -> None:
    said, trial = list[str](), SimulatedTrial(world := demo_world(), wanted=TrialOptions())
    settings = Settings(bot_debounce=0.0, bot_pace=False)
    async with open_chat(settings, world, said.append, said.append, trial) as (service, simulator):
        trial.connect(service, simulator)
        message_id = await simulator.say_line("@bot hello")
        assert message_id is not None
        trial.note_said(message_id)
        await until(lambda: trial.feed.number == 3)  # the line, its answer, and the end of that
        assert [line.is_ours for line in trial.lines] == [False, True]


async def test_the_demo_searches_a_web_of_its_own_and_names_its_sources() -> None:
    (answer,) = await chat("@bot 搜一下霜降是第几个节气")
    assert "霜降是二十四节气中的第十八个" in answer
    assert "霜降：秋季的最后一个节气 https://almanac.example/shuangjiang" in answer


async def test_with_a_search_service_of_its_own_the_chat_asks_that() -> None:
    said: list[str] = []
    settings = Settings(bot_debounce=0.0, search_url="http://127.0.0.1:9")
    await converse(settings, io.StringIO("@bot 搜一下霜降"), said.append, lambda _: None)
    assert "搜不了" in said[0]
