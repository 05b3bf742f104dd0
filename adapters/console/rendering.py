"""Renders templates to pages and serves styles and scripts. All values are escaped; a missing name
is an error.

Browsers cache static files for good: their folder's name is a hash of their content. Memory is
released after each page, because an operator looks for minutes and the bot runs for weeks.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adapters.console.http import ORIGIN, RequestRefused
from adapters.console.language import LANGUAGE, clock, day, dollars, moment, money, share, tokens
from adapters.console.logins import COOKIE, LOGIN, form_token
from adapters.console.sources import SOURCES

HERE = Path(__file__).parent
STATIC_FOLDER = HERE / "static"
CACHED_FOR_GOOD = {"Cache-Control": "max-age=31536000, immutable"}
MIME_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HTML = "text/html"
NAVIGATION = (
    "today",
    "turns",
    "approvals",
    "cost",
    "chats",
    "jobs",
    "persona",
    "tools",
    "health",
    "try",
    "access",
)
AT_HAND = 4  # pages in a phone's bar; the others are behind "more"
WRONG_HOST = 421


class MaskedResponse(web.Response):
    """A response whose secrets are already masked. Other responses are masked as a whole, which
    would break a stylesheet if a key is as short as `none`.
    """


class StaticFiles:
    """The files are read once, so no request opens one. `path` is their folder in URLs."""

    def __init__(self) -> None:
        self._files = {
            file.name: (file.read_text("utf-8"), MIME_TYPES[file.suffix])
            for file in sorted(STATIC_FOLDER.iterdir())
            if file.suffix in MIME_TYPES
        }
        self._version = hashlib.sha256(repr(self._files).encode()).hexdigest()[:12]
        self.path = f"/static/{self._version}"

    def response(self, version: str, name: str) -> web.Response:
        """A file; under another version's name it is not cacheable."""
        found = self._files.get(name)
        if found is None:
            return web.Response(status=404, text="there is no such file")
        kept = CACHED_FOR_GOOD if version == self._version else None
        return MaskedResponse(text=found[0], content_type=found[1], charset="utf-8", headers=kept)


TEMPLATES: Final = web.AppKey("templates", Environment)
STATIC_FILES: Final = web.AppKey("static_files", StaticFiles)


async def send_static_file(request: web.Request) -> web.Response:
    at = request.match_info
    return request.app[STATIC_FILES].response(at["version"], at["name"])


def load_templates(*, mask: Callable[[str], str], static_path: str) -> Environment:
    """The templates; `mask` hides secrets in every value inserted into a page."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        finalize=lambda value: value if hasattr(value, "__html__") else mask(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals["statics"] = static_path
    templates.globals["at_hand"] = NAVIGATION[:AT_HAND]
    templates.globals["others"] = NAVIGATION[AT_HAND:]
    templates.globals["share"] = share
    for read in (moment, clock, day, money, dollars, tokens):
        templates.filters[read.__name__] = read
    return templates


def render(request: web.Request, name: str, *, status: int = 200, **values: Any) -> web.Response:
    login, cookie = request.get(LOGIN), request[COOKIE]
    template = request.app[TEMPLATES].get_template(f"{name}.html")
    text = template.render(
        t=request[LANGUAGE],
        page=name,
        root=request[ORIGIN].prefix,
        login=login,
        form=form_token(cookie) if cookie else "",
        waiting=request.app[SOURCES].waiting() if login else 0,
        path=request.path_qs,
        **values,
    )
    release_memory()
    return MaskedResponse(text=text, status=status, content_type=HTML)


def render_missing(request: web.Request, *, is_away: bool = False) -> web.Response:
    """The page for something that does not exist, or for a journal that `is_away`."""
    return render(request, "missing", status=503 if is_away else 404, is_away=is_away)


def render_refusal(request: web.Request, refused: RequestRefused) -> web.Response:
    """A page with the reason of a refusal. For a foreign host it has no styles and no links,
    because nothing of ours is there.
    """
    speech, status = request[LANGUAGE], refused.status
    key = f"refused.{status}" if speech.has(f"refused.{status}") else "refused.other"
    name = "elsewhere" if status == WRONG_HOST else "refused"
    detail = speech(refused.key, **refused.values)
    return render(request, name, status=status, said=speech(key), detail=detail)


def release_memory() -> None:
    """Return free memory to the system: 0.1 ms per page for a third of the console's memory."""
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
