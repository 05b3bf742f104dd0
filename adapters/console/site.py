"""The application: every route, and the guards that a request passes before its handler.

The server loads this module, and Jinja2 with it, at the first request.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from adapters.console import (
    access,
    approvals,
    chats,
    costs,
    health,
    jobs,
    live,
    personas,
    today,
    tools,
    trying,
    turns,
)
from adapters.console.http import (
    ADDRESS,
    FIELDS,
    FILE,
    ORIGIN,
    ORIGINS,
    PROXY,
    Origins,
    RequestRefused,
    cookie_name,
    peer_address,
    read_form,
    redirect,
)
from adapters.console.language import LANGUAGE, choose_language, language_named
from adapters.console.logins import COOKIE, LOGIN, LOGINS, Logins, is_form_token
from adapters.console.rendering import (
    HTML,
    STATIC_FILES,
    TEMPLATES,
    MaskedResponse,
    StaticFiles,
    load_templates,
    render_refusal,
    send_static_file,
)
from adapters.console.server import IS_EXPECTING
from adapters.console.sources import SOURCES, Sources

logger = logging.getLogger(__name__)

DEADLINE: Final = 10.0  # seconds for a page
READS: Final = frozenset({"GET", "HEAD"})
CHANGES: Final = frozenset({"POST"})
PARAMETER = re.compile(r"\{(\w+)\}")
ONE_PART = "(?:[^/%]|%25)+"  # a slash separates parts even if percent-encoded


class Route(Struct, frozen=True):
    """A page or an action. `path` may hold `{name}`s, one path part each.

    Only an `is_public` one is open without a login. An `is_slow` one has no deadline, and without a
    login answers 401 instead of redirecting to the login page. The form of one that `takes_file`
    may contain a file.
    """

    method: str
    path: str
    handler: Handler
    is_public: bool = False
    is_slow: bool = False
    takes_file: bool = False


ROUTES: Final = (
    Route("GET", "/static/{version}/{name}", send_static_file, is_public=True),
    Route("GET", "/login", access.show_login, is_public=True),
    Route("POST", "/login", access.log_in, is_public=True),
    Route("POST", "/language", access.set_language, is_public=True),
    Route("POST", "/logout", access.log_out),
    Route("GET", "/access", access.show_access),
    Route("POST", "/access/end", access.end_all_logins),
    Route("GET", "/", today.show_today),
    Route("POST", "/pause", today.pause_chat),
    Route("GET", "/live", live.stream_news, is_slow=True),
    Route("GET", "/turns", turns.show_turns),
    Route("GET", "/rows", turns.send_rows),
    Route("GET", "/turns/{id}", turns.show_turn),
    Route("GET", "/turns/{id}/json", turns.send_turn),
    Route("GET", "/silent/{where}/{id}", turns.show_silence),
    Route("GET", "/approvals", approvals.show_approvals),
    Route("POST", "/approvals", approvals.decide),
    Route("GET", "/cost", costs.show_costs),
    Route("GET", "/cost/csv", costs.send_csv),
    Route("GET", "/chats", chats.show_chats),
    Route("GET", "/chats/{where}", chats.show_chat),
    Route("GET", "/chats/{where}/file", chats.send_file),
    Route("POST", "/chats/{where}/jobs", chats.cancel_job),
    Route("POST", "/chats/{where}/greeting", chats.change_greeting),
    Route("POST", "/chats/{where}/forget", chats.forget_chat, is_slow=True),
    Route("GET", "/jobs", jobs.show_jobs),
    Route("POST", "/jobs", jobs.cancel),
    Route("GET", "/persona", personas.show_personas),
    Route("GET", "/persona/text", personas.show_text),
    Route("POST", "/persona/text", personas.change_text),
    Route("GET", "/tools", tools.show_tools),
    Route("GET", "/tools/{tool}", tools.show_tool),
    Route("POST", "/tools/{tool}", tools.call_tool, is_slow=True),
    Route("GET", "/health", health.show_health),
    Route("POST", "/health/doctor", health.run_doctor, is_slow=True),
    Route("GET", "/try", trying.show_trial),
    Route("POST", "/try", trying.say_line, is_slow=True, takes_file=True),
    Route("POST", "/try/open", trying.open_trial, is_slow=True),
    Route("POST", "/try/end", trying.end_trial),
    Route("POST", "/try/persona", trying.bring_persona),
    Route("POST", "/try/turn", trying.bring_turn),
    Route("GET", "/try/pictures/{number}", trying.send_picture, is_slow=True),
    Route("GET", "/try/live", trying.stream_news, is_slow=True),
    Route("GET", "/try/turns/{id}", trying.show_turn),
    Route("GET", "/try/turns/{id}/json", trying.send_turn),
    Route("GET", "/try/silent/{where}/{id}", trying.show_silence),
)


@web.middleware
async def mask_secrets(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Hide secrets in every answer whose handler has not."""
    answer = await handler(request)
    if isinstance(answer, web.Response) and not isinstance(answer, MaskedResponse):
        answer.text = request.app[SOURCES].mask(answer.text or "")
    return answer


@web.middleware
async def identify_visitor(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Determine language, client address and login. A request to a foreign host counts as one to
    ours until `check_host` refuses it, because the refusal is a page too.
    """
    origins = request.app[ORIGINS]
    forwarded = request.headers.getall("X-Forwarded-For", ())
    origin = origins.find(request.headers.get("Host", "")) or origins.first
    cookie = request.cookies.get(cookie_name(origin), "")
    login = request.app[LOGINS].find(cookie) if cookie else None
    request[LANGUAGE] = choose_language(request)
    request[ADDRESS] = peer_address(request.remote or "", forwarded, proxy=request.app[PROXY])
    request[ORIGIN] = origin
    request[COOKIE] = cookie if login else ""
    if login is not None:
        request[LOGIN] = login
    return await handler(request)


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a refused or failed request: a page for people, a line for programs."""
    try:
        return await handler(request)
    except RequestRefused as error:
        refused = error
    except TimeoutError:
        refused = RequestRefused(503, "slow")
    except ConnectionError:  # the client has left
        return web.Response(status=400)
    except Exception:
        logger.exception("the console could not answer %s", request.method)
        refused = RequestRefused(500, "failed")
    if HTML in request.headers.get("Accept", ""):
        return render_refusal(request, refused)
    words = language_named("en")(refused.key, **refused.values)
    return web.Response(status=refused.status, text=words)


@web.middleware
async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests to hosts that are not ours, and those whose proxy hides the host."""
    origins = request.app[ORIGINS]
    origin = origins.find(request.headers.get("Host", ""))
    if origin is None:
        raise RequestRefused(421, "host", address=origins.near.text)
    if origins.is_lost(origin, request.headers.get("Origin", ""), request.path):
        raise RequestRefused(421, "proxy", origin=origins.first.url(""))
    return await handler(request)


@web.middleware
async def refuse_expectations(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse `Expect`, which no browser sends."""
    if request[IS_EXPECTING]:
        raise RequestRefused(417, "expectation")
    return await handler(request)


@web.middleware
async def check_sender(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Accept changes only from our own pages."""
    if request.method in CHANGES:
        site = request.headers.get("Sec-Fetch-Site")
        if site is not None:
            if site != "same-origin":
                raise RequestRefused(403, "other_page")
        elif request.headers.get("Origin") != request[ORIGIN].text:
            raise RequestRefused(403, "unknown_page")
    return await handler(request)


@web.middleware
async def answer_missing(request: web.Request, handler: Handler) -> web.StreamResponse:
    """For a missing page, redirect to the login page, or from an action's address to the page above
    it, because a browser keeps that address after the action.
    """
    missing = request.match_info.http_exception
    if missing is None:
        return await handler(request)
    is_in, is_read = LOGIN in request, request.method in READS
    if is_read and not is_in:
        return _to_login(request)
    if is_read and isinstance(missing, web.HTTPMethodNotAllowed):
        above = request[ORIGIN].path(request.rel_url.raw_path).rpartition("/")[0]
        return redirect(request, above or "/")
    raise RequestRefused(404 if is_in else 403, "page")


@web.middleware
async def require_login(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Show visitors without a login public pages only."""
    route = _route(request)
    if route.is_public or LOGIN in request:
        return await handler(request)
    if request.method in READS and not route.is_slow:
        return _to_login(request)
    raise RequestRefused(401, "login")


@web.middleware
async def parse_form(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Read the form of a change; it must come from a page of the same login."""
    request[FIELDS], request[FILE] = {}, b""
    if request.method in CHANGES:
        route = _route(request)
        fields, file = await read_form(request, takes_file=route.takes_file)
        if not route.is_public and not is_form_token(request[COOKIE], fields.get("form", "")):
            raise RequestRefused(403, "old_form")
        request[FIELDS], request[FILE] = fields, file
    return await handler(request)


@web.middleware
async def limit_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    async with asyncio.timeout(None if _route(request).is_slow else DEADLINE):
        return await handler(request)


GUARDS: Final = (
    mask_secrets,
    identify_visitor,
    answer_errors,
    check_host,
    refuse_expectations,
    check_sender,
    answer_missing,
    require_login,
    parse_form,
    limit_time,
)
"""From the outermost to the one next to the handler."""

TABLE: Final = web.AppKey[dict[web.AbstractRoute, Route]]("table")


def _route(request: web.Request) -> Route:
    return request.app[TABLE][request.match_info.route]


def _to_login(request: web.Request) -> web.Response:
    """Redirect to the login page. The `#` is needed because browsers keep a fragment over a
    redirect without one, and the page would take it for a link's code.
    """
    return redirect(request, "/login#")


def build_app(
    sources: Sources,
    *,
    logins: Logins,
    origins: Origins,
    proxy: str = "",
    routes: Sequence[Route] = ROUTES,
) -> web.Application:
    """Build the console. X-Forwarded-For is trusted from the address `proxy`."""
    static_files = StaticFiles()
    app = web.Application(middlewares=GUARDS)
    app[SOURCES] = sources
    app[LOGINS] = logins
    app[ORIGINS] = origins
    app[PROXY] = proxy
    app[STATIC_FILES] = static_files
    app[TEMPLATES] = load_templates(mask=sources.mask, static_path=static_files.path)
    app[live.STREAMS] = Counter()
    app[tools.CALL] = asyncio.Lock()
    app[health.DOCTOR] = health.Doctor()
    app[TABLE] = table = {}
    prefix = origins.first.prefix
    for route in routes:
        pattern = PARAMETER.sub(rf"{{\1:{ONE_PART}}}", route.path)
        paths = {pattern, prefix + pattern}  # a proxy may remove the prefix
        if route.path == "/" and prefix:
            paths.add(prefix)
        for path in sorted(paths):
            for method in READS if route.method == "GET" else (route.method,):
                table[app.router.add_route(method, path, route.handler)] = route
    return app
