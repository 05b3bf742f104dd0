"""Renders templates to pages and serves styles and scripts. Everything is escaped; a missing name
is an error.

Browsers keep static files: their folder is named for their content, and another version has another
name. Memory is returned after each page: an operator looks for minutes, the bot runs for weeks.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adapters.console.language import clock, day, dollars, language_of, moment, money, share, tokens
from adapters.console.logins import form_token
from adapters.console.routes import Access, MaskedResponse, Route, Visit

STATIC_FOLDER = Path(__file__).parent / "static"
CACHED_FOR_GOOD = {"Cache-Control": "max-age=31536000, immutable"}
MIME_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HERE = Path(__file__).parent
HTML = "text/html"
NAVIGATION = (
    "today",
    "turns",
    "approvals",
    "cost",
    "chats",
    "persona",
    "tools",
    "health",
    "try",
    "access",
)
WRONG_HOST = 421
AT_HAND = 4  # pages in the bar of a phone; the others stand behind "more"


def release_memory() -> None:
    """Return free memory to the system: 0.1 ms a page for a third of the console's memory."""
    gc.collect(0)
    malloc_trim()(0)


@cache
def malloc_trim() -> Callable[[int], object]:
    """The C library's function; a no-op on systems without it (macOS, Alpine)."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return bool
    return found


class StaticFiles:
    """The files are read once, so a request never opens one. `path` is their folder in URLs."""

    def __init__(self) -> None:
        self._files = {
            file.name: (file.read_text("utf-8"), MIME_TYPES[file.suffix])
            for file in sorted(STATIC_FOLDER.iterdir())
            if file.suffix in MIME_TYPES
        }
        self._version = hashlib.sha256(repr(self._files).encode()).hexdigest()[:12]
        self.path = f"/static/{self._version}"

    @property
    def routes(self) -> tuple[Route, ...]:
        """One public route: the login page needs the files too."""
        return (Route("GET", "/static/{version}/{name}", self.give, Access.ANYBODY),)

    async def give(self, visit: Visit) -> web.Response:
        """A file; under another version's name it is not cacheable."""
        found = self._files.get(visit.at["name"])
        if found is None:
            return web.Response(status=404, text="there is no such file")
        kept = CACHED_FOR_GOOD if visit.at["version"] == self._version else None
        return MaskedResponse(text=found[0], content_type=found[1], charset="utf-8", headers=kept)


class Pages:
    """Renders pages for visits."""

    def __init__(
        self, *, mask: Callable[[str], str], waiting: Callable[[], int], statics: str
    ) -> None:
        """`mask` keeps secrets out of every value that is put into a page, `waiting` is how much
        waits for an owner's word: every page says so. `statics` is the path of styles and scripts.
        """
        self._waiting = waiting
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            finalize=lambda value: value if hasattr(value, "__html__") else mask(str(value)),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        first = NAVIGATION[:AT_HAND]
        self._templates.globals["statics"] = statics
        self._templates.globals["at_hand"] = first
        self._templates.globals["others"] = NAVIGATION[AT_HAND:]
        for read in (moment, clock, day, money, dollars, tokens):
            self._templates.filters[read.__name__] = read
        self._templates.globals["share"] = share

    def show(self, visit: Visit, name: str, *, status: int = 200, **values: Any) -> web.Response:
        """A page: the template of this name with these values."""
        speech = language_of(visit.request)
        text = self._templates.get_template(f"{name}.html").render(
            t=speech,
            page=name,
            root=visit.origin.prefix,
            login=visit.login,
            form=form_token(visit.cookie) if visit.cookie else "",
            waiting=self._waiting() if visit.login else 0,
            path=visit.request.path_qs,
            **values,
        )
        release_memory()
        return MaskedResponse(text=text, status=status, content_type=HTML)

    def refuse(self, visit: Visit, status: int, words: str) -> web.Response:
        """A page that says why there is none. Whoever came to another host gets it bare: a browser
        finds nothing of ours there.
        """
        speech = language_of(visit.request)
        key = f"refused.{status}" if speech.has(f"refused.{status}") else "refused.other"
        name = "elsewhere" if status == WRONG_HOST else "refused"
        return self.show(visit, name, status=status, said=speech(key), detail=words)


def redirect(visit: Visit, path: str) -> web.Response:
    """To another page, after something was done."""
    return web.Response(status=303, headers={"Location": f"{visit.origin.prefix}{path}"})
