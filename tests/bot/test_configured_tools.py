from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.media.folder import MediaFolder
from adapters.media.reader_process import ReaderProcess
from bot import configured_tools
from bot.configured_tools import (
    TOOL_PORTS,
    build_ports,
    build_toolset,
    can_read_pages,
    find_tools,
    search_hosts,
)
from bot.core.group_admin import Chair, Topic
from bot.core.jobs import Reminders, Subscriptions
from bot.core.memories import Notebook
from bot.core.ports import ChatLog, Looking
from config.settings import Settings
from frostagent.clock import SystemClock
from frostagent.engine.subagents import NamedSubagents
from frostagent.types.ports import Speaker, Subagents
from frostagent.types.tools import tool
from frostagent.types.traits import Permission
from tests.fakes import ManualClock
from tools.get_game_version.games import Games
from tools.read_page.pages import Pages
from tools.search_web.search import SearchAccount, WebSearch

OURS = (
    "chat_log", "get_game_version", "get_weather", "look", "memory", "read_page", "remind", "search_web",
    "send_message", "stay_silent", "subscribe", "use_subagent",
)  # fmt: skip


@tool(requires=("AMAP_KEY",))
def map_it() -> str:
    """Draws a map."""
    return "map"


def test_without_a_folder_there_are_the_packaged_tools() -> None:
    assert find_tools(Settings()).names == OURS
    there = find_tools(Settings(tools_group=True)).names
    assert set(there) - set(OURS) == {"mute_member", "pin_message", "recall_message", "set_card"}


def test_the_operators_folder_adds_tools(tmp_path: Path) -> None:
    (tmp_path / "dice.py").write_text(
        'from frostagent import tool\n\n\n@tool\ndef roll() -> int:\n    """Rolls."""\n    return 6\n'
    )
    assert set(find_tools(Settings(tools_dir=tmp_path)).names) == {*OURS, "roll"}


def test_the_operators_word_counts_and_a_name_of_no_tool_is_told(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(
        tools_deny=("get_weather",),
        tools_approve=("use_subagent", "nothing"),
        tools_audience={"look": "owner", "loook": "owner"},
    )
    with caplog.at_level(logging.WARNING):
        toolset = build_toolset(settings, find_tools(settings).tools, clock=ManualClock())
    changed = {
        each.name: word for each in toolset.list() if (word := toolset.permission_of(each)) is not Permission.ALLOW
    }
    assert changed == {"get_weather": Permission.DENY, "use_subagent": Permission.REQUIRE_APPROVAL}
    assert caplog.messages == [
        f"TOOLS_DENY, TOOLS_APPROVE or TOOLS_AUDIENCE names {name}, but there is no such tool"
        for name in ("loook", "nothing")
    ]


def test_what_a_tool_requires_is_looked_for_among_the_settings() -> None:
    for settings, reason in (
        (Settings(), "requires AMAP_KEY (not configured)"),
        (Settings.model_validate({"amap_key": "k" * 9}), ""),
    ):
        (status,) = build_toolset(settings, [map_it], clock=ManualClock()).check_availability(TOOL_PORTS)
        assert status.reason == reason


async def test_a_run_has_the_ports_that_are_promised() -> None:
    clock = SystemClock()
    web = HttpxWeb(clock=clock, user_agent="test", base_urls={})
    try:
        games = Games(clock=clock, file=None)
        subagents = NamedSubagents(clock=clock)
        media = MediaFolder(Path(), web=web)
        search = WebSearch(SearchAccount(), web=web, clock=clock)
        pages = Pages(web=web, documents=ReaderProcess(), clock=clock)
        ports = build_ports(
            Settings(), subagents=subagents, media=media, web=web, games=games, search=search, pages=pages, clock=clock
        )
        assert {*ports, Chair, ChatLog, Looking, Notebook, Reminders, Speaker, Subscriptions, Topic} == TOOL_PORTS
        without = build_ports(
            Settings(), subagents=None, media=media, web=web, games=games, search=search, pages=pages, clock=clock
        )
        chat = {Chair, ChatLog, Looking, Notebook, Reminders, Speaker, Subagents, Subscriptions, Topic}
        assert {*without} | chat == TOOL_PORTS
    finally:
        await web.aclose()


def test_search_is_offered_only_where_it_is_set_up_and_says_what_it_lacks() -> None:
    for settings, reason in (
        (Settings(), "needs SEARCH_URL or SEARCH_KEY, and neither is set"),
        (Settings(search_url="http://searxng:8080"), ""),
        (Settings(search_kind="ddgs"), ""),
        (Settings(search_url="http://searxng:8080", search_kind="none"), "is turned off by SEARCH_KIND=none"),
    ):
        toolset = build_toolset(settings, find_tools(settings).tools, clock=ManualClock())
        (status,) = (one for one in toolset.check_availability(TOOL_PORTS) if one.name == "search_web")
        assert status.reason == reason
        assert ("search_web" in {one.name for one in toolset.definitions(TOOL_PORTS)}) is (reason == "")


def test_the_search_service_may_have_a_private_address_and_nothing_else_becomes_trusted() -> None:
    settings = Settings(search_url="http://10.0.0.5:8080/searx", tools_mirrors={"a.example": "http://b.example"})
    assert search_hosts(settings) == {"a.example": "http://b.example", "10.0.0.5": "http://10.0.0.5:8080"}


def test_pages_are_read_where_the_web_is_turned_on_and_the_libraries_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(**given: Any) -> str:
        settings = Settings(**given)
        toolset = build_toolset(settings, find_tools(settings).tools, clock=ManualClock())
        return next(one.reason for one in toolset.check_availability(TOOL_PORTS) if one.name == "read_page")

    monkeypatch.setattr(configured_tools, "find_spec", lambda _: object())
    assert reason() == "needs SEARCH_URL or SEARCH_KEY, and neither is set"
    assert reason(search_url="http://searxng:8080") == ""
    assert reason(search_kind="none") == ""
    assert reason(search_kind="ddgs") == ""
    assert "neither is set" in reason(search_kind="brave")
    monkeypatch.setattr(configured_tools, "find_spec", lambda _: None)
    assert "pip install 'frostagent[web]'" in reason(search_kind="none")


def test_pages_that_nobody_asks_for_are_read_only_where_no_word_of_the_operators_is_against_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def can(**given: Any) -> bool:
        settings = Settings(search_kind="none", **given)
        found = find_tools(settings).tools
        return can_read_pages(settings, build_toolset(settings, found, clock=ManualClock()))

    monkeypatch.setattr(configured_tools, "find_spec", lambda _: object())
    assert can()
    assert not can(tools_deny=("read_page",))
    assert not can(tools_approve=("read_page",))
    assert "read_page is in TOOLS_DENY or TOOLS_APPROVE" in caplog.text
    monkeypatch.setattr(configured_tools, "find_spec", lambda _: None)
    assert not can()
    assert "pip install 'frostagent[web]'" in caplog.text


def test_an_operators_own_search_needs_no_setting_of_ours() -> None:
    @tool
    def search_web(query: str) -> str:
        """Searches the operator's own index."""
        return query

    toolset = build_toolset(Settings(), [search_web], clock=ManualClock())
    assert [one.reason for one in toolset.check_availability(TOOL_PORTS)] == [""]
