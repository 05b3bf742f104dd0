"""The page of personas: texts, their chats, the prompt as sent, and a form to change a text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

from aiohttp import web
from msgspec.structs import replace

from adapters.console.chats import find_chat_choices
from adapters.console.http import FIELDS, RequestRefused
from adapters.console.language import LANGUAGE
from adapters.console.logins import LOGINS
from adapters.console.rendering import render, render_missing
from adapters.console.sources import SOURCES, note
from bot.core.console_views import PersonaState
from bot.core.conversation import Conversation, NotAConversation

ANYWHERE = Conversation(0, "private", 0)  # if no chat was chosen
ACTIONS: Final = frozenset({"look", "apply", "back"})
LONGEST: Final = 6000  # characters of a text changed here, as a form has at most 64 KiB


async def show_personas(request: web.Request) -> web.Response:
    """The page, with the prompt of the chosen chat, if any."""
    sources, speech = request.app[SOURCES], request[LANGUAGE]
    given = request.query.get("where", "").strip()[:80]
    is_bad, where = False, ANYWHERE
    try:
        where = Conversation.parse(given) if given else ANYWHERE
    except NotAConversation:
        is_bad = True
    parts, now = await sources.rendered(where), await sources.look()
    places = await find_chat_choices(request, "" if is_bad else given)
    called = {one.value: one.words for one in places}
    states = [
        replace(
            one,
            chats=tuple(
                called.get(chat) or speech.place_named(chat)
                for chat in map(_whole, now.personas.get(one.key, ()))
            ),
        )
        for one in sources.personas()
    ]
    return render(
        request,
        "persona",
        personas=states,
        parts=parts,
        tokens_of=sum(map(sources.estimate, parts or ())),
        where=given,
        places=places,
        is_bad=is_bad,
    )


async def show_text(request: web.Request) -> web.Response:
    one = _find(request, request.query.get("key", ""))
    return render_missing(request) if one is None else _render_text(request, one, one.text)


async def change_text(request: web.Request) -> web.Response:
    """Show a change (`look`), use the text (`apply`), or restore the previous one (`back`)."""
    sources, fields = request.app[SOURCES], request[FIELDS]
    one = _find(request, fields.get("key", ""))
    if one is None:
        return render_missing(request)
    if (action := fields.get("do", "look")) not in ACTIONS:
        raise RequestRefused(400, "action")
    text = fields.get("text", "").replace("\r\n", "\n").strip()
    if action != "back" and (wrong := _wrong_with(text)):
        return _render_text(request, one, text, key=f"persona.{wrong}", status=400)
    if action == "look":
        return _render_text(request, one, text)
    if doubt := request.app[LOGINS].doubt(fields.get("totp", "")):
        return _render_text(request, one, text, key=f"totp.{doubt}", status=403)
    if action == "back":
        is_done = await sources.untell(one.key)
    else:
        is_done = await sources.retell(one.key, text)
    outcome = "ok" if is_done else "failed"
    note(request, f"persona {action}", what=one.key or "usual", outcome=outcome)
    now = _find(request, one.key) or one
    key = f"persona.{action}.{outcome}"
    return _render_text(request, now, now.text if is_done else text, key=key)


def _find(request: web.Request, key: str) -> PersonaState | None:
    return next((one for one in request.app[SOURCES].personas() if one.key == key), None)


def _render_text(
    request: web.Request, one: PersonaState, text: str, *, key: str = "", status: int = 200
) -> web.Response:
    estimate = request.app[SOURCES].estimate
    return render(
        request,
        "persona_text",
        status=status,
        one=one,
        text=text,
        key=key,
        longest=LONGEST,
        asks=request.app[LOGINS].totp.is_on,
        changes=list(_changes(one.text, text)) if text != one.text else [],
        before=estimate(one.text),
        after=estimate(text),
    )


def _whole(chat: str) -> str:
    """The full name of a chat with a persona; GROUPS_FILE has only group numbers."""
    return f"0:group:{chat}" if chat.isdecimal() else chat


def _wrong_with(text: str) -> str:
    if not text:
        return "empty"
    return "long" if len(text) > LONGEST else ""


def _changes(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The lines of both, each `same`, `old` or `new`. Compares whole lines: `ndiff` also searches
    for similar ones, and 200 of them blocked the bot for 13 seconds.
    """
    old, new = before.splitlines(), after.splitlines()
    for what, start, end, begin, stop in SequenceMatcher(None, old, new).get_opcodes():
        if what == "equal":
            yield from (("same", line) for line in old[start:end])
        else:
            yield from (("old", line) for line in old[start:end])
            yield from (("new", line) for line in new[begin:stop])
