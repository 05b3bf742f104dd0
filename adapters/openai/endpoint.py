"""Where a base URL leads: the address to post to, and the way there."""

from __future__ import annotations

import ipaddress
from urllib.request import getproxies, proxy_bypass

from yarl import URL

PATH = "/chat/completions"


def join_url(base_url: str, *, path: str = PATH) -> URL:
    """Where to post. Raises ValueError unless it is an http(s) URL with a host."""
    url = URL(base_url.strip())
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError(f"not an http(s) URL: {base_url!r}")
    base = url.path.rstrip("/").removesuffix(path)
    return url.with_path(base + path, keep_query=True)


def find_proxy(url: URL) -> str | None:
    """The environment's HTTP proxy for a host that is not near us; SOCKS is not spoken and passed
    over.
    """
    host = url.host or ""
    if is_local(host) or proxy_bypass(host):
        return None
    known = getproxies()
    proxy = known.get(url.scheme) or known.get("all") or ""
    if "://" not in proxy:
        proxy = f"http://{proxy}" if proxy else ""
    return proxy if proxy.startswith(("http://", "https://")) else None


def is_local(host: str) -> bool:
    """Whether a host is on this machine or network, where an HTTP proxy has no business (6.19)."""
    host = host.lower().strip("[]")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
