"""`Pages`: fetches a page and parses it in the reader's process, or asks the row of its site.

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

from bot.core.day_tally import DayTally, Tally
from bot.core.documents import Document
from bot.core.ports import Documents, Web
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolFailed
from frostagent.types.ports import Clock

FRESH: Final = 600.0  # seconds
KEPT: Final = 4_000_000  # characters of pages
MOST_PAGES: Final = 8  # per question
RUNS: Final = 512  # runs whose pages are counted
LONGEST_URL: Final = 2000
SITE_SECONDS: Final = 15.0  # for a site's row, before its plain page is read
TOO_OFTEN: Final = f"this question has read its {MOST_PAGES} pages: answer with what was read"

AROUND: Final = (
    " \t\r\n<>「」『』《》\"'。，、；：！？（）【】[],;."  # punctuation around a URL in a sentence
)


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that was read. `url` is its address after redirects, `asked` the one in the call."""

    url: str
    asked: str
    document: Document


class Pages:
    """Reads pages. `web` must be a client that is safe for untrusted URLs."""

    def __init__(
        self,
        *,
        web: Web,
        documents: Documents,
        clock: Clock,
        site_seconds: float = SITE_SECONDS,
    ) -> None:
        self._web = web
        self._documents = documents
        self._site_seconds = site_seconds
        self._kept: TTLCache[str, ReadPage] = TTLCache(
            KEPT, FRESH, timer=clock.monotonic, getsizeof=_size
        )
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._made: LRUCache[str, int] = LRUCache(RUNS)
        self._tally = DayTally(clock)

    @property
    def today(self) -> Tally:
        """The pages that were read today, and the latest that could not be."""
        return self._tally.read()

    async def read(self, url: str, *, run_id: str) -> ReadPage:
        """The page at this URL. Raises ToolFailed; InvalidArguments if it is not a URL; ToolDenied
        if a question reads too many pages.
        """
        asked = tidy_url(url)
        async with self._asking.setdefault(asked, asyncio.Lock()):
            if (kept := self._kept.get(asked)) is not None:
                self._tally.count(reused=True)
                return kept
            return await self._fetch(asked, run_id)

    async def _fetch(self, asked: str, run_id: str) -> ReadPage:
        question = run_id.partition("/")[0]  # its subagents' runs have longer ids
        made = self._made.get(question, 0)
        if made >= MOST_PAGES:
            raise ToolDenied(TOO_OFTEN)
        self._made[question] = made + 1
        from tools.read_page.client import PageClient
        from tools.read_page.sites import read_url

        client = PageClient(web=self._web, documents=self._documents)
        try:
            url, document = await read_url(asked, client, site_seconds=self._site_seconds)
        except ToolFailed as error:
            self._tally.fail(error)
            raise
        self._tally.count()
        page = ReadPage(url, asked, document)
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


def _size(page: ReadPage) -> int:
    return 1000 + sum(map(len, page.document.paragraphs))
