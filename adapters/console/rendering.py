"""Templates to pages: everything is escaped, and a name that is not there is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adapters.console.figures import clock, day, dollars, moment, money, share, tokens
from adapters.console.leftovers import let_go
from adapters.console.logins import form_token
from adapters.console.routes import Own, Visit
from adapters.console.speech import speech_for

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

ELSEWHERE = 421
AT_HAND = 4  # pages in the bar of a phone; the others stand behind "more"


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
        speech = speech_for(visit.request)
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
        let_go()
        return Own(text=text, status=status, content_type=HTML)

    def refuse(self, visit: Visit, status: int, words: str) -> web.Response:
        """A page that says why there is none. Whoever came to another host gets it bare: a browser
        finds nothing of ours there.
        """
        speech = speech_for(visit.request)
        key = f"refused.{status}" if speech.has(f"refused.{status}") else "refused.other"
        name = "elsewhere" if status == ELSEWHERE else "refused"
        return self.show(visit, name, status=status, said=speech(key), detail=words)


def go(visit: Visit, path: str) -> web.Response:
    """To another page, after something was done."""
    return web.Response(status=303, headers={"Location": f"{visit.origin.prefix}{path}"})
