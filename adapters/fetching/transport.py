"""Sends requests through the environment's proxy, or directly to a checked address.

Invariant: a direct connection is made to an address that passed the check itself, so a name that
resolves differently a moment later (DNS rebinding) gains nothing. A proxy resolves names itself:
there the URL is checked, and for foreign URLs also what the name resolves to here. The proxy's own
network is the operator's to protect.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from typing import TypeAlias
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from bot.core.addresses import check_foreign, check_host, check_resolved
from frostagent.types.errors import ToolFailed

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
Endpoint: TypeAlias = tuple[str, int]
SocketOption: TypeAlias = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)  # as httpcore spells it

LOOK_UP = 1.0  # seconds to resolve a name that a proxy will resolve anyway
MAX_ATTEMPTS = 3  # addresses of one name that are tried, each with its share of the time


async def resolve_name(host: str, port: int) -> list[str]:
    """The addresses of a host in the system's order. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects only to public addresses, and to the endpoints the operator named."""

    def __init__(
        self,
        *,
        trusted: frozenset[Endpoint],
        resolve: Resolve = resolve_name,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._trusted = trusted
        self._resolve = resolve
        self._network = network or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first accepting address. Raises ToolFailed, httpcore's connect errors."""
        trusted = (host, port) in self._trusted
        addresses = [host] if trusted else (await self._checked(host, port))[:MAX_ATTEMPTS]
        share = timeout and timeout / max(1, len(addresses))
        problem: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem or httpcore.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)

    async def _checked(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} could not be resolved") from error
        check_resolved(host, addresses)
        return addresses


class _DirectTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport over a `CheckedNetwork`."""

    def __init__(self, network: httpcore.AsyncNetworkBackend, context: ssl.SSLContext) -> None:
        super().__init__(verify=context)
        # httpx 0.28 has no parameter for its pool's network;
        # tests/adapters/fetching/test_transport.py fails if a later release stops using this
        # attribute.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=20,
            max_keepalive_connections=10,
            keepalive_expiry=15,
            network_backend=network,
        )


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """The system's certificates: reading them takes 20 ms, so once per process."""
    return httpx.create_ssl_context()


class CheckedTransport(httpx.AsyncBaseTransport):
    """Checks each request's URL and routes it; redirects pass here again.

    With `foreign`, URLs come from others: only web ports, no passwords, and a name that resolves to
    a private address here does not go to the proxy either.
    """

    def __init__(
        self,
        *,
        trusted: frozenset[Endpoint],
        resolve: Resolve = resolve_name,
        network: httpcore.AsyncNetworkBackend | None = None,
        foreign: bool = False,
    ) -> None:
        self._trusted = trusted
        self._resolve = resolve
        self._foreign = foreign
        self._context = _trusted_authorities()
        network = CheckedNetwork(trusted=trusted, resolve=resolve, network=network)
        self._direct = _DirectTransport(network, self._context)
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises ToolFailed if forbidden, httpx.TransportError if it failed."""
        host = request.url.raw_host.decode()
        try:
            check_host(request.url.scheme, host)
        except ToolFailed:
            if endpoint_of(request.url) not in self._trusted:
                raise
            return await self._direct.handle_async_request(request)
        if self._foreign:
            check_foreign(host, port=request.url.port, userinfo=request.url.userinfo)
        proxy = proxy_for(request.url.scheme, host)
        if proxy and self._foreign:
            await self._check_here(host, endpoint_of(request.url)[1])
        transport = self._through(proxy) if proxy else self._direct
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._direct.aclose()
        for transport in self._proxied.values():
            await transport.aclose()

    async def _check_here(self, host: str, port: int) -> None:
        """Refuse a name by its addresses here, if any: behind a proxy many names do not resolve."""
        try:
            async with asyncio.timeout(LOOK_UP):
                addresses = await self._resolve(host, port)
        except (OSError, UnicodeError):  # includes TimeoutError
            return
        check_resolved(host, addresses)

    def _through(self, proxy: str) -> httpx.AsyncHTTPTransport:
        if proxy not in self._proxied:
            try:
                self._proxied[proxy] = httpx.AsyncHTTPTransport(verify=self._context, proxy=proxy)
            except (ImportError, ValueError, httpx.InvalidURL) as error:
                # a SOCKS proxy needs the optional package socksio
                raise ToolFailed(
                    "the proxy set in the environment cannot be used; tell the owner"
                ) from error
        return self._proxied[proxy]


def endpoint_of(url: httpx.URL) -> Endpoint:
    return url.raw_host.decode(), url.port or {"http": 80, "https": 443}.get(url.scheme, 0)


def proxy_for(scheme: str, host: str) -> str:
    """The proxy for this host from the environment or the system's settings; empty for none."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(host):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"
