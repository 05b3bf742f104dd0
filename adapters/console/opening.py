"""How a simulated group is opened on the console's pages, and what is brought along: an unsaved
persona, a question that somebody asked, words for a group that has ended.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web
from msgspec.structs import replace

from adapters.console.guard import RequestRefused
from adapters.console.rendering import Pages, go
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from bot.domain.console_views import TurnRow
from bot.domain.trial_group import Source, TrialOptions

LONGEST = 2000  # characters of a line
PERSONA = 6000  # and of a persona's text
BASE = "/try"


class OpeningPages:
    """The page on which one is opened, and the ways there."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources
        self._trying = sources.trying

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        inside = Access.LOGGED_IN
        return (
            Route("POST", "/try/open", self.open, inside, lasts=True),
            Route("POST", "/try/end", self.end, inside),
            Route("POST", "/try/persona", self.bring_persona, inside),
            Route("POST", "/try/turn", self.bring_turn, inside),
        )

    async def open(self, visit: Visit) -> web.Response:
        """Open one; the one that was open ends."""
        wanted = TrialOptions(
            is_real=visit.fields.get("model") == "real",
            key=visit.fields.get("key", "")[:80],
            text=words_of(visit.fields.get("persona", ""))[:PERSONA],
            asker=visit.fields.get("asker", "")[:LONGEST],
            question=words_of(visit.fields.get("question", ""))[:LONGEST],
        )
        if turn := visit.fields.get("turn", ""):  # read anew: it may be forgotten by now
            row, is_away = await self._turn(turn)
            if is_away:  # the question is not lost for that
                said = "try.trouble.failed"
                return self.begin(visit, wanted, turn=turn, trouble=said, status=503)
            wanted = replace(wanted, **asked_again(row))
        try:
            trouble = await self._trying.open(wanted)
        except TimeoutError:
            trouble = "failed"
        what = "real model" if wanted.is_real else "demo model"
        note(self._sources, visit, "try out", what=what, outcome=trouble or "ok")
        if trouble == "forgotten":
            wanted, turn = replace(wanted, asker="", question="", source=None), ""
        if trouble:
            said = f"try.trouble.{trouble}"
            return self.begin(visit, wanted, turn=turn, trouble=said, status=503)
        return go(visit, f"{BASE}#say")

    async def end(self, visit: Visit) -> web.Response:
        """End the one that is open."""
        await self._trying.end()
        return go(visit, BASE)

    async def bring_persona(self, visit: Visit) -> web.Response:
        """The way to try a text that is in use nowhere."""
        text = words_of(visit.fields.get("text", ""))
        if not text or len(text) > PERSONA:
            raise RequestRefused(400, "a persona has some words, and not too many")
        return self.begin(visit, TrialOptions(key=visit.fields.get("key", "")[:80], text=text))

    async def bring_turn(self, visit: Visit) -> web.Response:
        """The way to ask once more what somebody asked."""
        turn = visit.fields.get("turn", "")
        row, is_away = await self._turn(turn)
        if row is None:
            status = 503 if is_away else 404
            return self._pages.show(visit, "missing", status=status, is_away=is_away)
        wanted = TrialOptions(**asked_again(row))
        if (trial := self._trying.current) is None:
            return self.begin(visit, wanted, turn=turn)
        trial.propose(wanted.asker, wanted.question, wanted.source)
        self._trying.touch()
        return go(visit, f"{BASE}#say")

    async def _turn(self, turn_id: str) -> tuple[TurnRow | None, bool]:
        """A turn of the bot's journal; or that there is none, and whether that is away."""
        found = await self._sources.showing.trace(turn_id)
        return found[0].row if found else None, found is None

    def ended(self, visit: Visit, who: str, text: str) -> web.Response:
        """The way to another one, which what was typed is taken along to."""
        wanted = TrialOptions(asker=who, question=text)
        return self.begin(visit, wanted, trouble="try.trouble.ended", status=409)

    def begin(
        self,
        visit: Visit,
        wanted: TrialOptions,
        *,
        turn: str = "",
        trouble: str = "",
        status: int = 200,
    ) -> web.Response:
        """How to open one; what is wanted of it is brought along."""
        return self._pages.show(
            visit,
            "try_begin",
            status=status,
            wanted=wanted,
            turn=turn,
            persona=self.called(wanted.key),
            ceiling=self._trying.ceiling,
            is_open=self._trying.can_end,
            last=self._trying.last,
            trouble=trouble,
        )

    def called(self, key: str) -> str:
        """The name of the persona of this key."""
        return next((one.name for one in self._sources.personas() if one.key == key), key)


def asked_again(row: TurnRow | None) -> dict[str, Any]:
    """The wish for a trial in which the question of a turn stands ready."""
    if row is None:
        return {"asker": "", "question": ""}
    source = Source(row.asker, row.where.session_id if row.where.is_group else 0)
    asker = row.name or str(row.asker)
    return {"asker": asker, "question": row.text[:LONGEST], "source": source}


def words_of(given: str) -> str:
    """The words typed into a field of several lines."""
    return given.replace("\r\n", "\n").strip()
