"""The addresses that the console is reached by: a request for any other host is not for us.

A page elsewhere whose name was made to point at this machine (DNS rebinding) asks for its own host.
Nobody is believed for coming from this machine: behind NAT or a proxy everybody seems to. No
forwarded header says where it came in.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT = {"http": 80, "https": 443}


class PageOrigin(Struct, frozen=True):
    """Scheme and host as a browser names them, and the path before every page's own, `/console`."""

    scheme: str
    host: str
    prefix: str = ""

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by https alone."""
        return self.scheme == "https"

    @property
    def text(self) -> str:
        """As the header `PageOrigin` has it."""
        return f"{self.scheme}://{self.host}"

    def url(self, path: str) -> str:
        """The whole address of a page."""
        return f"{self.text}{self.prefix}{path}"

    def path(self, asked: str) -> str | None:
        """The page's own path; a proxy may have taken the prefix off. None outside of it."""
        if not self.prefix or not (asked + "/").startswith(self.prefix + "/"):
            return asked
        return asked.removeprefix(self.prefix) or "/"


class Origins:
    """CONSOLE_ORIGIN where it is set, and this machine's own addresses with that port."""

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

    def of(self, host: str) -> PageOrigin | None:
        """The origin of a request with this `Host`; None where that is not ours."""
        host = host.lower()
        if self._configured is not None and host == self._configured.host:
            return self._configured
        name, _, port = host.rpartition(":")
        if name in LOOPBACK and port == str(self._port):
            return PageOrigin("http", host)
        return None

    def is_lost(self, found: PageOrigin, said: str, path: str) -> bool:
        """Whether a request that names this machine came by way of the configured address: a page
        of that one asks (`said` is the header `PageOrigin`), or for a path below its prefix.
        """
        ours = self._configured
        if ours is None or found == ours:
            return False
        return said == ours.text or bool(ours.prefix and ours.path(path) != path)


def read_origin(text: str) -> PageOrigin:
    """An address that was written down; a port that the scheme has anyway is left out."""
    url = urlsplit(text)
    host = (url.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    if url.port is not None and url.port != DEFAULT.get(url.scheme):
        host += f":{url.port}"
    return PageOrigin(url.scheme, host, url.path.rstrip("/"))
