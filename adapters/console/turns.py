"""Questions and what became of them: in rows, and one in full."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, assert_never
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from adapters.console import choices
from adapters.console.guard import RequestRefused
from adapters.console.language import Language, clock, language_of, minute, money
from adapters.console.rendering import Pages
from adapters.console.routes import Access, MaskedResponse, Route, Visit
from adapters.console.sources import Sources
from bot.domain.console_views import UNANSWERED, Span, Trace, TurnQuery, TurnRow, TurnRows
from bot.domain.events import Conversation, NotAConversation
from bot.domain.journal import ENDINGS, Ending, Undelivered, Unfinished
from bot.domain.run import Stop

CUT = 400  # characters of a body, until somebody wants the whole
OUTCOMES: tuple[str, ...] = (
    *sorted(ENDINGS, key=lambda one: (one != Stop.ANSWERED, not isinstance(one, Undelivered))),
    UNANSWERED,
)
REQUESTS = {"model", "failed"}  # kinds of spans
NUMBER = re.compile(r"[0-9]{1,18}")
MONEY = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
HEADING = re.compile(r"^\[[^\]\n]{1,40}\]$", re.MULTILINE)


class RowText(Struct, frozen=True):
    """A row in words: when, who, what was said, how it ended, because of what, what it took, and
    where it leads.
    """

    when: str = ""
    who: str = ""
    said: str = ""
    ended: str = ""
    because: str = ""
    cost: str = ""
    tone: str = ""
    link: str = ""


class Bar(Struct, frozen=True):
    """A span on the line of time, in percent of the whole."""

    span: Span
    left: float
    width: float
    text: str
    asked: str
    thought: str
    is_cut: bool


class PromptBlock(Struct, frozen=True):
    """A part of the prompt, and its tokens by our estimate."""

    title: str
    text: str
    tokens: float


class TurnPages:
    """The rows and the trace."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/turns", self.rows, Access.LOGGED_IN),
            Route("GET", "/rows", self.fresh, Access.LOGGED_IN),
            Route("GET", "/turns/{id}", self.trace, Access.LOGGED_IN),
            Route("GET", "/turns/{id}/json", self.raw, Access.LOGGED_IN),
            Route("GET", "/silent/{where}/{id}", self.silent, Access.LOGGED_IN),
        )

    async def rows(self, visit: Visit) -> web.Response:
        """The rows that the filters leave, the latest first."""
        query, newest = query_of(visit), self._sources.feed.number
        sources, stranger = self._sources, ""
        if (typed := visit.request.query.get("asker", "").strip()) and not query.asker:
            query = msgspec.structs.replace(
                query, asker=choices.parse_person(typed, await choices.people(sources))
            )
            stranger = "" if query.asker else typed[:80]
        found = TurnRows((), None) if stranger else await sources.showing.rows(query)
        people = await choices.people(sources, found.rows if found else ())
        speech = language_of(visit.request)
        places = await choices.places(sources, speech, query.where)
        filters = _filters(query) | {
            "asker": stranger or choices.format_person(query.asker, people)
        }
        return self._pages.show(
            visit,
            "turns",
            rows=None if found is None else row_texts(sources, visit, found.rows),
            filters=filters,
            chosen=self._chosen(visit, filters, places),
            stranger=stranger,
            places=places,
            people=[choices.format_person(number, people) for number in people],
            tools=choices.tools(sources, query.tool),
            models=await choices.models(sources, query.model),
            outcomes=[(one, ending(self._sources, visit, one)) for one in OUTCOMES],
            query=urlencode(_kept(query)),
            following=_following(query, found),
            newest=None if query.turn or query.verdict else newest,
        )

    def _chosen(
        self, visit: Visit, filters: Mapping[str, str], places: Iterable[choices.Choice]
    ) -> list[str]:
        """The filters that are set, in words: the form itself is closed above the rows."""
        speech = language_of(visit.request)
        words = {
            "where": next((one.words for one in places if one.value == filters["where"]), ""),
            "outcome": ending(self._sources, visit, filters["outcome"]),
            "since": speech("turns.chosen.since", time=filters["since"].replace("T", " ")),
            "until": speech("turns.chosen.until", time=filters["until"].replace("T", " ")),
            "cost": speech("turns.chosen.cost", money=filters["cost"]),
        }
        return [words.get(name, value) for name, value in filters.items() if value]

    async def fresh(self, visit: Visit) -> web.Response:
        """The same rows for the script of a page that is open."""
        query = query_of(visit)
        if (found := await self._sources.showing.rows(query)) is None:
            raise RequestRefused(503, "the journal cannot be read now")
        most = number_in(visit.request.query.get("most", "")) or len(found.rows)
        rows = [
            {name: self._sources.mask(value) for name, value in msgspec.structs.asdict(one).items()}
            for one in row_texts(self._sources, visit, found.rows[:most])
        ]
        text = json.dumps({"rows": rows, "following": _following(query, found)})
        return MaskedResponse(text=text, content_type="application/json")

    async def trace(self, visit: Visit) -> web.Response:
        """One turn in full."""
        found = await self._sources.showing.trace(visit.at["id"])
        whole = visit.request.query.get("whole") == "1"
        if not found:
            return self._missing(visit, is_away=found is None)
        (trace,) = found
        chinese = language_of(visit.request).is_chinese
        (row,) = row_texts(self._sources, visit, [trace.row])
        own = replace(trace, spans=tuple(span for span in trace.spans if not span.is_errand))
        asked = [span for span in own.spans if span.kind in REQUESTS]
        parts = prompt_blocks(self._sources.mask(trace.prompt), self._sources.estimate)
        first = next((span.usage for span in trace.spans if span.usage), None)
        return self._pages.show(
            visit,
            "turn",
            one=row,
            row=trace.row,
            why=self._sources.explain.story(trace.story, chinese=chinese),
            bars=list(timeline_bars(own, self._sources.mask, whole=whole)),
            requests=len(asked),
            failed=sum(span.kind == "failed" for span in asked),
            errands=[span for span in trace.spans if span.is_errand],
            outcome_in=partial(request_outcome_text, language_of(visit.request)),
            said=[span for span in trace.spans if span.kind == "send" and span.text],
            length=_length(own),
            blocks=parts,
            first=first,
            share_of_own=min(
                100.0,
                100 * sum(part.tokens for part in parts) / first.prompt
                if first and first.prompt
                else 0.0,
            ),
            whole=whole,
            cut=CUT,
            base=self._sources.base,
        )

    async def raw(self, visit: Visit) -> web.Response:
        """The same as JSON."""
        found = await self._sources.showing.trace(visit.at["id"])
        if not found:
            return self._missing(visit, is_away=found is None)
        text = msgspec.json.format(msgspec.json.encode(_plain(found[0])), indent=2).decode()
        return web.Response(text=text, content_type="application/json")

    async def silent(self, visit: Visit) -> web.Response:
        """Why a message was not answered."""
        try:
            where = Conversation.parse(visit.at["where"])
        except NotAConversation:
            return self._missing(visit, is_away=False)
        found = await self._sources.showing.silence(where, visit.at["id"])
        if found is None or not found.story.is_known:
            return self._missing(visit, is_away=found is None)
        story, chinese = found.story, language_of(visit.request).is_chinese
        return self._pages.show(
            visit,
            "silent",
            where=where,
            line=found.line,
            why=self._sources.explain.story(story, chinese=chinese),
            turn_id=story.turn_id,
            base=self._sources.base,
        )

    def _missing(self, visit: Visit, *, is_away: bool) -> web.Response:
        return self._pages.show(visit, "missing", status=503 if is_away else 404, is_away=is_away)


def query_of(visit: Visit) -> TurnQuery:
    """The filters of an address; what is none is left out."""
    given = visit.request.query

    def number(name: str) -> int:
        return number_in(given.get(name, ""))

    outcome = given.get("outcome", "")
    return TurnQuery(
        where=given.get("where", "").strip()[:80],
        asker=choices.parse_person(given.get("asker", ""), {}),
        outcome=outcome if outcome in OUTCOMES else "",
        tool=given.get("tool", "").strip()[:80],
        model=given.get("model", "").strip()[:200],
        since=_moment(given.get("since", "")),
        until=_moment(given.get("until", "")),
        cost=float(cost) if MONEY.fullmatch(cost := given.get("cost", "").strip()) else 0.0,
        turn=number("turn"),
        verdict=number("verdict"),
    )


def _moment(text: str) -> float:
    """A time as a browser sends it, in the time zone of the process; 0 for anything else."""
    try:
        return max(0.0, datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        return 0.0


def _following(query: TurnQuery, found: TurnRows | None) -> str:
    """Where the older rows are; empty where there are none."""
    if found is None or found.next is None:
        return ""
    turn, verdict = found.next
    return urlencode({**_kept(query), "turn": turn, "verdict": verdict})


def _kept(query: TurnQuery) -> dict[str, str]:
    """The filters that are set."""
    return {name: value for name, value in _filters(query).items() if value}


def number_in(text: str) -> int:
    """A number of an address; 0 for anything else."""
    return int(text) if NUMBER.fullmatch(text := text.strip()) else 0


def _filters(query: TurnQuery) -> dict[str, str]:
    return {
        "where": query.where,
        "asker": str(query.asker or ""),
        "outcome": query.outcome,
        "tool": query.tool,
        "model": query.model,
        "since": minute(query.since) if query.since else "",
        "until": minute(query.until) if query.until else "",
        "cost": f"{query.cost:f}".rstrip("0").rstrip(".") if query.cost else "",
    }


def row_texts(sources: Sources, visit: Visit, rows: Iterable[TurnRow]) -> list[RowText]:
    """Rows in the words of the language."""
    return [_row_text(sources, visit, row) for row in rows]


def _row_text(sources: Sources, visit: Visit, row: TurnRow) -> RowText:
    speech = language_of(visit.request)
    where, message_id = quote(str(row.where), safe=""), quote(row.message_id, safe="")
    link = (
        f"/turns/{quote(row.turn_id, safe='')}" if row.turn_id else f"/silent/{where}/{message_id}"
    )
    reason = row.reason and sources.explain.reason(row.reason, chinese=speech.is_chinese)
    place = [row.group or speech.place(row.where)] if row.where.is_group else []
    took = [money(row.usage)] if row.usage.requests else []
    return RowText(
        when=clock(row.at),
        who=" · ".join([row.name or str(row.asker), *place]),
        said=speech.plain(row.text) or speech("turns.wordless"),
        ended=ending(sources, visit, row.outcome),
        because=reason or _failure(speech, row),
        cost=" · ".join(took if row.seconds is None else [*took, speech.lasting(row.seconds)]),
        tone=tone_of(row.outcome),
        link=visit.origin.prefix + sources.base + link,
    )


def tone_of(outcome: str) -> str:
    """The colour of an outcome: good, bad, warn or dim."""
    known = next((one for one in ENDINGS if one == outcome), None)
    return "dim" if known is None else _tone(known)


def _tone(ending: Ending) -> str:
    match ending:
        case Stop.ANSWERED:
            return "good"
        case Stop.FAILED | Stop.INTERRUPTED | Stop.OUT_OF_BUDGET | Undelivered.NOT_DELIVERED:
            return "bad"
        case Undelivered.UNCONFIRMED | Unfinished.WAITING:
            return "warn"
        case Stop.SILENT | Stop.STOPPED | Stop.DENIED | Unfinished.RUNNING:
            return "dim"
        case _:
            assert_never(ending)


def _failure(speech: Language, row: TurnRow) -> str:
    """The failure, named by its HTTP status or else its kind; in the error's own words if there are
    none for that.
    """
    kind = row.error.partition(":")[0]
    if row.refusal.partition(":")[0] == kind:
        return request_outcome_text(speech, row.refusal)
    return speech(f"outcome.{kind}") if speech.has(f"outcome.{kind}") else row.error


def ending(sources: Sources, visit: Visit, outcome: str) -> str:
    """How a row ended, in words."""
    speech = language_of(visit.request)
    if outcome == UNANSWERED:
        return speech("turns.unanswered")
    return sources.explain.ending(outcome, chinese=speech.is_chinese)


def request_outcome_text(speech: Language, outcome: str) -> str:
    """The words of how a request, call or send ended; of a HTTP error those of its status, too."""
    kind, _, status = outcome.partition(":")
    if not status.isdecimal():
        return speech.of("outcome", outcome)
    named = f"status.{status}" if speech.has(f"status.{status}") else "status.other"
    return speech(named, status=status, kind=speech.of("outcome", kind))


def _length(trace: Trace) -> float:
    begin = min((span.begin for span in trace.spans), default=0.0)
    return max((span.begin + span.seconds for span in trace.spans), default=0.0) - begin


def timeline_bars(trace: Trace, mask: Callable[[str], str], *, whole: bool) -> Iterator[Bar]:
    """The spans on one line of time; secrets are masked before a body is cut."""
    begin, length = min((span.begin for span in trace.spans), default=0.0), _length(trace) or 1.0
    for span in trace.spans:
        left = 100 * (span.begin - begin) / length
        width = max(0.7, 100 * span.seconds / length)
        bodies = [mask(body) for body in (span.text, span.asked, span.thought)]
        text, asked, thought = (body if whole else body[:CUT] for body in bodies)
        is_cut = [text, asked, thought] != bodies
        yield Bar(span, round(min(left, 99.3), 2), round(width, 2), text, asked, thought, is_cut)


def prompt_blocks(prompt: str, estimate: Any) -> list[PromptBlock]:
    """The turn's own part of the prompt, by the headings that only we write."""
    found: list[PromptBlock] = []
    title, lines = "", list[str]()
    for line in [*prompt.splitlines(), "[]"]:
        if HEADING.fullmatch(line) or line == "[]":
            if lines:
                text = "\n".join(lines)
                found.append(PromptBlock(title, text, estimate(text)))
            title, lines = line, []
        else:
            lines.append(line)
    return found


def _plain(value: Any) -> Any:
    """As JSON has it; conversations as people write them."""
    return msgspec.to_builtins(value, enc_hook=str)
