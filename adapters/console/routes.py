"""The routes of the console, each with its rule. One without a rule is refused."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TypeAlias

from aiohttp import web
from msgspec import Struct

from adapters.console.http import PageOrigin
from adapters.console.logins import Login


class Access(Enum):
    """Whom a route is for."""

    NOBODY = auto()  # it has no rule yet
    ANYBODY = auto()
    LOGGED_IN = auto()


class Visit(Struct, frozen=True):
    """A request that passed the guard: where it came in, which page of it, by which login, and from
    whose `address`.

    `fields` are those of a form, `file` is what is in the one that came with it. `cookie` and
    `login` are there behind a login alone.
    """

    request: web.BaseRequest
    origin: PageOrigin
    at: Mapping[str, str]
    fields: Mapping[str, str]
    file: bytes = b""
    cookie: str = ""
    login: Login | None = None
    address: str = ""


Handler: TypeAlias = Callable[[Visit], Awaitable[web.StreamResponse]]


class Route(Struct, frozen=True):
    """A page or an action. `path` may hold `{name}`s, one path part each. `lasts`: a stream without
    a deadline. `takes_file`: its form may contain a file.
    """

    method: str
    path: str
    handler: Handler
    access: Access = Access.NOBODY
    lasts: bool = False
    takes_file: bool = False


class MaskedResponse(web.Response):
    """A response whose secrets are masked already. The guard masks any other one as a whole, which
    would break a stylesheet if a key is as short as `none`.
    """


class Routes:
    """Finds the route of a request. `refuse` renders the page of a refused request from its status
    and a reason.
    """

    def __init__(
        self, routes: Sequence[Route], *, refuse: Callable[[Visit, int, str], web.Response]
    ) -> None:
        self.refuse = refuse
        self.all = tuple(routes)
        self._by_method: dict[str, list[tuple[re.Pattern[str], Route]]] = {}
        for route in routes:
            self._by_method.setdefault(route.method, []).append((_pattern(route.path), route))

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
        """The route and its path parameters; None if there is none."""
        for pattern, route in self._by_method.get("GET" if method == "HEAD" else method, ()):
            if found := pattern.fullmatch(path):
                return route, found.groupdict()
        return None


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))
