"""The styles and scripts of the console: the files there are, known by name beforehand.

Browsers keep them: their folder is named for what is in them, and another version has another.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from aiohttp import web

from adapters.console.routes import Access, Own, Route, Visit

FOLDER = Path(__file__).parent / "static"
KEPT = {"Cache-Control": "max-age=31536000, immutable"}
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Statics:
    """Read once; a name that is asked for is looked up, never opened. `path` is where they are."""

    def __init__(self) -> None:
        self._files = {
            file.name: (file.read_text("utf-8"), KINDS[file.suffix])
            for file in sorted(FOLDER.iterdir())
            if file.suffix in KINDS
        }
        self._version = hashlib.sha256(repr(self._files).encode()).hexdigest()[:12]
        self.path = f"/static/{self._version}"

    @property
    def routes(self) -> tuple[Route, ...]:
        """The one for all of them: the page where one logs in needs them, too."""
        return (Route("GET", "/static/{version}/{name}", self.give, Access.ANYBODY),)

    async def give(self, visit: Visit) -> web.Response:
        """A file; what was asked for as another version's is not to be kept as that."""
        found = self._files.get(visit.at["name"])
        if found is None:
            return web.Response(status=404, text="there is no such file")
        kept = KEPT if visit.at["version"] == self._version else None
        return Own(text=found[0], content_type=found[1], charset="utf-8", headers=kept)
