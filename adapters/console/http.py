"""Reads requests: the requested address, the client's address, and forms, with limits.

A page elsewhere whose name points to this machine (DNS rebinding) still sends its own `Host`.
Coming from this machine earns no trust: behind NAT or a proxy every request seems to. Each proxy
appends to X-Forwarded-For, and a client may invent its beginning, so only the last hop counts, and
only if the named proxy sent it. File names and types from clients are ignored.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import BodyPartReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

MAX_FORM: Final = 64 * 1024  # bytes of a form
MAX_FILE: Final = 8 * 2**20  # bytes; also the limit for images from QQ
MAX_PARTS: Final = 20  # of a form with a file
FIELDS_WITHIN: Final = 10.0  # seconds
FILE_WITHIN: Final = 60.0

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS = {"http": 80, "https": 443}
COOKIE: Final = "frost-console"
NUMBER = re.compile(r"[0-9]{1,18}")
Address: TypeAlias = IPv4Address | IPv6Address
Form: TypeAlias = tuple[dict[str, str], bytes]


class RequestRefused(Exception):
    """Ends a request with `status`. The text of `refused.why.KEY` with these values is shown to
    anyone, so it reveals nothing.
    """

    def __init__(self, status: int, key: str, **values: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = f"refused.why.{key}"
        self.values = values


class PageOrigin(Struct, frozen=True):
    """Scheme and host as a browser names them, and the path prefix of every page (`/console`)."""

    scheme: str
    host: str
    prefix: str = ""

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def text(self) -> str:
        """As in the header `Origin`."""
        return f"{self.scheme}://{self.host}"

    def url(self, path: str) -> str:
        return f"{self.text}{self.prefix}{path}"

    def path(self, asked: str) -> str:
        """The page's path, whether or not a proxy has removed the prefix."""
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
        """The address shown to people."""
        return self._configured or self.near

    @property
    def near(self) -> PageOrigin:
        """The address on this machine, which reveals nothing to a stranger."""
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
        """Whether a request for this machine came through the configured address: its `Origin`
        header (`said`) is a page of that address, or its path is below the prefix.
        """
        ours = self._configured
        if ours is None or found == ours:
            return False
        return said == ours.text or bool(ours.prefix and ours.path(path) != path)


ORIGINS: Final = web.AppKey("origins", Origins)
PROXY: Final = web.AppKey("proxy", str)  # whose X-Forwarded-For is trusted, or empty
ORIGIN: Final = web.RequestKey("origin", PageOrigin)
ADDRESS: Final = web.RequestKey("address", str)  # of the client
FIELDS: Final = web.RequestKey[Mapping[str, str]]("fields")  # of the form; empty without one
FILE: Final = web.RequestKey("file", bytes)  # uploaded with the form


def read_origin(text: str) -> PageOrigin:
    """Parse a configured address; the default port of its scheme is left out."""
    url = urlsplit(text)
    host = (url.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    if url.port is not None and url.port != DEFAULT_PORTS.get(url.scheme):
        host += f":{url.port}"
    return PageOrigin(url.scheme, host, url.path.rstrip("/"))


def cookie_name(origin: PageOrigin) -> str:
    """The name of the login cookie: on https, a name that no other site can set.

    Browsers send a cookie to every port and path of a host, so each console has its own name.
    """
    own = hashlib.sha256(origin.url("").encode()).hexdigest()[:8]
    return f"{'__Host-' if origin.is_secure else ''}{COOKIE}-{own}"


def redirect(request: web.Request, path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": f"{request[ORIGIN].prefix}{path}"})


def hang_up(request: web.BaseRequest) -> None:
    """Close the connection of a client that reads nothing; unsent bytes are dropped."""
    if request.transport is not None:
        request.transport.abort()


def parse_number(text: str) -> int:
    """A number in a URL; 0 for anything else."""
    return int(text) if NUMBER.fullmatch(text := text.strip()) else 0


def peer_address(remote: str, forwarded: Sequence[str], *, proxy: str) -> str:
    """The client's address. `remote` is the connected peer, `forwarded` the lines of
    X-Forwarded-For, `proxy` the trusted proxy in its shortest form, or empty. If the hop is not an
    address, the proxy's is returned.
    """
    near = _address(remote)
    if near is None or str(near) != proxy:
        return remote
    hop = ",".join(forwarded).rpartition(",")[2]
    return str(_address(_without_port(hop.strip())) or near)


def _address(text: str) -> Address | None:
    """Parse an address; IPv4-mapped IPv6, as dual-stack sockets report it, becomes IPv4."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def _without_port(hop: str) -> str:
    """Strip the port of `192.0.2.1:4711` or `[2001:db8::1]:4711`; `2001:db8::1` has none. Empty for
    a `%` (a zone, which may hold any text): no hop of another machine has one.
    """
    if "%" in hop:
        return ""
    if hop.startswith("["):
        address, end, port = hop[1:].partition("]")
        is_whole = end and (not port or (port[0] == ":" and port[1:].isdecimal()))
        return address if is_whole else ""
    address, colon, port = hop.partition(":")
    return address if colon and port.isdecimal() and "." in address else hop


async def read_form(request: web.BaseRequest, *, takes_file: bool) -> Form:
    """Return the fields and the file's bytes. Raises RequestRefused and TimeoutError."""
    kind = request.content_type
    if takes_file and kind == "multipart/form-data":
        reading, within = _read_parts(request), FILE_WITHIN
    elif kind == "application/x-www-form-urlencoded":
        reading, within = _read_fields(request), FIELDS_WITHIN
    else:
        raise RequestRefused(415, "media_type")
    try:
        async with asyncio.timeout(within):
            return await reading
    except web.HTTPRequestEntityTooLarge:
        raise RequestRefused(413, "size") from None
    except (ValueError, LookupError, AssertionError, HttpProcessingError) as error:
        raise RequestRefused(400, "form") from error


async def _read_fields(request: web.BaseRequest) -> Form:
    given = await request.post()
    return {name: value for name, value in given.items() if isinstance(value, str)}, b""


async def _read_parts(request: web.BaseRequest) -> Form:
    """Read part by part, to keep no more than the limits in memory."""
    if (request.content_length or 0) > MAX_FILE + MAX_FORM:
        raise RequestRefused(413, "size")
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
        raise ValueError("no browser encodes the parts it sends")
    data = bytearray()
    while not part.at_eof():
        data += await part.read_chunk()
        if len(data) > most:
            raise RequestRefused(413, "size")
    return bytes(data)
