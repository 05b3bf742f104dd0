"""`Pages`: fetches a page and parses it in the reader's process.

Invariants: a page is fetched at most once in ten minutes; a question reads at most eight; the web
client checks each request (public address, usual port, size, time, redirects).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from cachetools import LRUCache, TTLCache

from bot.core.documents import Document
from bot.core.language import CATALOGUE, Phrase, plain_words
from bot.core.ports import Documents, Web
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolFailed
from frostagent.types.ports import Clock

FRESH: Final = 600.0  # seconds
KEPT: Final = 4_000_000  # characters of pages
MOST_PAGES: Final = 8  # per question
RUNS: Final = 512  # runs whose pages are counted
LONGEST_URL: Final = 2000
ACCEPT: Final = {
    "Accept": "text/html, application/xhtml+xml, application/pdf, text/plain;q=0.9, */*;q=0.5",
    "Accept-Language": "zh-CN, zh;q=0.9, en;q=0.8",
}
TOO_OFTEN: Final = f"this question has read its {MOST_PAGES} pages: answer with what was read"

AROUND: Final = (
    " \t\r\n<>「」『』《》\"'。，、；：！？（）【】[],;."  # punctuation around a URL in a sentence
)

GONE: Final = Phrase("这个网页不存在（{status}）", "there is no such page ({status})")
SHUT: Final = Phrase(
    "这个网站不让程序读它（{status}）", "the site does not let a program read it ({status})"
)
CROWDED: Final = Phrase("这个网站说请求太频繁（429）", "the site takes no more requests now (429)")
BROKEN: Final = Phrase("这个网站出错了（{status}）", "the site is out of order ({status})")
ODD: Final = Phrase("这个网站答复了 {status}", "the site answered {status}")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that was read. `url` is its address after redirects, `asked` the one in the call."""

    url: str
    asked: str
    document: Document


class Pages:
    """Reads pages. `web` must be a client that is safe for untrusted URLs."""

    def __init__(self, *, web: Web, documents: Documents, clock: Clock) -> None:
        self._web = web
        self._documents = documents
        self._kept: TTLCache[str, ReadPage] = TTLCache(
            KEPT, FRESH, timer=clock.monotonic, getsizeof=_size
        )
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._made: LRUCache[str, int] = LRUCache(RUNS)

    async def read(self, url: str, *, run_id: str) -> ReadPage:
        """The page at this URL. Raises ToolFailed; InvalidArguments if it is not a URL; ToolDenied
        if a question reads too many pages.
        """
        asked = tidy_url(url)
        async with self._asking.setdefault(asked, asyncio.Lock()):
            return self._kept.get(asked) or await self._fetch(asked, run_id)

    async def _fetch(self, asked: str, run_id: str) -> ReadPage:
        question = run_id.partition("/")[0]  # its subagents' runs have longer ids
        made = self._made.get(question, 0)
        if made >= MOST_PAGES:
            raise ToolDenied(TOO_OFTEN)
        self._made[question] = made + 1
        try:
            response = await self._web.get(asked, headers=ACCEPT)
        except ToolFailed as error:
            raise ToolFailed(plain_words(error)) from error
        if response.status != 200:
            raise ToolFailed(_meaning(response.status).fill(status=response.status))
        kind = response.headers.get("content-type", "")
        document = await self._documents.read(response.body, told=kind)
        page = ReadPage(response.url, asked, document)
        if self._kept.getsizeof(page) <= self._kept.maxsize:
            self._kept[asked] = page
        return page


def tidy_url(text: str) -> str:
    """The URL without surrounding punctuation and without its fragment; https if it has no scheme.
    Raises InvalidArguments if it is not an HTTP URL.
    """
    url = text.strip(AROUND).lstrip("(")
    if url.endswith(")") and url.count(")") > url.count("("):
        url = url.rstrip(f"){AROUND}")
    if "://" not in url:
        url = f"https://{url}"
    url = url.partition("#")[0]
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or len(url) > LONGEST_URL or any(map(str.isspace, url)):
        problem = (
            f"url: {text[:80]!r} is no url of the web; write it whole, as https://example.com/"
        )
        raise InvalidArguments(problem, fields=(problem,))
    return url


def _meaning(status: int) -> Phrase:
    if status in {404, 410}:
        return GONE
    if status in {401, 402, 403, 406, 451}:
        return SHUT
    if status == 429:
        return CROWDED
    return BROKEN if status >= 500 else ODD


def _size(page: ReadPage) -> int:
    return 1000 + sum(map(len, page.document.paragraphs))
