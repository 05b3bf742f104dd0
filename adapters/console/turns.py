"""Questions and their outcomes: as rows, and one turn in full."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, assert_never
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from adapters.console.chats import Choice, find_chat_choices
from adapters.console.http import ORIGIN, RequestRefused, parse_number
from adapters.console.language import LANGUAGE, Language, clock, minute, money
from adapters.console.rendering import MaskedResponse, render, render_missing
from adapters.console.sources import SOURCES, Sources
from bot.core.calendar_days import midnight
from bot.core.console_views import (
    UNANSWERED,
    ConsoleQueries,
    Span,
    Trace,
    TurnQuery,
    TurnRow,
    TurnRows,
)
from bot.core.conversation import Conversation, NotAConversation
from bot.core.journal import ENDINGS, Ending, Undelivered, Unfinished
from frostagent.types.runs import Stop

CUT = 400  # characters of a body shown, unless all is requested
DAYS: Final = 30  # for the people and models in the filters
OUTCOMES: tuple[str, ...] = (
    *sorted(ENDINGS, key=lambda one: (one != Stop.ANSWERED, not isinstance(one, Undelivered))),
    UNANSWERED,
)
REQUESTS = {"model", "failed"}  # kinds of span
MONEY = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
HEADING = re.compile(r"^\[[^\]\n]{1,40}\]$", re.MULTILINE)
PERSON = re.compile(r"(?:.*\()?([0-9]{1,18})\)?", re.DOTALL)


class RowText(Struct, frozen=True):
    """A row in words: time, asker, text, ending and reason, cost, and its page's address."""

    when: str = ""
    who: str = ""
    said: str = ""
    ended: str = ""
    because: str = ""
    cost: str = ""
    tone: str = ""
    link: str = ""


class Bar(Struct, frozen=True):
    """A span on the timeline, in percent of the whole."""

    span: Span
    left: float
    width: float
    text: str
    asked: str
    thought: str
    is_cut: bool


class PromptBlock(Struct, frozen=True):
    """A part of the prompt, and its estimated tokens."""

    title: str
    text: str
    tokens: float


async def show_turns(request: web.Request) -> web.Response:
    sources = request.app[SOURCES]
    query, newest, stranger = parse_query(request), sources.feed.number, ""
    if (typed := request.query.get("asker", "").strip()) and not query.asker:
        query = replace(query, asker=parse_person(typed, await _people(sources)))
        stranger = "" if query.asker else typed[:80]
    found = TurnRows((), None) if stranger else await sources.showing.rows(query)
    people = await _people(sources, found.rows if found else ())
    places = await find_chat_choices(request, query.where)
    filters = _filters(query) | {"asker": stranger or format_person(query.asker, people)}
    return render(
        request,
        "turns",
        rows=None if found is None else describe_rows(request, found.rows),
        filters=filters,
        chosen=_describe_filters(request, filters, places),
        stranger=stranger,
        places=places,
        people=[format_person(number, people) for number in people],
        tools=sorted(filter(None, {one.name for one in sources.tools()} | {query.tool})),
        models=await _models(sources, query.model),
        outcomes=[(one, describe_ending(request, one)) for one in OUTCOMES],
        query=urlencode(_set_filters(query)),
        following=_following(query, found),
        newest=None if query.turn or query.verdict else newest,
    )


async def send_rows(request: web.Request) -> web.Response:
    """The rows for the script of an open page."""
    sources, query = request.app[SOURCES], parse_query(request)
    if (found := await sources.showing.rows(query)) is None:
        raise RequestRefused(503, "journal")
    most = parse_number(request.query.get("most", "")) or len(found.rows)
    rows = [
        {name: sources.mask(value) for name, value in msgspec.structs.asdict(one).items()}
        for one in describe_rows(request, found.rows[:most])
    ]
    text = json.dumps({"rows": rows, "following": _following(query, found)})
    return MaskedResponse(text=text, content_type="application/json")


async def show_turn(request: web.Request) -> web.Response:
    return await render_turn(request, request.app[SOURCES].showing)


async def send_turn(request: web.Request) -> web.Response:
    return await render_turn_json(request, request.app[SOURCES].showing)


async def show_silence(request: web.Request) -> web.Response:
    return await render_silence(request, request.app[SOURCES].showing)


async def render_turn(
    request: web.Request, showing: ConsoleQueries, *, base: str = ""
) -> web.Response:
    """Show the turn of this journal named in the path; `base` begins the paths of its links."""
    sources, speech = request.app[SOURCES], request[LANGUAGE]
    found = await showing.trace(request.match_info["id"])
    whole = request.query.get("whole") == "1"
    if not found:
        return render_missing(request, is_away=found is None)
    (trace,) = found
    (row,) = describe_rows(request, [trace.row], base=base)
    own = replace(trace, spans=tuple(span for span in trace.spans if not span.is_errand))
    asked = [span for span in own.spans if span.kind in REQUESTS]
    parts = prompt_blocks(sources.mask(trace.prompt), sources.estimate)
    first = next((span.usage for span in trace.spans if span.usage), None)
    return render(
        request,
        "turn",
        one=row,
        row=trace.row,
        why=sources.explain.story(trace.story, chinese=speech.is_chinese),
        bars=list(timeline_bars(own, sources.mask, whole=whole)),
        requests=len(asked),
        failed=sum(span.kind == "failed" for span in asked),
        errands=[span for span in trace.spans if span.is_errand],
        outcome_in=partial(request_outcome_text, speech),
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
        base=base,
    )


async def render_turn_json(request: web.Request, showing: ConsoleQueries) -> web.Response:
    found = await showing.trace(request.match_info["id"])
    if not found:
        return render_missing(request, is_away=found is None)
    built = msgspec.to_builtins(found[0], enc_hook=str)  # conversations as text
    text = msgspec.json.format(msgspec.json.encode(built), indent=2).decode()
    return web.Response(text=text, content_type="application/json")


async def render_silence(
    request: web.Request, showing: ConsoleQueries, *, base: str = ""
) -> web.Response:
    """Show why the message of this journal named in the path was not answered."""
    try:
        where = Conversation.parse(request.match_info["where"])
    except NotAConversation:
        return render_missing(request)
    found = await showing.silence(where, request.match_info["id"])
    if found is None or not found.story.is_known:
        return render_missing(request, is_away=found is None)
    story, chinese = found.story, request[LANGUAGE].is_chinese
    return render(
        request,
        "silent",
        where=where,
        line=found.line,
        why=request.app[SOURCES].explain.story(story, chinese=chinese),
        turn_id=story.turn_id,
        base=base,
    )


def parse_query(request: web.Request) -> TurnQuery:
    """Read the filters of a URL; invalid values are ignored."""
    given = request.query
    outcome, cost = given.get("outcome", ""), given.get("cost", "").strip()
    return TurnQuery(
        where=given.get("where", "").strip()[:80],
        asker=parse_person(given.get("asker", ""), {}),
        outcome=outcome if outcome in OUTCOMES else "",
        tool=given.get("tool", "").strip()[:80],
        model=given.get("model", "").strip()[:200],
        since=_parse_time(given.get("since", "")),
        until=_parse_time(given.get("until", "")),
        cost=float(cost) if MONEY.fullmatch(cost) else 0.0,
        turn=parse_number(given.get("turn", "")),
        verdict=parse_number(given.get("verdict", "")),
    )


def _parse_time(text: str) -> float:
    """Parse a browser's time, in the process's time zone; 0 for anything else."""
    try:
        return max(0.0, datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        return 0.0


def parse_person(typed: str, known: Mapping[int, str]) -> int:
    """The number of a person typed as `小红 (20003)`, `20003` or a known name; 0 if unknown."""
    typed = typed.strip()
    if found := PERSON.fullmatch(typed):
        return int(found[1])
    named = (number for number, name in known.items() if name.casefold() == typed.casefold())
    return next(named, 0) if typed else 0


def format_person(number: int, known: Mapping[int, str]) -> str:
    """A person as `parse_person` reads them; empty for 0."""
    if not number:
        return ""
    return f"{name} ({number})" if (name := known.get(number)) else str(number)


async def _people(sources: Sources, rows: Iterable[TurnRow] = ()) -> Mapping[int, str]:
    """Recent askers by number: those of these rows, and those with the highest cost."""
    known = {row.asker: row.name for row in rows if row.name}
    since = midnight(sources.clock.now(), later=-DAYS)
    for one in await sources.showing.costs(since=since, by="asker") or ():
        if one.called and one.name.isdecimal() and int(one.name):
            known.setdefault(int(one.name), one.called)
    return known


async def _models(sources: Sources, chosen: str) -> list[str]:
    """The models asked recently, and the `chosen` one."""
    since = midnight(sources.clock.now(), later=-DAYS)
    names = {one.name for one in await sources.showing.costs(since=since, by="model") or ()}
    return sorted(filter(None, names | {chosen}))


def _following(query: TurnQuery, found: TurnRows | None) -> str:
    """The query for older rows; empty if there are none."""
    if found is None or found.next is None:
        return ""
    turn, verdict = found.next
    return urlencode({**_set_filters(query), "turn": turn, "verdict": verdict})


def _set_filters(query: TurnQuery) -> dict[str, str]:
    return {name: value for name, value in _filters(query).items() if value}


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


def _describe_filters(
    request: web.Request, filters: Mapping[str, str], places: Iterable[Choice]
) -> list[str]:
    """The active filters in words, because the form is closed."""
    speech = request[LANGUAGE]
    words = {
        "where": next((one.words for one in places if one.value == filters["where"]), ""),
        "outcome": describe_ending(request, filters["outcome"]),
        "since": speech("turns.chosen.since", time=filters["since"].replace("T", " ")),
        "until": speech("turns.chosen.until", time=filters["until"].replace("T", " ")),
        "cost": speech("turns.chosen.cost", money=filters["cost"]),
    }
    return [words.get(name, value) for name, value in filters.items() if value]


def describe_rows(
    request: web.Request, rows: Iterable[TurnRow], *, base: str = ""
) -> list[RowText]:
    """Rows in the visitor's language; `base` begins the paths of their links."""
    root = f"{request[ORIGIN].prefix}{base}"
    return [_describe_row(request, row, root) for row in rows]


def _describe_row(request: web.Request, row: TurnRow, root: str) -> RowText:
    sources, speech = request.app[SOURCES], request[LANGUAGE]
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
        ended=describe_ending(request, row.outcome),
        because=reason or _failure(speech, row),
        cost=" · ".join(took if row.seconds is None else [*took, speech.lasting(row.seconds)]),
        tone=tone_of(row.outcome),
        link=root + link,
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
    """The failure by HTTP status, else by kind, else by the error's text."""
    kind = row.error.partition(":")[0]
    if row.refusal.partition(":")[0] == kind:
        return request_outcome_text(speech, row.refusal)
    return speech(f"outcome.{kind}") if speech.has(f"outcome.{kind}") else row.error


def describe_ending(request: web.Request, outcome: str) -> str:
    speech = request[LANGUAGE]
    if outcome == UNANSWERED:
        return speech("turns.unanswered")
    return request.app[SOURCES].explain.ending(outcome, chinese=speech.is_chinese)


def request_outcome_text(speech: Language, outcome: str) -> str:
    """How a request, call or send ended, in words; HTTP errors with their status."""
    kind, _, status = outcome.partition(":")
    if not status.isdecimal():
        return speech.of("outcome", outcome)
    named = f"status.{status}" if speech.has(f"status.{status}") else "status.other"
    return speech(named, status=status, kind=speech.of("outcome", kind))


def _length(trace: Trace) -> float:
    begin = min((span.begin for span in trace.spans), default=0.0)
    return max((span.begin + span.seconds for span in trace.spans), default=0.0) - begin


def timeline_bars(trace: Trace, mask: Callable[[str], str], *, whole: bool) -> Iterator[Bar]:
    """The spans on one timeline; secrets are masked before bodies are cut."""
    begin, length = min((span.begin for span in trace.spans), default=0.0), _length(trace) or 1.0
    for span in trace.spans:
        left = 100 * (span.begin - begin) / length
        width = max(0.7, 100 * span.seconds / length)
        bodies = [mask(body) for body in (span.text, span.asked, span.thought)]
        text, asked, thought = (body if whole else body[:CUT] for body in bodies)
        is_cut = [text, asked, thought] != bodies
        yield Bar(span, round(min(left, 99.3), 2), round(width, 2), text, asked, thought, is_cut)


def prompt_blocks(prompt: str, estimate: Any) -> list[PromptBlock]:
    """Split the turn's own part of the prompt at the headings, which only the bot writes."""
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
