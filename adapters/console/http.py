"""HTTP of the console: connections with deadlines, the hosts it answers, the forms it reads.

A page elsewhere whose name was made to point at this machine (DNS rebinding) asks for its own host.
No request is trusted for coming from this machine: behind NAT or a proxy every request seems to.
No forwarded header says where a request came in. Each proxy adds to X-Forwarded-For, whose
beginning a client may invent: of what comes from the one named proxy the last hop counts, which
that proxy wrote itself. Neither the name nor the type that a client gives a file is used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import BodyPartReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import CACHE_CONTROL
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from msgspec import Struct

HEAD_WITHIN = 10.0  # seconds that a connection has until its first request is there
WRITE_WITHIN = 20.0  # seconds that a reader has to take an answer, or an event
KEEP_ALIVE = 30.0  # seconds between two requests, the head of the second one included
MAX_FORM: Final = 64 * 1024  # bytes of a form

Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS = {"http": 80, "https": 443}
Address: TypeAlias = IPv4Address | IPv6Address
MAX_FILE: Final = 8 * 2**20  # bytes: what is seen of a picture in QQ, too
MAX_PARTS: Final = 20  # of a form with a file
FIELDS_WITHIN: Final = 10.0  # seconds
FILE_WITHIN: Final = 60.0
Form = tuple[dict[str, str], bytes]


class Listener(web.Server):
    """Answers requests by `answering`, and adds `headers` to every answer, including those that
    aiohttp gives itself. An answer may set its own Cache-Control.
    """

    def __init__(
        self, answering: Answering, *, headers: Mapping[str, str], logger: logging.Logger
    ) -> None:
        super().__init__(
            self._answer,
            request_factory=self._asked,
            access_log=None,
            logger=logger,
            keepalive_timeout=KEEP_ALIVE,
            auto_decompress=False,
        )
        self._answering = answering
        self._headers = headers
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Give the client HEAD_WITHIN seconds for its first request."""
        super().connection_made(handler, transport)
        timer = asyncio.get_running_loop().call_later(HEAD_WITHIN, transport.abort)
        self._silent[handler] = timer

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._stop_timer(handler)

    def _stop_timer(self, handler: web.RequestHandler) -> None:
        if timer := self._silent.pop(handler, None):
            timer.cancel()

    def _asked(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        self._stop_timer(protocol)
        loop = asyncio.get_running_loop()
        asked = _Request(message, payload, protocol, writer, task, loop, client_max_size=MAX_FORM)
        asked.ours = self._headers
        return asked

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._answering(request)
        try:
            async with asyncio.timeout(WRITE_WITHIN):
                await answer.prepare(request)
                await answer.write_eof()
        except ConnectionError:
            pass  # the client has left
        except TimeoutError:
            hang_up(request)
        return answer


class _Request(web.BaseRequest):
    """A request. Unreadable ones have this type too, so their answers get the headers."""

    ours: Mapping[str, str]

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        kept = response.headers.get(CACHE_CONTROL)
        response.headers.update(self.ours)
        if kept is not None:
            response.headers[CACHE_CONTROL] = kept


def hang_up(request: web.BaseRequest) -> None:
    """Close the connection of a client that reads nothing; unsent bytes are dropped."""
    if request.transport is not None:
        request.transport.abort()


class PageOrigin(Struct, frozen=True):
    """Scheme and host as a browser names them, and the path prefix of every page (`/console`)."""

    scheme: str
    host: str
    prefix: str = ""

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it only by https."""
        return self.scheme == "https"

    @property
    def text(self) -> str:
        """As the header `Origin` has it."""
        return f"{self.scheme}://{self.host}"

    def url(self, path: str) -> str:
        """The full address of a page."""
        return f"{self.text}{self.prefix}{path}"

    def path(self, asked: str) -> str | None:
        """The page's own path; a proxy may have taken the prefix off. None outside of it."""
        if not self.prefix or not (asked + "/").startswith(self.prefix + "/"):
            return asked
        return asked.removeprefix(self.prefix) or "/"


class Origins:
    """CONSOLE_ORIGIN, if set, and the loopback addresses with that port."""

    def __init__(self, configured: str, *, port: int) -> None:
        """`configured` is `https://host[:port][/prefix]` or empty."""
        self._port = port
        self._configured = read_origin(configured) if configured else None

    @property
    def first(self) -> PageOrigin:
        """The address to tell people."""
        return self._configured or self.near

    @property
    def near(self) -> PageOrigin:
        """The address on this machine, which tells a stranger nothing."""
        return PageOrigin("http", f"{LOOPBACK[0]}:{self._port}")

    def find(self, host: str) -> PageOrigin | None:
        """The origin of a request with this `Host`; None if it is not one of ours."""
        host = host.lower()
        if self._configured is not None and host == self._configured.host:
            return self._configured
        name, _, port = host.rpartition(":")
        if name in LOOPBACK and port == str(self._port):
            return PageOrigin("http", host)
        return None

    def is_lost(self, found: PageOrigin, said: str, path: str) -> bool:
        """Whether a request that names this machine came by way of the configured address: a page
        of that one asks (`said` is the header `Origin`), or for a path below its prefix.
        """
        ours = self._configured
        if ours is None or found == ours:
            return False
        return said == ours.text or bool(ours.prefix and ours.path(path) != path)


def read_origin(text: str) -> PageOrigin:
    """Parse a configured address; the default port of its scheme is left out."""
    url = urlsplit(text)
    host = (url.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    if url.port is not None and url.port != DEFAULT_PORTS.get(url.scheme):
        host += f":{url.port}"
    return PageOrigin(url.scheme, host, url.path.rstrip("/"))


def peer_address(remote: str, forwarded: Sequence[str], *, proxy: str) -> str:
    """The client's address. `remote` is the connected peer, `forwarded` the lines of
    X-Forwarded-For, `proxy` the trusted proxy in its shortest form, or empty. If the hop is no
    address, the proxy's is returned.
    """
    near = _address(remote)
    if near is None or str(near) != proxy:
        return remote
    hop = ",".join(forwarded).rpartition(",")[2]
    return str(_address(_without_port(hop.strip())) or near)


def _address(text: str) -> Address | None:
    """Parse an address; IPv4 mapped into IPv6, as dual-stack sockets report it, becomes IPv4."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def _without_port(hop: str) -> str:
    """Strip the port of `192.0.2.1:4711` or `[2001:db8::1]:4711`; `2001:db8::1` has none. A `%` (a
    zone, which may hold any text) appears in no hop of another machine: empty.
    """
    if "%" in hop:
        return ""
    if hop.startswith("["):
        address, end, port = hop[1:].partition("]")
        is_whole = end and (not port or (port[0] == ":" and port[1:].isdecimal()))
        return address if is_whole else ""
    address, colon, port = hop.partition(":")
    return address if colon and port.isdecimal() and "." in address else hop


class NoForm(Exception):
    """The body is not a form that can be read: the `status` of the answer, and why."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


async def read_form(request: web.BaseRequest, *, takes_file: bool) -> Form:
    """The fields and the bytes of the file. Raises NoForm and TimeoutError."""
    kind = request.content_type
    if takes_file and kind == "multipart/form-data":
        reading, within = _read_parts(request), FILE_WITHIN
    elif kind == "application/x-www-form-urlencoded":
        reading, within = _read_fields(request), FIELDS_WITHIN
    else:
        raise NoForm(415, "forms only")
    try:
        async with asyncio.timeout(within):
            return await reading
    except web.HTTPRequestEntityTooLarge:
        raise NoForm(413, "too large") from None
    except (ValueError, LookupError, AssertionError, HttpProcessingError) as error:
        raise NoForm(400, "this form cannot be read") from error


async def _read_fields(request: web.BaseRequest) -> Form:
    given = await request.post()
    return {name: value for name, value in given.items() if isinstance(value, str)}, b""


async def _read_parts(request: web.BaseRequest) -> Form:
    """Read part by part, so that no more than the limits is kept in memory."""
    if (request.content_length or 0) > MAX_FILE + MAX_FORM:
        raise NoForm(413, "too large")
    fields, file, left = dict[str, str](), b"", MAX_FORM
    parts = await request.multipart()
    for _ in range(MAX_PARTS):
        if (part := await parts.next()) is None:
            return fields, file
        if not isinstance(part, BodyPartReader) or part.name is None:
            raise ValueError("a part is no field")
        if part.filename is not None:
            file = await _read_part(part, MAX_FILE)
        else:
            data = await _read_part(part, left)
            left -= len(data)
            fields[part.name] = data.decode()
    raise ValueError("too many parts")


async def _read_part(part: BodyPartReader, most: int) -> bytes:
    if hdrs.CONTENT_ENCODING in part.headers or hdrs.CONTENT_TRANSFER_ENCODING in part.headers:
        raise ValueError("no browser packs what it sends")
    data = bytearray()
    while not part.at_eof():
        data += await part.read_chunk()
        if len(data) > most:
            raise NoForm(413, "too large")
    return bytes(data)
