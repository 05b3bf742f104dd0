"""The simulated group in the browser: talk to the bot without QQ. Opening one may bring along an
unsaved persona or an earlier question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web
from msgspec import Struct, structs

from adapters.console.guard import RequestRefused
from adapters.console.language import language_of
from adapters.console.live import LivePages
from adapters.console.rendering import Pages, redirect
from adapters.console.routes import Access, MaskedResponse, Route, Visit
from adapters.console.sources import Sources, note
from adapters.console.turns import TurnPages, ending, number_in, tone_of
from bot.domain.cancellation import BROKEN, isolate
from bot.domain.console_views import ChatLine, TurnQuery, TurnRow
from bot.domain.errors import MediaError
from bot.domain.trial_group import Source, Trial, TrialLine, TrialOptions

MAX_LINE = 2000  # characters of a line
MAX_PERSONA = 6000  # and of a persona's text
BASE = "/try"
ANSWER_WITHIN = 7.0  # seconds for an answer, until the page is shown without it
SENT_WITHIN = 20.0  # seconds for a picture to be unpacked, and an answer
NOTHING = ChatLine(message_id="", at=0.0, sender=0, name="", text="")


class OpeningPages:
    """The page that opens a simulated group, and the forms that lead to it."""

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
            text=words_of(visit.fields.get("persona", ""))[:MAX_PERSONA],
            asker=visit.fields.get("asker", "")[:MAX_LINE],
            question=words_of(visit.fields.get("question", ""))[:MAX_LINE],
        )
        if turn := visit.fields.get("turn", ""):  # read anew: it may be forgotten by now
            row, is_away = await self._turn(turn)
            if is_away:  # the question is not lost for that
                said = "try.trouble.failed"
                return self.begin(visit, wanted, turn=turn, trouble=said, status=503)
            wanted = msgspec.structs.replace(wanted, **asked_again(row))
        try:
            trouble = await self._trying.open(wanted)
        except TimeoutError:
            trouble = "failed"
        what = "real model" if wanted.is_real else "demo model"
        note(self._sources, visit, "try out", what=what, outcome=trouble or "ok")
        if trouble == "forgotten":
            wanted, turn = msgspec.structs.replace(wanted, asker="", question="", source=None), ""
        if trouble:
            said = f"try.trouble.{trouble}"
            return self.begin(visit, wanted, turn=turn, trouble=said, status=503)
        return redirect(visit, f"{BASE}#say")

    async def end(self, visit: Visit) -> web.Response:
        """End the one that is open."""
        await self._trying.end()
        return redirect(visit, BASE)

    async def bring_persona(self, visit: Visit) -> web.Response:
        """The way to try a text that is in use nowhere."""
        text = words_of(visit.fields.get("text", ""))
        if not text or len(text) > MAX_PERSONA:
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
        return redirect(visit, f"{BASE}#say")

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
    """The fields of `TrialOptions` for asking the question of a turn again."""
    if row is None:
        return {"asker": "", "question": ""}
    source = Source(row.asker, row.where.session_id if row.where.is_group else 0)
    asker = row.name or str(row.asker)
    return {"asker": asker, "question": row.text[:MAX_LINE], "source": source}


def words_of(given: str) -> str:
    """The text of a multi-line field."""
    return given.replace("\r\n", "\n").strip()


class LineText(Struct, frozen=True):
    """A line, and why the bot answered it or did not: what woke it or kept it silent, and the turn
    with what it took and how it `ended`, in which `tone`.
    """

    line: TrialLine
    why: str = ""
    wakes: bool = False
    state: str = ""
    turn: TurnRow | None = None
    where: str = ""
    ended: str = ""
    tone: str = ""


class TryPages:
    """The page, what is said there, and the turns that come of it."""

    def __init__(self, pages: Pages, sources: Sources, live: LivePages) -> None:
        self._pages = pages
        self._sources = sources
        self._trying = sources.trying
        self._live = live
        self._opening = OpeningPages(pages, sources)

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        inside = Access.LOGGED_IN
        return (
            *self._opening.routes,
            Route("GET", "/try", self.look, inside),
            Route("POST", "/try", self.say, inside, lasts=True, takes_file=True),
            Route("GET", "/try/pictures/{number}", self.picture, inside, lasts=True),
            Route("GET", "/try/live", self.stream, inside, lasts=True),
            Route("GET", "/try/turns/{id}", self.trace, inside),
            Route("GET", "/try/turns/{id}/json", self.raw, inside),
            Route("GET", "/try/silent/{where}/{id}", self.silent, inside),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The group, or how to open one; another one, where that is asked for."""
        if (trial := self._trying.current) is None or visit.request.query.get("new") == "1":
            return self._opening.begin(visit, TrialOptions())
        return await self._show(visit, trial)

    async def say(self, visit: Visit) -> web.Response:
        """Say a line, or let something go wrong; what is answered soon is there on the page. What
        was typed is there still where nobody heard it.
        """
        who, text = visit.fields.get("as", ""), words_of(visit.fields.get("text", ""))[:MAX_LINE]
        if (trial := self._trying.current) is None:
            return self._opening.ended(visit, who, text)
        self._trying.touch()
        if visit.fields.get("trial", trial.name) != trial.name:
            return await self._show(visit, trial, "another", text=text, status=409)
        fault = visit.fields.get("fault", "")
        if who not in trial.people:
            return await self._show(visit, trial, "nobody", text=text, status=400)
        if fault and fault not in trial.faults:
            raise RequestRefused(400, "nothing of that kind goes wrong")
        if fault:
            await trial.inject_fault(fault)
        if not (text or visit.file):
            return redirect(visit, f"{BASE}?as={quote(who)}#say")
        if trial.lacks:  # the page says why
            return await self._show(visit, trial, text=text, status=409)
        asked = f"@bot {text}".strip() if visit.fields.get("call") == "1" else text
        patience, is_said = SENT_WITHIN if visit.file else ANSWER_WITHIN, False
        try:
            is_said = await trial.say(who, asked, visit.file, patience=patience)
        except MediaError:
            return await self._show(visit, trial, "picture", text=text, status=400)
        except BROKEN as error:
            isolate(error)
            if self._trying.current is trial:
                raise
        if self._trying.current is not trial:
            return self._opening.ended(visit, who, text)
        if not is_said:
            return await self._show(visit, trial, "unsaid", text=text, status=503)
        self._trying.touch()
        return redirect(visit, f"{BASE}?as={quote(who)}#say")

    async def picture(self, visit: Visit) -> web.Response:
        """A picture of a line, unpacked and packed anew by us."""
        try:
            data = await self._open().picture(number_in(visit.at["number"]))
        except MediaError:
            raise RequestRefused(404, "it cannot be shown any more") from None
        return MaskedResponse(body=data, content_type="image/jpeg")

    async def stream(self, visit: Visit) -> web.StreamResponse:
        """The news of the group."""
        return await self._live.follow(visit, self._open().feed)

    async def trace(self, visit: Visit) -> web.Response:
        """A turn of the group in full."""
        return await self._turns().trace(visit)

    async def raw(self, visit: Visit) -> web.Response:
        """The same as JSON."""
        return await self._turns().raw(visit)

    async def silent(self, visit: Visit) -> web.Response:
        """Why a message of the group was not answered."""
        return await self._turns().silent(visit)

    def _open(self) -> Trial:
        if (trial := self._trying.current) is None:
            raise RequestRefused(404, "nothing is tried out any more")
        return trial

    def _turns(self) -> TurnPages:
        """The pages of turns, of the journal of the trial."""
        showing = self._open().showing
        self._trying.touch()
        return TurnPages(self._pages, replace(self._sources, showing=showing, base=BASE))

    async def _show(
        self, visit: Visit, trial: Trial, trouble: str = "", *, text: str = "", status: int = 200
    ) -> web.Response:
        newest = trial.feed.number
        self._trying.touch()
        await trial.settle()
        draft = None if text else trial.draft
        speaker = visit.fields.get("as") or visit.request.query.get("as", "")
        return self._pages.show(
            visit,
            "try",
            status=status,
            trial=trial,
            lines=await self._told(visit, trial),
            people=trial.people,
            speaker=draft.who if draft else speaker,
            text=draft.text if draft else text,
            taken=await trial.taken(),
            can_end=self._trying.can_end,
            persona=self._opening.called(trial.wanted.key),
            trouble=f"try.trouble.{trouble}" if trouble else "",
            newest=newest,
        )

    async def _told(self, visit: Visit, trial: Trial) -> Sequence[LineText]:
        """The lines, each with why; a turn is told at the last that was said of it."""
        rows = await trial.showing.rows(TurnQuery())
        chat = await trial.showing.chat(trial.where, 0)
        judged = {one.message_id: one for one in chat.lines if one.message_id} if chat else {}
        turns = {row.turn_id: row for row in rows.rows if row.turn_id} if rows else {}
        speech = language_of(visit.request)

        def reason(key: str) -> str:
            return self._sources.explain.reason(key, chinese=speech.is_chinese) if key else ""

        overheard = speech("try.overheard")
        lines = _judge(trial.lines, judged, turns, str(trial.where), reason, overheard)
        return [
            structs.replace(
                one,
                ended=ending(self._sources, visit, one.turn.outcome),
                tone=tone_of(one.turn.outcome),
            )
            if one.turn is not None
            else one
            for one in lines
        ]


def _judge(
    lines: Sequence[TrialLine],
    judged: Mapping[str, ChatLine],
    turns: Mapping[str, TurnRow],
    where: str,
    reason: Callable[[str], str],
    overheard: str,
) -> Iterator[LineText]:
    woke = {one.turn_id: one.reason for one in judged.values() if one.wakes}
    known = [(judged[line.message_id], line) for line in lines if line.message_id in judged]
    last = {one.turn_id: line for one, line in known if one.is_own or one.wakes}
    for line in lines:
        one = judged.get(line.message_id, NOTHING)
        turn = turns.get(one.turn_id) if last.get(one.turn_id) is line else None
        if turn is not None:
            why = reason(woke.get(one.turn_id, ""))
        elif one.is_own or (one.wakes and one.turn_id in turns):
            why = ""
        else:
            why = reason(one.reason) or (overheard if one.message_id else "")
        yield LineText(line, why, one.wakes, one.state, turn, where)
