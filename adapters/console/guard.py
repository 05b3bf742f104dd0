"""The one door of the console: what is not allowed here does not reach a page.

In this order: the host is ours, the route has a rule, what changes something was asked for by a
page of ours, whoever asks is logged in, and the form is one of that login's. `HEADERS` are for
every answer, and leave a browser nothing to interpret.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from adapters.console.http import Form, NoForm, Origins, PageOrigin, peer_address, read_form
from adapters.console.logins import Login, Logins, is_form_token
from adapters.console.routes import Access, MaskedResponse, Route, Routes, Visit

logger = logging.getLogger(__name__)

DEADLINE: Final = 10.0  # seconds for a page
CHANGES: Final = frozenset({"POST"})
READS: Final = frozenset({"GET", "HEAD"})
COOKIE: Final = "frost-console"
NOWHERE: Final[Mapping[str, str]] = {}
EXPECTS = "nothing but requests is understood here"
ELSEWHERE = (
    "this is not the address of the console, which is {address} (CONSOLE_PORT). If browsers reach "
    "it by another port or name, set CONSOLE_ORIGIN to the address they show; a proxy must also "
    "pass the header Host on"
)
NO_HOST = (
    "this came by way of {origin} (CONSOLE_ORIGIN), but the header Host names this machine: let "
    "the proxy pass it on (nginx: proxy_set_header Host $http_host;)"
)
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none, forms come from "null" where http is plain
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class RequestRefused(Exception):
    """A request that is not let in: `status`, and a line that tells nothing of what is inside."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Guard:
    """Lets requests through to the routes, or not."""

    def __init__(
        self,
        routes: Routes,
        *,
        logins: Logins,
        origins: Origins,
        mask: Callable[[str], str],
        proxy: str = "",
    ) -> None:
        """`mask` keeps secrets out of every answer that does not do it itself; the `proxy` of this
        address is believed for whom it asks.
        """
        self._proxy = proxy
        self._routes = routes
        self._logins = logins
        self._origins = origins
        self._mask = mask

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to any request at all."""
        try:
            answer = await self._let_in(request)
        except RequestRefused as refused:
            answer = self._refuse(request, refused.status, refused.words)
        except TimeoutError:
            answer = self._refuse(request, 503, "this took too long; try again")
        except ConnectionError:  # the client has left
            answer = web.Response(status=400)
        except Exception:
            logger.exception("the console could not answer %s", request.method)
            answer = self._refuse(request, 500, "this could not be shown; the log says why")
        if isinstance(answer, web.Response) and not isinstance(answer, MaskedResponse):
            answer.text = self._mask(answer.text or "")
        return answer

    def _refuse(self, request: web.BaseRequest, status: int, words: str) -> web.Response:
        """A page for people, a line for programs."""
        if "text/html" not in request.headers.get("Accept", ""):
            return web.Response(status=status, text=words)
        origin = self._origins.find(request.headers.get("Host", "")) or self._origins.first
        cookie = request.cookies.get(cookie_name(origin), "")
        visit = self._visit(request, origin, cookie, self._logins.find(cookie))
        return self._routes.refuse(visit, status, words)

    async def _let_in(self, request: web.BaseRequest) -> web.StreamResponse:
        origin = self._origins.find(request.headers.get("Host", ""))
        if origin is None:
            raise RequestRefused(421, ELSEWHERE.format(address=self._origins.near.text))
        if self._origins.is_lost(origin, request.headers.get("Origin", ""), request.path):
            raise RequestRefused(421, NO_HOST.format(origin=self._origins.first.url("")))
        if "Expect" in request.headers:
            raise RequestRefused(417, EXPECTS)
        route, at = self._route(request, origin)
        cookie = request.cookies.get(cookie_name(origin), "")
        login = self._logins.find(cookie) if cookie else None
        if request.method in CHANGES:
            _check_sender(request, origin)
        if route is None or route.access is Access.NOBODY:
            return self._instead(request, origin, is_in=login is not None)
        if route.access is Access.LOGGED_IN and login is None:
            return _to_login(request, origin, route)
        form = await _form(request, route)
        visit = self._visit(request, origin, cookie, login, at=at, form=form)
        if route.access is Access.LOGGED_IN:
            _check_form(request, visit)
        async with asyncio.timeout(None if route.lasts else DEADLINE):
            return await route.handler(visit)

    def _instead(
        self, request: web.BaseRequest, origin: PageOrigin, *, is_in: bool
    ) -> web.Response:
        """If there is no such page: the login page; or the page above an action, whose
        address a browser has once that is done. Raises Refused.
        """
        if request.method in READS and not is_in:
            return to_login(origin)
        path = origin.path(request.rel_url.raw_path) or ""
        found = self._routes.find("POST", path) if request.method in READS else None
        if found is None or found[0].access is Access.NOBODY:
            raise RequestRefused(404 if is_in else 403, "there is no such page")
        return _to(origin, path.rpartition("/")[0] or "/")

    def _visit(
        self,
        request: web.BaseRequest,
        origin: PageOrigin,
        cookie: str,
        login: Login | None,
        *,
        at: Mapping[str, str] = NOWHERE,
        form: Form = ({}, b""),
    ) -> Visit:
        forwarded = request.headers.getall("X-Forwarded-For", ())
        address = peer_address(request.remote or "", forwarded, proxy=self._proxy)
        return Visit(request, origin, at, *form, cookie if login else "", login, address)

    def _route(
        self, request: web.BaseRequest, origin: PageOrigin
    ) -> tuple[Route | None, Mapping[str, str]]:
        path = origin.path(request.path)
        return (self._routes.find(request.method, path) if path else None) or (None, {})


def cookie_name(origin: PageOrigin) -> str:
    """The name of a login's cookie: on https, a name that nobody else can set.

    Browsers give a cookie to every port and path of a host: each console there has its own name.
    """
    own = hashlib.sha256(origin.url("").encode()).hexdigest()[:8]
    return f"{'__Host-' if origin.is_secure else ''}{COOKIE}-{own}"


def logged_in(
    answer: web.Response, origin: PageOrigin, cookie: str, seconds: float
) -> web.Response:
    """The answer with the cookie of a login; with an empty one, without any."""
    answer.set_cookie(
        cookie_name(origin),
        cookie,
        path="/",
        max_age=int(seconds) if cookie else 0,
        secure=origin.is_secure,
        httponly=True,
        samesite="Strict",
    )
    return answer


def to_login(origin: PageOrigin) -> web.Response:
    """The way to the page where one logs in. Browsers keep what stands behind a `#` over a redirect
    without one, and there it would be taken for the code of a link.
    """
    return _to(origin, "/login#")


def _to(origin: PageOrigin, path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": f"{origin.prefix}{path}"})


def _to_login(request: web.BaseRequest, origin: PageOrigin, route: Route) -> web.Response:
    if request.method in READS and not route.lasts:
        return to_login(origin)
    raise RequestRefused(401, "log in first")


def _check_sender(request: web.BaseRequest, origin: PageOrigin) -> None:
    """Whether a page of ours asks. Raises Refused."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        if site != "same-origin":
            raise RequestRefused(403, "another page asked for this")
    elif request.headers.get("Origin") != origin.text:
        raise RequestRefused(403, "nobody knows which page asked for this")


def _check_form(request: web.BaseRequest, visit: Visit) -> None:
    """Whether the form is one of that login's. Raises Refused."""
    if request.method in CHANGES and not is_form_token(visit.cookie, visit.fields.get("form", "")):
        raise RequestRefused(403, "this form is of an earlier login: load the page again")


async def _form(request: web.BaseRequest, route: Route) -> Form:
    """The fields of the form in a request. Raises Refused."""
    if request.method not in CHANGES:
        return {}, b""
    try:
        return await read_form(request, takes_file=route.takes_file)
    except NoForm as error:
        raise RequestRefused(error.status, error.words) from error
