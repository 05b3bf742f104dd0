"""A console that listens on loopback, and a browser of sorts that visits it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from adapters.console.guard import COOKIE
from adapters.console.logins import Logins
from adapters.console.origins import Origins
from adapters.console.routes import Route, Routes
from adapters.console.server import Console
from adapters.console.site import routes_of
from bot.domain.audit import Audited
from bot.domain.masking import Mask
from tests.fakes import ManualClock

TOKEN = "0123456789abcdef0123456789abcdef"
SECRET = "sk-very-secret-indeed"
SAME = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Journal:
    """What the console reads and writes; None: the journal is away."""

    lines: list[Audited] | None = field(default_factory=list)

    async def audit(self, *, latest: int) -> tuple[Audited, ...] | None:
        return None if self.lines is None else tuple(reversed(self.lines))[:latest]


@dataclass
class Place:
    """A console at work, and what it wrote and told."""

    console: Console
    session: aiohttp.ClientSession
    clock: ManualClock
    journal: Journal
    told: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.console.port}"

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, str, aiohttp.ClientResponse]:
        """Status, text and all of an answer, redirects not followed."""
        url = URL(f"http://{self.host}{path}", encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **more) as answer:
            return answer.status, await answer.text(), answer

    async def log_in(self, token: str = TOKEN, **more: Any) -> int:
        status, _, _ = await self.ask("POST", "/login", data={"token": token}, headers=SAME, **more)
        return status

    async def form(self) -> str:
        """The token of a form of the page that is open."""
        _, text, _ = await self.ask("GET", "/access")
        found = re.search(r'name="form" value="(\w+)"', text)
        assert found
        return found[1]

    def cookie(self) -> str:
        found = self.session.cookie_jar.filter_cookies(URL(f"http://{self.host}/")).get(COOKIE)
        return "" if found is None else found.value


@asynccontextmanager
async def visiting(*more: Route, origin: str = "", port: int = 0) -> AsyncIterator[Place]:
    """A console with these routes beside its own."""
    clock, journal, told = ManualClock(), Journal(), []
    loads: list[Sequence[Route]] = []

    def load(logins: Logins, origins: Origins) -> Routes:
        loads.append(more)
        assert journal.lines is not None
        own = routes_of(
            logins, journal, note=journal.lines.append, tell=lambda _kind, text: told.append(text), clock=clock
        )
        return Routes((*own.all, *more))

    console = Console(
        host="127.0.0.1", port=port, token=TOKEN, origin=origin, mask=Mask([SECRET]), clock=clock, load=load
    )
    jar = aiohttp.CookieJar(unsafe=True)
    async with console, aiohttp.ClientSession(cookie_jar=jar) as session:
        assert not loads  # nothing is loaded before somebody asks
        yield Place(console, session, clock, journal, told)
