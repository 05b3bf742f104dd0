"""Login, logout, and the page of open logins and of the audit log."""

from __future__ import annotations

import re

from aiohttp import web

from adapters.console.guard import logged_in
from adapters.console.language import LANGUAGE_COOKIE, LANGUAGES
from adapters.console.logins import LOGIN_LONGEST, Logins
from adapters.console.rendering import Pages, redirect
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note

SHOWN = 50  # lines of the audit
OWN_PATH = re.compile(r"/(?![/\\])[!-~]*")
"""Browsers take tabs out of an address: `/\t/evil.example` is `//evil.example`."""

YEAR = 365 * 86_400
TOLD = (
    "有人登录了控制台（来自 {address}）。不是你的话，请换掉 CONSOLE_TOKEN 并重启。",
    (
        "Somebody logged in to the console (from {address}). If it was not you: change "
        "CONSOLE_TOKEN, and restart."
    ),
)


class AccessPages:
    """The pages about who may see the others."""

    def __init__(self, pages: Pages, logins: Logins, sources: Sources) -> None:
        self._pages = pages
        self._logins = logins
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/login", self.ask, Access.ANYBODY),
            Route("POST", "/login", self.enter, Access.ANYBODY),
            Route("POST", "/language", self.speak, Access.ANYBODY),
            Route("POST", "/logout", self.leave, Access.LOGGED_IN),
            Route("GET", "/access", self.look, Access.LOGGED_IN),
            Route("POST", "/access/end", self.end_all, Access.LOGGED_IN),
        )

    async def ask(self, visit: Visit) -> web.Response:
        """The login page. Who is logged in is sent on, without the code of the link."""
        if visit.login:
            first = self._sources.first
            return redirect(visit, first if "#" in first else f"{first}#")
        return self._pages.show(visit, "login", trouble="", asks=self._logins.totp.is_on)

    async def enter(self, visit: Visit) -> web.Response:
        """Log in with the token, or with the code of a link."""
        asks = self._logins.totp.is_on
        if not self._logins.tries.admit():
            return self._pages.show(visit, "login", status=429, trouble="login.wait", asks=asks)
        code, token = visit.fields.get("code", ""), visit.fields.get("token", "").strip()
        cookie = None
        if asks and not self._logins.totp.use(visit.fields.get("totp", "")):
            pass  # the answer does not say which of the two was wrong
        elif code:
            cookie = self._logins.by_code(code, visit.address)
        else:
            cookie = self._logins.by_token(token, visit.address)
        if cookie is None:
            self.audit(visit, "login", outcome="refused")
            trouble = "login.link" if code else "login.wrong"
            trouble = "login.both" if asks else trouble
            return self._pages.show(visit, "login", status=403, trouble=trouble, asks=asks)
        login = self._logins.find(cookie)
        name = login.name if login else ""
        line = TOLD[self._sources.tongue].format(address=visit.address)
        self._sources.tell(f"console {name}", line)
        self.audit(visit, "login", login=name)
        return logged_in(redirect(visit, self._sources.first), visit.origin, cookie, LOGIN_LONGEST)

    async def speak(self, visit: Visit) -> web.Response:
        """Set the language of this browser."""
        language = visit.fields.get("language", "")
        answer = redirect(visit, _own_path(visit))
        if language in LANGUAGES:
            answer.set_cookie(
                LANGUAGE_COOKIE,
                language,
                path="/",
                max_age=YEAR,
                secure=visit.origin.is_secure,
                httponly=True,
                samesite="Strict",
            )
        return answer

    async def leave(self, visit: Visit) -> web.Response:
        """Log out."""
        self._logins.end(visit.cookie)
        self.audit(visit, "logout")
        return logged_in(redirect(visit, "/login"), visit.origin, "", 0)

    async def look(self, visit: Visit) -> web.Response:
        """The open logins and the audit log."""
        lines = await self._sources.audits.audit(latest=SHOWN)
        return self._pages.show(visit, "access", logins=self._logins.open, lines=lines)

    async def end_all(self, visit: Visit) -> web.Response:
        """End all logins, including this one."""
        count = self._logins.end_all()
        self.audit(visit, "end all logins", what=str(count))
        return logged_in(redirect(visit, "/login"), visit.origin, "", 0)

    def audit(
        self, visit: Visit, action: str, *, what: str = "", outcome: str = "ok", login: str = ""
    ) -> None:
        """Record an action."""
        note(self._sources, visit, action, what=what, outcome=outcome, login=login)


def _own_path(visit: Visit) -> str:
    """The path to return to: one of ours, never another host."""
    own = visit.origin.path(visit.fields.get("back", "/")) or "/"
    return own if OWN_PATH.fullmatch(own) else "/"
