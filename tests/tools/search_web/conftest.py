"""The services' hosts on 127.0.0.1, and a way to call the tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from frostagent.engine.tool_execution import run_body
from tests.adapters.fetching.replay import StoppedClock
from tests.fakes import tool_context
from tests.tools.search_web.bodies import HOSTS, KEYS
from tools.search_web import search_web
from tools.search_web.search import Pay, SearchAccount, WebSearch

SearchWeb = Callable[..., Awaitable[str]]


@pytest.fixture
def hosts() -> Iterable[str]:
    return HOSTS.values()


@pytest.fixture
def make_search(web: HttpxWeb, clock: StoppedClock) -> Callable[..., WebSearch]:
    def make(kind: str, *, pay: Pay | None = None) -> WebSearch:
        return WebSearch(account(kind), web=web, clock=clock, pay=pay)

    return make


def account(kind: str) -> SearchAccount:
    """What an operator sets for that service: an address, its name alone, or a key."""
    if kind == "searxng":
        return SearchAccount(url=f"http://{HOSTS[kind]}")
    if kind == "ddgs":
        return SearchAccount(kind=kind)
    return SearchAccount(key=KEYS[kind])


@pytest.fixture
def ask(make_search: Callable[..., WebSearch]) -> SearchWeb:
    """Calls the tool as the toolset does."""
    made: dict[str, WebSearch] = {}

    async def call(kind: str, query: str = "霜降 节气", *, search: WebSearch | None = None, **arguments: Any) -> str:
        if search is None:
            search = made.setdefault(kind, make_search(kind))
        checked = search_web.check({"query": query, **arguments})
        answer = await run_body(search_web, tool_context({WebSearch: search}), checked)
        assert isinstance(answer, str)
        return answer

    return call
