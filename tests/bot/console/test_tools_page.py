from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from adapters.fetching.lazy import LazyWeb
from adapters.media.folder import MediaFolder
from adapters.media.reader_process import ReaderProcess
from bot.build import App
from bot.configured_tools import build_ports, build_toolset, find_tools
from bot.console import tools_page
from bot.console.tools_page import call_tool, list_tools, read_web
from bot.core.console_views import ToolState
from bot.core.day_tally import Tally
from bot.memory.personas import Cast, House, Persona, Personas
from config.settings import Settings
from frostagent.clock import SystemClock
from frostagent.engine.subagents import NamedSubagents
from frostagent.types.traits import Audience
from tests.fakes import ManualClock, RecordingStore
from tests.settings import kept_settings
from tools.get_game_version.games import Games
from tools.read_page.pages import Pages
from tools.search_web.search import SearchAccount, WebSearch

TOOLS = '''
import asyncio
from pathlib import Path

from frostagent.types.ports import Speaker, Subagents; from bot.core.ports import Web
from frostagent.types.results import Image, ToolResult
from frostagent import ToolContext, tool

RAN = Path(__file__).parent / "ran"


def ran(name):
    with RAN.open("a") as file:
        file.write(name + "\\n")


@tool(side_effects="read", rate="3/3600")
async def ask(context: ToolContext, days: int, city: str = "x") -> ToolResult:
    """Says who asks."""
    ran("ask")
    who = context.asker
    told = who.user_id, who.is_owner, str(who.authority), Subagents in context.ports, context.conversation
    return ToolResult(f"{days + 1} {city} {told}", (Image("data:image/png;base64,AA=="),))


@tool(side_effects="none")
async def breaks(word: str) -> str:
    """Breaks."""
    raise ValueError("no such word: " + word)


@tool(side_effects="read")
async def hangs() -> str:
    """Never ends."""
    ran("hangs")
    await asyncio.Event().wait()
    return ""


@tool(side_effects="read")
async def floods() -> str:
    """Says much."""
    return "长" * 100_000


@tool(side_effects="write")
async def writes() -> str:
    """Changes our state."""
    ran("writes")
    return ""


@tool(side_effects="external")
async def acts() -> str:
    """Changes the world."""
    ran("acts")
    return ""


@tool
async def silent_about_it() -> str:
    """Declares nothing."""
    ran("silent_about_it")
    return ""


@tool(side_effects="read")
async def denied() -> str:
    """The operator denies it."""
    ran("denied")
    return ""


@tool(side_effects="read", permission="require_approval")
async def approved() -> str:
    """Somebody allows it first."""
    ran("approved")
    return ""


@tool(side_effects="read", audience="owner")
async def for_owners() -> str:
    """For owners."""
    ran("for_owners")
    return ""


@tool(side_effects="read")
async def for_admins_by_setting() -> str:
    """For everybody, but that the operator says otherwise."""
    ran("for_admins_by_setting")
    return ""


@tool(side_effects="read", audience="owner")
async def for_all_by_setting() -> str:
    """For owners, but that the operator says otherwise."""
    ran("for_all_by_setting")
    return "yours"


@tool(side_effects="none", needs=(Subagents,))
async def thinks() -> str:
    """Asks a model."""
    ran("thinks")
    return ""


@tool(side_effects="none", needs=(Speaker,))
async def speaks() -> str:
    """Speaks in a chat."""
    ran("speaks")
    return ""


@tool(side_effects="read", requires=("TAVILY",))
async def keyless() -> str:
    """Lacks a key."""
    ran("keyless")
    return ""
'''
FIT = {"ask", "breaks", "hangs", "floods", "for_all_by_setting", "get_weather", "get_game_version"}
ARGUMENTS = {"read_page": '{"url": "x.example"}', "search_web": '{"query": "x"}'}
UNFIT = {
    "writes": "effects",
    "acts": "effects",
    "silent_about_it": "undeclared",
    "denied": "denied",
    "approved": "approval",
    "for_owners": "audience",
    "for_admins_by_setting": "audience",
    "thinks": "models",
    "speaks": "chat",
    "keyless": "away",
    "chat_log": "chat",
    "look": "chat",
    "read_page": "away",
    "search_web": "away",
    "memory": "effects",
    "remind": "effects",
    "subscribe": "effects",
    "send_message": "effects",
    "stay_silent": "chat",
    "use_subagent": "models",
}


@dataclass
class Bench:
    """The tools of a bot, and which of them ran."""

    app: App
    folder: Path

    @property
    def ran(self) -> list[str]:
        file = self.folder / "ran"
        return file.read_text().split() if file.exists() else []

    def states(self) -> dict[str, ToolState]:
        return {one.name: one for one in list_tools(self.app)}

    async def call(self, name: str, arguments: str = "{}") -> tuple[str, str, int]:
        answer = await call_tool(self.app, name, arguments)
        return answer.code, answer.text, answer.pictures


@asynccontextmanager
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    (tmp_path / "mine.py").write_text(TOOLS)
    settings = Settings(
        tools_dir=tmp_path, tools_deny=("denied",), llm_base_url="http://127.0.0.1:9/v1", llm_model="none"
    )
    clock, store = ManualClock(), RecordingStore()
    audiences = {"for_admins_by_setting": Audience.GROUP_ADMIN, "for_all_by_setting": Audience.EVERYONE}
    cast_of_all = Cast(Persona("", "霜"), houses={77: House(audiences={"ask": Audience.OWNER})}, audiences=audiences)
    web = LazyWeb(clock=clock, user_agent="test", base_urls={})
    ports = build_ports(
        settings,
        subagents=NamedSubagents(clock=clock),
        media=MediaFolder(tmp_path, web=web),
        web=web,
        games=Games(clock=clock, file=None),
        search=WebSearch(SearchAccount(), web=web, clock=clock),
        pages=Pages(web=web, documents=ReaderProcess(), clock=clock),
        clock=clock,
    )
    app = SimpleNamespace(
        toolset=build_toolset(settings, find_tools(settings).tools, clock=SystemClock()),
        personas=Personas(cast_of_all, settings=kept_settings(store)),
        ports=ports,
        clock=clock,
    )
    yield Bench(cast("App", app), tmp_path)


async def test_of_every_tool_is_told_for_whom_it_is_and_whether_a_page_may_call_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as place:
        states = place.states()
        assert {name: one.unfit for name, one in states.items()} == {**dict.fromkeys(FIT, ""), **UNFIT}
        ask = states["ask"]
        assert (ask.audience, ask.elsewhere, ask.quota) == ("everyone", ((77, "owner"),), (3, 3600.0))
        assert list(ask.parameters["properties"]) == ["days", "city"]
        assert states["denied"].permission == "deny"
        assert states["for_admins_by_setting"].audience == "group_admin"


async def test_the_web_is_told_if_the_settings_turn_it_on(tmp_path: Path) -> None:
    async with bench(tmp_path) as place:
        assert read_web(Settings(), place.app) is None
        told = read_web(Settings(search_kind="ddgs", search_price=2.0), place.app)
        assert told is not None
        assert (told.service, told.unsearched, told.unread, told.price) == ("DuckDuckGo", "", "", 2.0)
        assert (told.searches, told.pages, told.rests) == (Tally(), Tally(), 0.0)
        pages_alone = read_web(Settings(search_kind="none"), place.app)
        assert pages_alone is not None
        assert (pages_alone.service, pages_alone.unsearched) == ("", "is turned off by SEARCH_KIND=none")


async def test_a_call_from_a_page_is_nobodys_and_goes_the_whole_way_of_calls(tmp_path: Path) -> None:
    async with bench(tmp_path) as place:
        assert await place.call("ask", '{"days": "1"}') == (
            "ok",
            "2 x ('0', False, 'everyone', False, '0:private:0')\n[图片 1]",
            1,
        )
        code, text, _ = await place.call("ask", '{"days": "many"}')
        assert (code, "days" in text) == ("TOOL_INVALID_ARGUMENTS", True)
        assert (await place.call("ask", "no JSON"))[0] == "TOOL_INVALID_ARGUMENTS"
        assert (await place.call("none"))[0] == "TOOL_NOT_FOUND"
        code, text, _ = await place.call("breaks", '{"word": "<b>"}')
        assert (code, "no such word: <b>" in text) == ("TOOL_EXECUTION_FAILED", True)
        assert len((await place.call("floods"))[1]) < 10_000
        assert (await place.call("for_all_by_setting"))[:2] == ("ok", "yours")
        codes = [(await place.call("ask", '{"days": 1}'))[0] for _ in range(3)]
        assert codes == ["ok", "ok", "TOOL_RATE_LIMITED"]
        assert place.ran == ["ask", "for_all_by_setting", "ask", "ask"]


async def test_what_is_not_for_a_page_does_not_run_whoever_asks_for_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as place:
        for name, why in UNFIT.items():
            code, text, _ = await place.call(name, ARGUMENTS.get(name, "{}"))
            assert (code, name in text) == ("TOOL_UNAVAILABLE" if why == "away" else "TOOL_DENIED", True), text
        assert place.ran == []


async def test_a_call_that_does_not_end_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools_page, "CALL_SECONDS", 0.05)
    async with bench(tmp_path) as place:
        code, text, _ = await place.call("hangs")
        assert (code, place.ran) == ("TOOL_TIMEOUT", ["hangs"])
        assert "0.05 s" in text
