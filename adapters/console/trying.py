"""The simulated group in the browser: talk to the bot without QQ, optionally with an unsaved
persona or an earlier question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from adapters.console.http import FIELDS, FILE, RequestRefused, parse_number, redirect
from adapters.console.language import LANGUAGE
from adapters.console.live import follow
from adapters.console.rendering import MaskedResponse, render, render_missing
from adapters.console.sources import SOURCES, note
from adapters.console.turns import (
    describe_ending,
    render_silence,
    render_turn,
    render_turn_json,
    tone_of,
)
from bot.core.console_views import ChatLine, TurnQuery, TurnRow
from bot.core.trial_group import Source, Trial, TrialLine, TrialOptions
from frostagent.cancellation import BROKEN, isolate
from frostagent.types.errors import MediaError

MAX_LINE = 2000  # characters of a line
MAX_PERSONA = 6000  # and of a persona's text
BASE = "/try"
ANSWER_WITHIN = 7.0  # seconds to wait for an answer before the page is shown
SENT_WITHIN = 20.0  # seconds to decode an image and wait for an answer
NOTHING = ChatLine(message_id="", at=0.0, sender=0, name="", text="")


class LineText(Struct, frozen=True):
    """A line, and why the bot answered it or not: its wake or silence, and the turn with how it
    `ended`, in which `tone`.
    """

    line: TrialLine
    why: str = ""
    wakes: bool = False
    state: str = ""
    turn: TurnRow | None = None
    where: str = ""
    ended: str = ""
    tone: str = ""


async def show_trial(request: web.Request) -> web.Response:
    """The group, or the form to open one, also if a new one is requested."""
    if (trial := request.app[SOURCES].trying.current) is None or request.query.get("new") == "1":
        return _render_opening(request, TrialOptions())
    return await _render_trial(request, trial)


async def open_trial(request: web.Request) -> web.Response:
    """Open a group; the previous one ends."""
    sources, fields = request.app[SOURCES], request[FIELDS]
    wanted = TrialOptions(
        is_real=fields.get("model") == "real",
        key=fields.get("key", "")[:80],
        text=_text_of(fields.get("persona", ""))[:MAX_PERSONA],
        asker=fields.get("asker", "")[:MAX_LINE],
        question=_text_of(fields.get("question", ""))[:MAX_LINE],
    )
    if turn := fields.get("turn", ""):  # read again, because it may have been erased
        row, is_away = await _find_turn(request, turn)
        if is_away:  # keep the question for the next attempt
            trouble = "try.trouble.failed"
            return _render_opening(request, wanted, turn=turn, trouble=trouble, status=503)
        wanted = replace(wanted, **_question_of(row))
    try:
        trouble = await sources.trying.open(wanted)
    except TimeoutError:
        trouble = "failed"
    what = "real model" if wanted.is_real else "demo model"
    note(request, "try out", what=what, outcome=trouble or "ok")
    if trouble == "forgotten":
        wanted, turn = replace(wanted, asker="", question="", source=None), ""
    if trouble:
        trouble = f"try.trouble.{trouble}"
        return _render_opening(request, wanted, turn=turn, trouble=trouble, status=503)
    return redirect(request, f"{BASE}#say")


async def end_trial(request: web.Request) -> web.Response:
    await request.app[SOURCES].trying.end()
    return redirect(request, BASE)


async def bring_persona(request: web.Request) -> web.Response:
    """Show a form to try a text that no chat uses."""
    text = _text_of(request[FIELDS].get("text", ""))
    if not text or len(text) > MAX_PERSONA:
        raise RequestRefused(400, "persona")
    key = request[FIELDS].get("key", "")[:80]
    return _render_opening(request, TrialOptions(key=key, text=text))


async def bring_turn(request: web.Request) -> web.Response:
    """Ask a question of the journal again: in the open group, or with a form to open one."""
    trying, turn = request.app[SOURCES].trying, request[FIELDS].get("turn", "")
    row, is_away = await _find_turn(request, turn)
    if row is None:
        return render_missing(request, is_away=is_away)
    wanted = TrialOptions(**_question_of(row))
    if (trial := trying.current) is None:
        return _render_opening(request, wanted, turn=turn)
    trial.propose(wanted.asker, wanted.question, wanted.source)
    trying.touch()
    return redirect(request, f"{BASE}#say")


async def say_line(request: web.Request) -> web.Response:
    """Send a line, or inject a fault. The page contains a quick answer, or what was typed if it
    could not be sent.
    """
    trying, fields, file = request.app[SOURCES].trying, request[FIELDS], request[FILE]
    who, text = fields.get("as", ""), _text_of(fields.get("text", ""))[:MAX_LINE]
    if (trial := trying.current) is None:
        return _render_ended(request, who, text)
    trying.touch()
    if fields.get("trial", trial.name) != trial.name:
        return await _render_trial(request, trial, "another", text=text, status=409)
    fault = fields.get("fault", "")
    if who not in trial.people:
        return await _render_trial(request, trial, "nobody", text=text, status=400)
    if fault and fault not in trial.faults:
        raise RequestRefused(400, "fault")
    if fault:
        await trial.inject_fault(fault)
    if not (text or file):
        return redirect(request, f"{BASE}?as={quote(who)}#say")
    if trial.lacks:  # the page shows the reason
        return await _render_trial(request, trial, text=text, status=409)
    asked = f"@bot {text}".strip() if fields.get("call") == "1" else text
    patience, is_said = SENT_WITHIN if file else ANSWER_WITHIN, False
    try:
        is_said = await trial.say(who, asked, file, patience=patience)
    except MediaError:
        return await _render_trial(request, trial, "picture", text=text, status=400)
    except BROKEN as error:
        isolate(error)
        if trying.current is trial:
            raise
    if trying.current is not trial:
        return _render_ended(request, who, text)
    if not is_said:
        return await _render_trial(request, trial, "unsaid", text=text, status=503)
    trying.touch()
    return redirect(request, f"{BASE}?as={quote(who)}#say")


async def send_picture(request: web.Request) -> web.Response:
    """An image of a line, decoded and re-encoded."""
    number = parse_number(request.match_info["number"])
    try:
        data = await _open_trial(request).picture(number)
    except MediaError:
        raise RequestRefused(404, "picture") from None
    return MaskedResponse(body=data, content_type="image/jpeg")


async def stream_news(request: web.Request) -> web.StreamResponse:
    return await follow(request, _open_trial(request).feed)


async def show_turn(request: web.Request) -> web.Response:
    return await render_turn(request, _touched_trial(request).showing, base=BASE)


async def send_turn(request: web.Request) -> web.Response:
    return await render_turn_json(request, _touched_trial(request).showing)


async def show_silence(request: web.Request) -> web.Response:
    return await render_silence(request, _touched_trial(request).showing, base=BASE)


def _open_trial(request: web.Request) -> Trial:
    if (trial := request.app[SOURCES].trying.current) is None:
        raise RequestRefused(404, "trial")
    return trial


def _touched_trial(request: web.Request) -> Trial:
    trial = _open_trial(request)
    request.app[SOURCES].trying.touch()
    return trial


async def _find_turn(request: web.Request, turn_id: str) -> tuple[TurnRow | None, bool]:
    """Return a turn of the bot's journal, if known, and whether the journal is away."""
    found = await request.app[SOURCES].showing.trace(turn_id)
    return found[0].row if found else None, found is None


def _question_of(row: TurnRow | None) -> dict[str, Any]:
    """The fields of `TrialOptions` that ask a turn's question again."""
    if row is None:
        return {"asker": "", "question": ""}
    source = Source(row.asker, row.where.session_id if row.where.is_group else 0)
    asker = row.name or str(row.asker)
    return {"asker": asker, "question": row.text[:MAX_LINE], "source": source}


def _text_of(given: str) -> str:
    return given.replace("\r\n", "\n").strip()


def _persona_name(request: web.Request, key: str) -> str:
    return next((one.name for one in request.app[SOURCES].personas() if one.key == key), key)


def _render_ended(request: web.Request, who: str, text: str) -> web.Response:
    """Show a form to open another group, which keeps what was typed."""
    wanted = TrialOptions(asker=who, question=text)
    return _render_opening(request, wanted, trouble="try.trouble.ended", status=409)


def _render_opening(
    request: web.Request,
    wanted: TrialOptions,
    *,
    turn: str = "",
    trouble: str = "",
    status: int = 200,
) -> web.Response:
    trying = request.app[SOURCES].trying
    return render(
        request,
        "try_begin",
        status=status,
        wanted=wanted,
        turn=turn,
        persona=_persona_name(request, wanted.key),
        ceiling=trying.ceiling,
        is_open=trying.can_end,
        last=trying.last,
        trouble=trouble,
    )


async def _render_trial(
    request: web.Request, trial: Trial, trouble: str = "", *, text: str = "", status: int = 200
) -> web.Response:
    trying = request.app[SOURCES].trying
    newest = trial.feed.number
    trying.touch()
    await trial.settle()
    draft = None if text else trial.draft
    speaker = request[FIELDS].get("as") or request.query.get("as", "")
    return render(
        request,
        "try",
        status=status,
        trial=trial,
        lines=await _describe_lines(request, trial),
        people=trial.people,
        speaker=draft.who if draft else speaker,
        text=draft.text if draft else text,
        taken=await trial.taken(),
        can_end=trying.can_end,
        persona=_persona_name(request, trial.wanted.key),
        trouble=f"try.trouble.{trouble}" if trouble else "",
        newest=newest,
    )


async def _describe_lines(request: web.Request, trial: Trial) -> Sequence[LineText]:
    """The lines, each with its reason; a turn is shown at its last line."""
    explain, speech = request.app[SOURCES].explain, request[LANGUAGE]
    rows = await trial.showing.rows(TurnQuery())
    chat = await trial.showing.chat(trial.where, 0)
    judged = {one.message_id: one for one in chat.lines if one.message_id} if chat else {}
    turns = {row.turn_id: row for row in rows.rows if row.turn_id} if rows else {}

    def reason(key: str) -> str:
        return explain.reason(key, chinese=speech.is_chinese) if key else ""

    overheard = speech("try.overheard")
    lines = _judge(trial.lines, judged, turns, str(trial.where), reason, overheard)
    return [
        replace(
            one,
            ended=describe_ending(request, one.turn.outcome),
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
