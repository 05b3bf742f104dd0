"""`HttpxWeb`, the `Web` port. One shared client, created on first use, with limits of time, size
and redirects.

Each hop of a redirect is re-based and checked like the first. All errors become `ToolFailed`; their
text names the host and never the query, which may hold a key.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from json import dumps as encode_json
from typing import Any

import httpx
from cachetools import TTLCache

from adapters.fetching.limits import FetchLimits
from adapters.fetching.transport import CheckedTransport, Resolve, endpoint_of, resolve_name
from bot.core.addresses import check_foreign
from bot.core.language import Bilingual
from bot.core.ports import WebResponse
from frostagent.types.errors import ToolFailed
from frostagent.types.ports import Clock

MAX_BYTES = 32 * 2**20
MAX_SECONDS = 24 * 3600.0
ENTRY_BYTES = 1024  # overhead of an entry: URL, headers, key


@dataclass(frozen=True, slots=True)
class _KeptAnswer:
    response: WebResponse
    at: float


class Answers:
    """A cache of answers, limited in bytes and to a day; in memory only."""

    def __init__(self, *, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        self._clock = clock
        self._kept: TTLCache[Hashable, _KeptAnswer] = TTLCache(
            max_bytes,
            MAX_SECONDS,
            timer=clock.monotonic,
            getsizeof=lambda kept: ENTRY_BYTES + len(kept.response.body),
        )
        self._flights: dict[Hashable, asyncio.Future[WebResponse | ToolFailed]] = {}

    async def get(
        self,
        key: Hashable,
        fetch: Callable[[], Awaitable[WebResponse]],
        *,
        fresh: float,
        keep: Callable[[WebResponse], bool] | None,
    ) -> WebResponse:
        """Return the cached answer if it is younger than `fresh` seconds, else that of `fetch`.
        Raises what `fetch` raises.
        """
        while True:
            kept = self._kept.get(key)
            if kept is not None and self._clock.monotonic() - kept.at < fresh:
                return kept.response
            flight = self._flights.get(key)
            if flight is None:
                return await self._fly(key, fetch, keep)
            await asyncio.wait(
                {flight}
            )  # unlike `await flight`, cancelling this leaves the flight alone
            if not flight.cancelled():
                return _landed(flight.result())

    async def _fly(
        self,
        key: Hashable,
        fetch: Callable[[], Awaitable[WebResponse]],
        keep: Callable[[WebResponse], bool] | None,
    ) -> WebResponse:
        flight = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            response = await fetch()
            if response.status == 200 and response.body and (keep is None or keep(response)):
                self._keep(key, response)
            flight.set_result(response)
        except ToolFailed as error:
            flight.set_result(error)  # a result, not an exception, which might never be retrieved
            raise
        finally:
            del self._flights[key]
            flight.cancel()  # no effect on a finished flight
        return response

    def _keep(self, key: Hashable, response: WebResponse) -> None:
        kept = _KeptAnswer(response, self._clock.monotonic())
        if self._kept.getsizeof(kept) <= self._kept.maxsize:
            self._kept[key] = kept


def _landed(outcome: WebResponse | ToolFailed) -> WebResponse:
    if isinstance(outcome, ToolFailed):
        raise ToolFailed(str(outcome)) from outcome
    return outcome


ENCODINGS = "gzip"
"""The encodings requested; other ones are refused."""

PLAIN = frozenset({"", "identity"})
GZIP = frozenset({"gzip", "x-gzip"})


async def read_body(response: httpx.Response, *, host: str, limit: int) -> bytes:
    """Return the unpacked body of at most `limit` bytes. Raises ToolFailed, httpx.HTTPError.

    `host` names the server in errors. The size is checked by the Content-Length, else while
    reading.
    """
    too_large = ToolFailed(f"{host} sent more than {limit:,} bytes")
    encoding = response.headers.get("content-encoding", "").strip().lower()
    told = response.headers.get("content-length", "")
    if encoding in PLAIN and told.isdecimal() and len(told) < 19 and int(told) > limit:
        raise too_large
    if encoding not in PLAIN | GZIP:
        raise ToolFailed(f"{host} sent it packed as {encoding[:20]!r}, which is not read")
    body = bytearray()
    chunks = response.aiter_raw() if encoding in PLAIN else _unpack(response.aiter_raw(), limit + 1)
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


async def _unpack(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """Unpack gzip, yielding at most `most` bytes at a time. Raises httpx.DecodingError."""
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    begun = False
    try:
        async for chunk in chunks:
            begun = True
            yield gzip.decompress(chunk, most)
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error
    if begun and not gzip.eof:
        raise httpx.DecodingError("the gzip ends in the middle")


REDIRECTS = frozenset({301, 302, 303, 307, 308})


class HttpxWeb:
    """The `Web` port.

    `user_agent` must name the operator and how to reach them (MET Norway and PaperMC block anything
    else). `base_urls` maps a public host to the URL that replaces its root, as in
    {"api.open-meteo.com": "http://127.0.0.1:1234/api.open-meteo.com"}: a mirror, or a test's
    server. The operator sets it, so its targets may be private. With `foreign`, URLs come from a
    model or a member: see `CheckedTransport`; then a replacement is reached only under its host's
    name.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        user_agent: str,
        base_urls: Mapping[str, str] | None = None,
        limits: FetchLimits | None = None,
        resolve: Resolve = resolve_name,
        foreign: bool = False,
    ) -> None:
        self._user_agent = user_agent
        self._base_urls = {
            host.lower(): httpx.URL(base) for host, base in (base_urls or {}).items()
        }
        self._limits = limits or FetchLimits()
        self._trusted = frozenset(endpoint_of(base) for base in self._base_urls.values())
        self._silent = min(self._limits.silent_seconds, self._limits.request_seconds)
        self._resolve = resolve
        self._foreign = foreign
        self._answers = Answers(clock=clock)
        self._client: httpx.AsyncClient | None = None

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        fresh: float = 0,
        keep: Callable[[WebResponse], bool] | None = None,
    ) -> WebResponse:
        """See `Web.get`. Raises ToolFailed."""
        try:
            target = httpx.URL(url)
            if params:  # merged, because httpx's own `params=` drops the URL's query
                target = target.copy_merge_params(params)
        except httpx.InvalidURL as error:
            raise ToolFailed(f"not a url that can be fetched: {error}") from error
        sent = dict(headers or {})
        if fresh <= 0:
            return await self._fetch(target, sent)
        key = (str(target), frozenset(sent.items()))
        return await self._answers.get(
            key, lambda: self._fetch(target, sent), fresh=fresh, keep=keep
        )

    async def post(
        self, url: str, *, json: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> WebResponse:
        """See `Web.post`. Raises ToolFailed."""
        try:
            target = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ToolFailed(f"not a url that can be fetched: {error}") from error
        entered = self._entered(target, coming_from=None)
        sent = {**(headers or {}), "Content-Type": "application/json"}
        body = encode_json(json, ensure_ascii=False).encode("utf-8", "replace")
        return await self._request(target, entered, sent, body=body)

    async def aclose(self) -> None:
        """Close the connections; the next `get` opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _fetch(self, url: httpx.URL, headers: dict[str, str]) -> WebResponse:
        try:
            async with asyncio.timeout(self._limits.total_seconds):
                return await self._follow(url, headers)
        except TimeoutError as error:
            raise ToolFailed(
                f"{url.host} took longer than {self._limits.total_seconds:g} s in all"
            ) from error
        except httpx.InvalidURL as error:
            raise ToolFailed(f"{url.host} redirects to something that is no url") from error

    async def _follow(self, url: httpx.URL, headers: dict[str, str]) -> WebResponse:
        origin, target = endpoint_of(url), None
        for _ in range(self._limits.redirects + 1):
            target = self._entered(url, coming_from=target)
            response = await self._request(url, target, headers)
            location = response.headers.get("location", "")
            if response.status not in REDIRECTS or not location:
                return response
            url = target.join(location)
            if endpoint_of(url) not in (origin, endpoint_of(target)):
                headers = {}  # headers for one host, such as a key, are not sent to another
        raise ToolFailed(f"{origin[0]} redirects more than {self._limits.redirects} times")

    async def _request(
        self,
        url: httpx.URL,
        target: httpx.URL,
        headers: dict[str, str],
        *,
        body: bytes | None = None,
    ) -> WebResponse:
        """One hop, a POST if there is a body; `url` is what was asked for, `target` where it is
        asked.
        """
        method = "GET" if body is None else "POST"
        seconds = self._limits.request_seconds
        try:
            async with (
                asyncio.timeout(seconds),
                self._shared_client().stream(
                    method, target, headers=headers, content=body
                ) as response,
            ):
                limit = self._limits.body_bytes
                told = (
                    b""
                    if response.has_redirect_location
                    else await read_body(response, host=url.host, limit=limit)
                )
                return WebResponse(response.status_code, told, str(url), dict(response.headers))
        except TimeoutError as error:
            raise ToolFailed(f"{url.host} did not answer within {seconds:g} s") from error
        except httpx.TimeoutException as error:
            raise ToolFailed(f"{url.host} did not answer within {self._silent:g} s") from error
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise ToolFailed(
                Bilingual(
                    f"{url.host} could not be reached ({kind})", f"连不上 {url.host}（{kind}）"
                )
            ) from error

    def _entered(self, url: httpx.URL, *, coming_from: httpx.URL | None) -> httpx.URL:
        """Return the target of a URL: itself, or its host's replacement. Raises ToolFailed."""
        target = self._rebase(url)
        if self._foreign and target != url:  # other targets are checked by the transport
            check_foreign(url.host, port=url.port, userinfo=url.userinfo)
        inside = coming_from is not None and endpoint_of(coming_from) == endpoint_of(
            url
        )  # a redirect within a replacement
        if self._foreign and target == url and endpoint_of(url) in self._trusted and not inside:
            raise ToolFailed(f"{url.host} is not a public address and is not fetched")
        return target

    def _rebase(self, url: httpx.URL) -> httpx.URL:
        base = self._base_urls.get(url.host) if url.scheme in ("http", "https") else None
        return (
            url
            if base is None
            else base.copy_with(raw_path=base.raw_path.rstrip(b"/") + url.raw_path)
        )

    def _shared_client(self) -> httpx.AsyncClient:
        if self._client is None:
            network = CheckedTransport(
                trusted=self._trusted, resolve=self._resolve, foreign=self._foreign
            )
            self._client = httpx.AsyncClient(
                transport=network,
                headers={"User-Agent": self._user_agent, "Accept-Encoding": ENCODINGS},
                timeout=self._silent,
                follow_redirects=False,
                cookies=CookieJar(
                    DefaultCookiePolicy(allowed_domains=[])
                ),  # tools do not log in anywhere
            )
        return self._client
