"""The demo's web: what it finds, what it gives, and that it is reached as any other."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.fetching.client import HttpxWeb
from adapters.media.reader_process import ReaderProcess
from adapters.offline.web import DemoPage, OfflineWeb, demo_pages
from frostagent.clock import SystemClock
from tests.cases import each_case
from tools.read_page.pages import Pages


@pytest.fixture
async def offline() -> AsyncIterator[OfflineWeb]:
    async with OfflineWeb() as offline:
        yield offline


@pytest.fixture
async def web(offline: OfflineWeb) -> AsyncIterator[HttpxWeb]:
    mirrors = {"127.0.0.1": offline.url, **offline.mirrors}
    web = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=mirrors)
    yield web
    await web.aclose()


@each_case(
    ("query", "first"),
    [
        ("霜降是第几个节气", "https://almanac.example/shuangjiang"),
        ("why do cats purr", "https://pets.example/why-cats-purr"),
        ("site:almanac.example 节气表", "https://almanac.example/solar-terms"),
    ],
)
async def test_the_page_that_shares_most_with_a_query_is_found_first(
    query: str, first: str, offline: OfflineWeb, web: HttpxWeb
) -> None:
    response = await web.get(f"{offline.url}/search", params={"q": query, "format": "json"})
    results = response.json()["results"]
    assert results[0]["url"] == first
    assert {"url", "title", "content", "publishedDate"} == results[0].keys()


async def test_a_page_that_shares_only_the_asking_words_is_not_found(offline: OfflineWeb, web: HttpxWeb) -> None:
    response = await web.get(f"{offline.url}/search", params={"q": "霜降吃什么", "format": "json"})
    assert not any("pets" in one["url"] for one in response.json()["results"])


async def test_nothing_is_found_for_words_that_no_page_has(offline: OfflineWeb, web: HttpxWeb) -> None:
    response = await web.get(f"{offline.url}/search", params={"q": "量子", "format": "json"})
    assert response.json()["results"] == []
    assert (await web.get(f"{offline.url}/search", params={"q": "x"})).status == 403


async def test_every_page_is_given_by_the_host_that_it_is_of(web: HttpxWeb) -> None:
    for url, page in demo_pages().items():
        response = await web.get(url)
        assert response.status == 200
        assert response.body == page.content
        assert f"<title>{page.title}</title>" in response.body.decode() or not page.title
    assert (await web.get("https://almanac.example/gone")).status == 404


@pytest.mark.parametrize(
    ("url", "title", "said"),
    [
        ("https://www.bilibili.com/video/BV1FrostDem0", "三分钟看懂霜降", "补冬不如补霜降"),
        ("https://www.zhihu.com/question/1/answer/100", "霜降为什么要吃柿子？", "没有研究能证明"),
        ("https://mp.weixin.qq.com/s/frost-demo", "柿子怎么挑", "蒂绿、贴得紧的新鲜"),
    ],
)
async def test_sites_are_shown_without_a_network(url: str, title: str, said: str, offline: OfflineWeb) -> None:
    pytest.importorskip("selectolax", reason="the extra web is not installed")
    web = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=offline.mirrors, foreign=True)
    reader = ReaderProcess()
    page = await Pages(web=web, documents=reader, clock=SystemClock()).read(url, run_id="r")
    await reader.aclose()
    await web.aclose()
    assert (page.document.title, page.document.date) == (title, "2026-10-23")
    assert said in "".join(page.document.paragraphs)


async def test_a_page_with_a_query_of_its_own_is_told_apart_and_one_without_answers_any() -> None:
    pages = {"https://a.example/x?n=1": DemoPage(body=b"one"), "https://a.example/x": DemoPage(body=b"any")}
    async with OfflineWeb(pages) as offline:
        web = HttpxWeb(clock=SystemClock(), user_agent="test", base_urls=offline.mirrors)
        bodies = [(await web.get(f"https://a.example/x{query}")).body for query in ("?n=1", "?n=2", "")]
        await web.aclose()
    assert bodies == [b"one", b"any", b"any"]
    assert offline.asked == [f"https://a.example/x{query}" for query in ("?n=1", "?n=2", "")]


def test_a_page_is_what_its_server_sends_if_that_is_said() -> None:
    assert DemoPage("a", "<b>").content == (
        b"<!doctype html><html><head><title>a</title></head><body><article><p>&lt;b&gt;</p></article></body>"
    )
    assert DemoPage(body=b"%PDF-").content == b"%PDF-"
