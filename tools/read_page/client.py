"""`PageClient`: fetches pages and the answers of sites, and says in words what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar
from urllib.parse import urlsplit

from msgspec.json import decode

from bot.core.documents import Document
from bot.core.language import CATALOGUE, Phrase, plain_words
from bot.core.ports import Documents, Web, WebResponse
from frostagent.types.errors import ToolFailed

T = TypeVar("T")

PAGE: Final = "text/html, application/xhtml+xml, application/pdf, text/plain;q=0.9, */*;q=0.5"
JSON: Final = "application/json"
LANGUAGES: Final = "zh-CN, zh;q=0.9, en;q=0.8"
HTML: Final = "text/html; charset=utf-8"

GONE: Final = Phrase("这个网页不存在（{status}）", "there is no such page ({status})")
SHUT: Final = Phrase(
    "这个网站不让程序读它（{status}）", "the site does not let a program read it ({status})"
)
CROWDED: Final = Phrase(
    "这个网站说请求太频繁（{status}）", "the site takes no more requests now ({status})"
)
BROKEN: Final = Phrase("这个网站出错了（{status}）", "the site is out of order ({status})")
ODD: Final = Phrase("这个网站答复了 {status}", "the site answered {status}")
OTHER_SCHEMA: Final = Phrase("{host} 的答复看不懂", "the answer of {host} cannot be read")
CATALOGUE.register(__name__, globals())


class BadStatus(ToolFailed):
    """The site answered with a status other than 200."""

    def __init__(self, response: WebResponse) -> None:
        self.status = response.status
        super().__init__(_meaning(response).fill(status=response.status))


class PageClient:
    """Fetches with `web`, which must be safe for untrusted URLs; `documents` parses."""

    def __init__(self, *, web: Web, documents: Documents) -> None:
        self._web = web
        self._documents = documents

    async def fetch(
        self, url: str, *, params: Mapping[str, str] | None = None, accept: str = PAGE
    ) -> WebResponse:
        """The response after redirects, of any status. Raises ToolFailed."""
        sent = {"Accept": accept, "Accept-Language": LANGUAGES}
        try:
            return await self._web.get(url, params=params, headers=sent)
        except ToolFailed as error:
            raise ToolFailed(plain_words(error)) from error

    async def get(
        self, url: str, *, params: Mapping[str, str] | None = None, accept: str = PAGE
    ) -> WebResponse:
        """The response after redirects. Raises ToolFailed, and BadStatus if it is not 200."""
        response = await self.fetch(url, params=params, accept=accept)
        _check(response)
        return response

    async def json(
        self,
        url: str,
        kind: type[T],
        *,
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> T:
        """The JSON at this URL as a `kind`. Raises ToolFailed, also if it has another schema."""
        response = await self.get(url, params=params, accept=accept)
        return read_json(response.body, kind, host=urlsplit(url).hostname or "")

    async def read(self, response: WebResponse) -> Document:
        """What a response says. Raises ToolFailed, and BadStatus if it is not 200."""
        _check(response)
        kind = response.headers.get("content-type", "")
        return await self._documents.read(response.body, told=kind)

    async def read_html(self, html: str | bytes) -> Document:
        """What a whole page or a part of one says. Raises ToolFailed."""
        data = html if isinstance(html, bytes) else f"<!doctype html><body>{html}".encode()
        return await self._documents.read(data, told=HTML)


def read_json(body: bytes, kind: type[T], *, host: str) -> T:
    """The body as a `kind`; names `host` in the ToolFailed that it raises for another schema."""
    try:
        return decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise ToolFailed(OTHER_SCHEMA.fill(host=host)) from error


def _check(response: WebResponse) -> None:
    if response.status != 200:
        raise BadStatus(response)


def _meaning(response: WebResponse) -> Phrase:
    """The words for a status; 403 with these headers is GitHub's word for a spent quota."""
    status, headers = response.status, response.headers
    is_spent = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
    if status == 429 or (status == 403 and is_spent):
        return CROWDED
    if status in {404, 410}:
        return GONE
    if status in {401, 402, 403, 406, 412, 451}:  # 412 is bilibili's word for a program
        return SHUT
    return BROKEN if status >= 500 else ODD


def one_line(text: str | None, longest: int = 200) -> str:
    """Text of a stranger as one line of what can be seen, at most `longest` characters."""
    shown = "".join(char if char.isprintable() else " " for char in (text or "")[: 10 * longest])
    return " ".join(shown.split())[:longest]
