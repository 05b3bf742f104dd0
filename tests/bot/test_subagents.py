from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace
from pydantic import SecretStr

from bot.chat_models import ChatModels
from bot.subagents import SubagentRegistry, endpoints_of
from config.loading import load_settings
from config.settings import Settings
from config.tables import SubagentRow
from frostagent.clock import RandomIds
from frostagent.engine.toolset import Toolset
from frostagent.models.openai.client import make_session
from frostagent.types.errors import ConfigError, InvalidArguments
from frostagent.types.ports import Subagents
from frostagent.types.tools import Tool, tool
from frostagent.types.traits import SideEffects
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tools.send_message import send_message
from tools.use_subagent import use_subagent

DOCS = Path(__file__).parents[2] / "docs" / "subagents.md"


@tool(side_effects="none")
async def get_weather(city: str) -> str:
    """Tells the weather."""
    return f"{city} 晴 20°C"


@tool(side_effects="external")
async def ring_bell() -> str:
    """Rings."""
    return "rang"


ALL = (get_weather, ring_bell, send_message, use_subagent)


@asynccontextmanager
async def hired(settings: Settings, *tools: Tool) -> AsyncIterator[SubagentRegistry]:
    clock = ManualClock()
    async with make_session() as session:
        models = ChatModels(
            settings,
            session=session,
            clock=clock,
            ids=RandomIds(),
            tell=lambda _: None,
        )
        toolset = Toolset(tools or ALL, clock=clock)
        yield SubagentRegistry(settings, model_at=models.at, toolset=toolset, clock=clock)


@asynccontextmanager
async def service(*answers: dict[str, object]) -> AsyncIterator[tuple[str, list[dict[str, object]], list[str]]]:
    """A local model service: where it is, what it was asked, and by which keys."""
    asked: list[dict[str, object]] = []
    keys: list[str] = []
    script = list(answers)

    async def complete(request: web.Request) -> web.Response:
        asked.append(await request.json())
        keys.append(request.headers.get("Authorization", ""))
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        called = "tool_calls" in script[0]
        choice = {"index": 0, "message": script.pop(0), "finish_reason": "tool_calls" if called else "stop"}
        return web.json_response({"id": "r", "model": "m", "choices": [choice], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked, keys
    finally:
        await runner.cleanup()


def documented() -> str:
    """The file that the page shows."""
    (block,) = re.findall(r"^```\n(\[\[subagent\]\].*?)^```$", DOCS.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(block)


async def test_the_file_of_the_page_works_and_its_traveller_looks_the_weather_up(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "南京"}'}}
    answers: tuple[dict[str, object], ...] = (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "去吧！"},
    )
    file = tmp_path / "subagents.toml"
    file.write_text(documented(), "utf-8")
    async with service(*answers) as (url, asked, _):
        environ = {"LLM_BASE_URL": url, "LLM_MODEL": "m", "ONEBOT_ACCESS_TOKEN": "t" * 8, "MY_CODER_KEY": "k"}
        settings, _ = load_settings(environ={**environ, "SUBAGENTS_FILE": str(file)}, env_file=None)
        async with hired(settings) as staff:
            assert staff.subagents.names == ("Coder", "Translator", "Traveller")
            assert (await staff.subagents.ask(tool_context(), "traveller", "周末去南京？")).content == "去吧！"
    assert [request["model"] for request in asked] == ["deepseek-reasoner"] * 2
    tools, messages = asked[0]["tools"], asked[1]["messages"]
    assert isinstance(tools, list)
    assert isinstance(messages, list)
    assert [each["function"]["name"] for each in tools] == ["get_weather"]
    assert messages[-1]["content"] == "南京 晴 20°C"


async def test_the_coder_is_there_without_a_file_and_has_no_tools() -> None:
    async with service({"role": "assistant", "content": "print(1)"}) as (url, asked, keys):
        settings = Settings(llm_base_url=url, llm_model="m", llm_api_key=SecretStr("main"), coder_model="big")
        async with hired(settings) as staff:
            assert (await staff.subagents.ask(tool_context(), "Coder", "print one")).content == "print(1)"
    assert (asked[0]["model"], keys) == ("big", ["Bearer main"])
    assert "tools" not in asked[0]


def rows(tmp_path: Path, text: str, **more: object) -> Settings:
    file = tmp_path / "agents.toml"
    file.write_text(text, "utf-8")
    given = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m", "subagents_file": file, **more}
    return Settings.model_validate(given)


ROW = '[[subagent]]\nname = "A"\ndescription = "甲"\nprompt = "p"\n'


async def test_the_tool_says_who_they_are_and_says_it_anew_when_they_change(tmp_path: Path) -> None:
    settings = rows(tmp_path, ROW + "deadline = 200\n")
    async with hired(settings) as staff:
        known = staff.toolset.get("use_subagent")
        assert known is not None
        assert known.description.endswith("Subagents:\n- A: 甲\n- Coder: writes, explains and mends code")
        assert known.timeout > 200
        rows(tmp_path, ROW.replace('"A"', '"B"'))
        assert staff.reload() == ()
        assert staff.subagents.names == ("B", "Coder")
        (definition,) = [each for each in staff.toolset.definitions([Subagents]) if each.name == "use_subagent"]
        assert "- B: 甲" in definition.description
        assert "- A" not in definition.description


@pytest.mark.parametrize("broken", ["[[", ROW + "max_steps = 0\n", ROW + 'tools = ["get_wether"]\n'])
async def test_a_file_that_got_broken_leaves_them_as_they_were(tmp_path: Path, broken: str) -> None:
    async with hired(rows(tmp_path, ROW)) as staff:
        rows(tmp_path, broken)
        (problem,) = staff.reload()
        assert problem.name == "SUBAGENTS_FILE"
        assert staff.subagents.names == ("A", "Coder")


async def test_a_broken_file_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not TOML"):
        async with hired(rows(tmp_path, "[[")):
            pass


async def test_a_tool_that_is_not_there_is_told_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with hired(rows(tmp_path, ROW + 'tools = ["get_wether"]\n')):
            pass
    assert caplog.messages == ["SUBAGENTS_FILE: A: tools: there is no tool get_wether. Did you mean get_weather?"]


async def test_tools_that_change_something_make_the_asking_tool_one_that_does(tmp_path: Path) -> None:
    async with hired(rows(tmp_path, ROW + 'tools = ["ring_bell"]\n')) as staff:
        known = staff.toolset.get("use_subagent")
        assert known is not None
        assert known.may_have_happened


async def test_tools_that_do_not_say_what_they_do_make_the_asking_tool_one_that_does_not(tmp_path: Path) -> None:
    dark = replace(get_weather, side_effects=SideEffects.UNDECLARED)
    async with hired(rows(tmp_path, ROW + 'tools = ["get_weather"]\n'), dark, use_subagent) as staff:
        known = staff.toolset.get("use_subagent")
        assert known is not None
        assert known.side_effects is SideEffects.UNDECLARED


async def test_a_tool_of_that_name_that_asks_nobody_is_left_alone(tmp_path: Path) -> None:
    own = replace(get_weather, name="use_subagent")
    async with hired(rows(tmp_path, ROW), own) as staff:
        assert staff.toolset.get("use_subagent") is own


async def test_names_that_nobody_has_are_refused(tmp_path: Path) -> None:
    async with hired(rows(tmp_path, ROW)) as staff:
        with pytest.raises(InvalidArguments, match="known: A, Coder"):
            await staff.subagents.ask(tool_context(), "B", "task")


@each_case(
    ("row", "first"),
    [
        ({"name": "A"}, ("https://main.test", "main", "m", 4096)),
        ({"name": "A", "model": "x"}, ("https://main.test", "main", "x", 0)),
        ({"name": "A", "base_url": "https://other.test"}, ("https://other.test", "", "m", 0)),
        ({"name": "A", "api_key": "MINE"}, ("https://main.test", "mine", "m", 4096)),
        ({"name": "Coder"}, ("https://coder.test", "ck", "big", 0)),
        ({"name": "coder", "model": "huge"}, ("https://coder.test", "ck", "huge", 0)),
    ],
)
def test_a_key_never_goes_to_another_base_url(row: dict[str, object], first: tuple[str, str, str, int]) -> None:
    settings = Settings(
        llm_base_url="https://main.test",
        llm_api_key=SecretStr("main"),
        llm_model="m",
        llm_context=4096,
        coder_base_url="https://coder.test",
        coder_api_key=SecretStr("ck"),
        coder_model="big",
        subagent_keys={"MINE": SecretStr("mine")},
    )
    asked = endpoints_of(SubagentRow.model_validate(row), settings)
    assert (asked[0].base_url, asked[0].api_key.get_secret_value(), asked[0].model, asked[0].context) == first
    assert asked[-1] == settings.main_model


async def test_of_the_calls_of_a_subagents_answer_as_many_are_run_as_of_any(tmp_path: Path) -> None:
    weather = {"name": "get_weather", "arguments": '{"city": "南京"}'}
    made = [{"id": f"c{number}", "type": "function", "function": weather} for number in range(3)]
    answers: tuple[dict[str, object], ...] = (
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "assistant", "content": "去吧！"},
    )
    file = tmp_path / "subagents.toml"
    file.write_text(documented(), "utf-8")
    async with service(*answers) as (url, asked, _):
        environ = {"LLM_BASE_URL": url, "LLM_MODEL": "m", "ONEBOT_ACCESS_TOKEN": "t" * 8, "MY_CODER_KEY": "k"}
        told = {"SUBAGENTS_FILE": str(file), "TOOLS_MAX_CALLS": "2"}
        settings, _ = load_settings(environ={**environ, **told}, env_file=None)
        async with hired(settings) as staff:
            await staff.subagents.ask(tool_context(), "traveller", "南京？")
    messages = asked[1]["messages"]
    assert isinstance(messages, list)
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert ["only 2 calls are run" in content for content in results] == [False, False, True]
