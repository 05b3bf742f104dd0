"""The URL to post to, and the proxy for it."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from frostagent.types.errors import ModelError
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.ports import ChatModel

PATH = "/chat/completions"


def join_url(base_url: str, *, path: str = PATH) -> URL:
    """The URL to post to. Raises ValueError unless it is http(s) with a host."""
    url = URL(base_url.strip())
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError(f"not an http(s) URL: {base_url!r}")
    base = url.path.rstrip("/").removesuffix(path)
    return url.with_path(base + path, keep_query=True)


def find_proxy(url: URL) -> str | None:
    """The environment's HTTP proxy, unless the host is local. SOCKS proxies are ignored."""
    host = url.host or ""
    if is_local(host) or proxy_bypass(host):
        return None
    known = getproxies()
    proxy = known.get(url.scheme) or known.get("all") or ""
    if "://" not in proxy:
        proxy = f"http://{proxy}" if proxy else ""
    return proxy if proxy.startswith(("http://", "https://")) else None


def is_local(host: str) -> bool:
    """Whether a host is on this machine or network, so that no proxy is used (6.19)."""
    host = host.lower().strip("[]")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))


logger = logging.getLogger(__name__)

VERSION = re.compile(r"/v\d+[a-z0-9]*\Z")
NOT_THERE = frozenset({404, 405})  # statuses of a server that has nothing at this URL


def other_url(base_url: str) -> str:
    """The base URL with /v1 removed or added; empty if it is a complete path."""
    url = URL(base_url.strip())
    path = url.path.rstrip("/")
    if path.endswith(PATH):
        return ""
    if VERSION.search(path):
        return (
            str(url.with_path(VERSION.sub("", path), keep_query=True))
            if path.endswith("/v1")
            else ""
        )
    return str(url.with_path(f"{path}/v1", keep_query=True))


class EitherUrl:
    """A `ChatModel` at the given base URL or at the other one: the first that exists, for good."""

    def __init__(self, make: Callable[[str], ChatModel], base_url: str) -> None:
        """`make` makes a model from a base URL. Raises what that raises."""
        self._model = make(base_url)
        other = other_url(base_url)
        self._other = make(other) if other else None

    @property
    def name(self) -> str:
        """Model and host, for logs."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The whole answer. Raises ModelError; that of the given URL if neither exists."""
        model = self._model
        try:
            completion = await model.complete(request)
        except ModelError as missing:
            other = (
                self._other if model is self._model else self._model
            )  # found meanwhile, by another request
            if other is None or missing.status not in NOT_THERE:
                raise
            return await self._try_other(other, request, missing)
        self._other = None
        return completion

    async def _try_other(
        self, other: ChatModel, request: ModelRequest, missing: ModelError
    ) -> Completion:
        try:
            completion = await other.complete(request)
        except ModelError as error:
            if error.status in NOT_THERE:
                raise missing from None
            raise
        logger.info(
            "%s is there with the version of its base url (/v1) put in, or left out", other.name
        )
        self._model, self._other = other, None
        return completion
