"""The demo's web over HTTP on loopback: a search service like SearXNG, and the pages it finds, on
hosts that end in `.example`.

async with OfflineWeb() as web:
    ...  # SEARCH_URL = web.url, TOOLS_MIRRORS with web.mirrors
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from aiohttp import web

from adapters.offline.pages import PAGES, SITES

# Words of any question.
ASKING = frozenset(("什么", "为什", "怎么", "怎样", "多少", "what", "why", "how", "the"))
MOST_FOUND = 20
CJK = re.compile(r"[\u3400-\u9fff]+")
WORD = re.compile(r"[a-z0-9]+")
SITE = re.compile(r"\bsite:(\S+)")


@dataclass(frozen=True, slots=True)
class DemoPage:
    """A page. `text` has a paragraph a line; one that begins with `#` is a heading. `body` replaces
    it with raw bytes of media type `kind`. `status` and `location` make errors and redirects.
    """

    title: str = ""
    text: str = ""
    date: str = ""
    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    location: str = ""

    @property
    def content(self) -> bytes:
        """The response body."""
        if self.body or not self.text:
            return self.body
        blocks = "".join(map(_block, filter(None, self.text.split("\n"))))
        date = (
            f'<meta property="article:published_time" content="{self.date}">' if self.date else ""
        )
        head = f"<head><title>{html.escape(self.title)}</title>{date}</head>"
        return f"<!doctype html><html>{head}<body><article>{blocks}</article></body>".encode()


def _block(line: str) -> str:
    words = html.escape(line.lstrip("# "))
    return f"<h2>{words}</h2>" if line.startswith("#") else f"<p>{words}</p>"


def demo_pages() -> dict[str, DemoPage]:
    """The demo's pages by URL, with the answers of sites that `read_page` asks in their own way."""
    pages = {url: DemoPage(title, text, date) for url, (title, date, text) in PAGES.items()}
    for url, answer in SITES.items():
        kind = "text/html; charset=utf-8" if isinstance(answer, str) else "application/json"
        body = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        pages[url] = DemoPage(body=body.encode(), kind=kind)
    return pages


class OfflineWeb:
    """A server that replaces a search service and the hosts of some pages, within its `async with`.
    A page whose URL has no query answers every query.

    `asked` records the queries and URLs it received.
    """

    def __init__(self, pages: Mapping[str, DemoPage] | None = None) -> None:
        self.url = ""
        self.asked: list[str] = []
        self._pages = demo_pages() if pages is None else dict(pages)
        app = web.Application()
        app.router.add_get("/search", self._search)
        app.router.add_get("/{host}/{path:.*}", self._give)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)

    @property
    def mirrors(self) -> dict[str, str]:
        """The replacement of each host, as TOOLS_MIRRORS takes it."""
        hosts = {urlsplit(url).hostname or "" for url in self._pages}
        return {host: f"{self.url}/{host}" for host in sorted(hosts)}

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.Response:
        query = request.query.get("q", "")
        self.asked.append(query)
        if request.query.get("format") != "json":
            return web.Response(status=403)
        found = self._found(query)
        results = [
            {
                "url": url,
                "title": page.title,
                "content": page.text.replace("\n", " ")[:300],
                "publishedDate": page.date or None,
            }
            for url, page in found[:MOST_FOUND]
        ]
        return web.json_response({"query": query, "results": results, "unresponsive_engines": []})

    def _found(self, query: str) -> list[tuple[str, DemoPage]]:
        """The pages that best match the query, best first."""
        site = SITE.search(query)
        words = _words(SITE.sub("", query))
        scored = [
            (len(words & _words(page.title)) + len(words & _words(page.text)), url, page)
            for url, page in self._pages.items()
            if page.title and (site is None or (urlsplit(url).hostname or "").endswith(site[1]))
        ]
        best = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1]))
        return [(url, page) for _, url, page in best]

    async def _give(self, request: web.Request) -> web.Response:
        host, path = request.match_info["host"], request.match_info["path"]
        query = f"?{request.query_string}" if request.query_string else ""
        self.asked.append(f"https://{host}/{path}{query}")
        urls = [
            f"{scheme}://{host}/{path}{end}" for scheme in ("https", "http") for end in (query, "")
        ]
        page = next((self._pages[url] for url in urls if url in self._pages), None)
        if page is None:
            return web.Response(status=404)
        headers = {"Content-Type": page.kind} | (
            {"Location": page.location} if page.location else {}
        )
        return web.Response(body=page.content, status=page.status, headers=headers)


def _words(text: str) -> set[str]:
    folded = text.casefold()
    pairs = {run[at : at + 2] for run in CJK.findall(folded) for at in range(len(run) - 1)}
    return (pairs | {word for word in WORD.findall(folded) if len(word) > 2}) - ASKING
