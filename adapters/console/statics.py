"""The styles and scripts of the console: the files there are, known by name beforehand."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from adapters.console.routes import Access, Own, Route, Visit

FOLDER = Path(__file__).parent / "static"
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Statics:
    """Read once; a name that is asked for is looked up, never opened."""

    def __init__(self) -> None:
        self._files = {
            file.name: (file.read_text("utf-8"), KINDS[file.suffix])
            for file in sorted(FOLDER.iterdir())
            if file.suffix in KINDS
        }

    @property
    def routes(self) -> tuple[Route, ...]:
        """The one for all of them: the page where one logs in needs them, too."""
        return (Route("GET", "/static/{name}", self.give, Access.ANYBODY),)

    async def give(self, visit: Visit) -> web.Response:
        """A file."""
        found = self._files.get(visit.at["name"])
        if found is None:
            return web.Response(status=404, text="there is no such file")
        return Own(text=found[0], content_type=found[1], charset="utf-8")
