"""Login, logout, the language, and the page of open logins and of the audit log."""

from __future__ import annotations

import re

from aiohttp import web

from adapters.console.http import ADDRESS, FIELDS, ORIGIN, cookie_name, redirect
from adapters.console.language import LANGUAGE, LANGUAGE_COOKIE, LANGUAGES, Language
from adapters.console.logins import COOKIE, LOGIN, LOGIN_LONGEST, LOGINS
from adapters.console.rendering import render
from adapters.console.sources import SOURCES, note
from bot.core.journal import Audited
from bot.core.language import CATALOGUE, Phrase

SHOWN = 50  # lines of the audit
OWN_PATH = re.compile(r"/(?![/\\])[!-~]*")
"""Browsers take tabs out of an address: `/\t/evil.example` is `//evil.example`."""

YEAR = 365 * 86_400
TOLD = Phrase(
    "有人登录了控制台（来自 {address}）。不是你的话，请换掉 CONSOLE_TOKEN 并重启。",
    "Somebody logged in to the console (from {address}). If it was not you: change "
    "CONSOLE_TOKEN, and restart.",
)
CATALOGUE.register(__name__, globals())


async def show_login(request: web.Request) -> web.Response:
    """The login page. Visitors with a login are sent on, without the code of the link."""
    if LOGIN in request:
        first = request.app[SOURCES].first
        return redirect(request, first if "#" in first else f"{first}#")
    return _render_login(request)


async def log_in(request: web.Request) -> web.Response:
    logins, sources, fields = request.app[LOGINS], request.app[SOURCES], request[FIELDS]
    asks, address = logins.totp.is_on, request[ADDRESS]
    if not logins.tries.admit():
        return _render_login(request, "login.wait", status=429)
    code, token = fields.get("code", ""), fields.get("token", "").strip()
    cookie = None
    if asks and not logins.totp.use(fields.get("totp", "")):
        pass  # the answer does not say which of the two was wrong
    elif code:
        cookie = logins.by_code(code, address)
    else:
        cookie = logins.by_token(token, address)
    if cookie is None:
        note(request, "login", outcome="refused")
        trouble = "login.both" if asks else "login.link" if code else "login.wrong"
        return _render_login(request, trouble, status=403)
    login = logins.find(cookie)
    name = login.name if login else ""
    sources.tell(f"console {name}", TOLD.format(sources.language, address=address))
    note(request, "login", login=name)
    answer = redirect(request, sources.first)
    _set_cookie(request, answer, cookie_name(request[ORIGIN]), cookie, int(LOGIN_LONGEST))
    return answer


async def set_language(request: web.Request) -> web.Response:
    language = request[FIELDS].get("language", "")
    answer = redirect(request, _own_path(request))
    if language in LANGUAGES:
        _set_cookie(request, answer, LANGUAGE_COOKIE, language, YEAR)
    return answer


async def log_out(request: web.Request) -> web.Response:
    request.app[LOGINS].end(request[COOKIE])
    note(request, "logout")
    return _forget_login(request)


async def show_access(request: web.Request) -> web.Response:
    speech, found = request[LANGUAGE], await request.app[SOURCES].audits(SHOWN)
    lines = (
        None
        if found is None
        else [
            (line, describe_object(speech, line), describe_audit_outcome(speech, line))
            for line in found
        ]
    )
    return render(request, "access", logins=request.app[LOGINS].open, lines=lines)


async def end_all_logins(request: web.Request) -> web.Response:
    count = request.app[LOGINS].end_all()
    note(request, "end all logins", what=str(count))
    return _forget_login(request)


def describe_object(speech: Language, line: Audited) -> str:
    """The object of an action; the audit log stores the size of a trial in English."""
    match line.action, line.object.split():
        case "tried", [requests, "request," | "requests,", tokens, "tokens"]:
            return speech("access.taken", count=requests, tokens=tokens)
        case "tried", _:
            return line.object
        case action, _:
            return speech.of(f"access.what.{action}", speech.place_named(line.object))


def describe_audit_outcome(speech: Language, line: Audited) -> str:
    """The outcome of an action; the audit log stores codes, and the doctor's figures in English."""
    match line.outcome.split():
        case [bad, "of", total, "to", "mend"]:
            return speech("access.to_mend", bad=bad, total=total)
        case ["refused:", reason] if speech.has(f"access.refused.{reason}"):
            return speech(f"access.refused.{reason}")
        case _:
            is_tool = line.outcome.startswith("TOOL_")
            return speech.of("outcome" if is_tool else "access.came", line.outcome)


def _render_login(request: web.Request, trouble: str = "", *, status: int = 200) -> web.Response:
    asks = request.app[LOGINS].totp.is_on
    return render(request, "login", status=status, trouble=trouble, asks=asks)


def _forget_login(request: web.Request) -> web.Response:
    answer = redirect(request, "/login")
    _set_cookie(request, answer, cookie_name(request[ORIGIN]), "", 0)
    return answer


def _set_cookie(
    request: web.Request, answer: web.Response, name: str, value: str, seconds: int
) -> None:
    answer.set_cookie(
        name,
        value,
        path="/",
        max_age=seconds,
        secure=request[ORIGIN].is_secure,
        httponly=True,
        samesite="Strict",
    )


def _own_path(request: web.Request) -> str:
    """The path to return to: always one of ours, never another host."""
    own = request[ORIGIN].path(request[FIELDS].get("back", "/"))
    return own if OWN_PATH.fullmatch(own) else "/"
