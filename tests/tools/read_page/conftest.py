"""Sites on 127.0.0.1, the real readers' process, and a way to call the tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from adapters.media.reader_process import ReaderProcess
from frostagent.engine.tool_execution import run_body
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.fakes import tool_context
from tools.read_page import read_page
from tools.read_page.pages import Pages

SITE = "almanac.example"
OTHER = "other.example"
REAL = (  # hosts of the rows in `tools/read_page/sites.py`
    *("www.bilibili.com", "b23.tv", "api.bilibili.com", "aisubtitle.hdslb.com"),
    *("github.com", "api.github.com", "www.zhihu.com", "zhuanlan.zhihu.com", "mp.weixin.qq.com"),
    "hdslb.com.evil.example",  # looks like one of them
)

ReadPage = Callable[..., Awaitable[str]]


@pytest.fixture
async def site(server: Replay, clock: StoppedClock) -> AsyncIterator[HttpxWeb]:
    """The web of urls that others name: these sites of it are the server, the rest is as it is."""
    web = HttpxWeb(
        clock=clock,
        user_agent="FrostAgent/test (+tests)",
        base_urls=server.standing_in_for(SITE, OTHER, *REAL),
        limits=FetchLimits(request_seconds=10, total_seconds=20, body_bytes=5 * 2**20, redirects=4),
        foreign=True,
    )
    yield web
    await web.aclose()


@pytest.fixture
async def pages(site: HttpxWeb, clock: StoppedClock) -> AsyncIterator[Pages]:
    reader = ReaderProcess(seconds=30, patience=60)
    yield Pages(web=site, documents=reader, clock=clock)
    await reader.aclose()


@pytest.fixture
def read(pages: Pages) -> ReadPage:
    """Calls the tool as the toolset does."""

    async def call(url: str, **arguments: Any) -> str:
        checked = read_page.check({"url": url, **arguments})
        answer = await run_body(read_page, tool_context({Pages: pages}), checked)
        assert isinstance(answer, str)
        return answer

    return call
