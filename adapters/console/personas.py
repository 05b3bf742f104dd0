"""The personas: their texts, where they are, the prompt as it is sent; and changing a text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

from aiohttp import web
from msgspec.structs import replace

from adapters.console import choices
from adapters.console.guard import RequestRefused
from adapters.console.language import language_of
from adapters.console.logins import Logins
from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from bot.domain.console_views import PersonaState
from bot.domain.events import Conversation, NotAConversation

ANYWHERE = Conversation(0, "private", 0)  # where nothing was chosen
ACTIONS: Final = frozenset({"look", "apply", "back"})
LONGEST: Final = 6000  # characters of a text that is changed here: a form has at most 64 KiB


class PersonaPages:
    """The page, and that of one whose text is changed."""

    def __init__(self, pages: Pages, logins: Logins, sources: Sources) -> None:
        self._pages = pages
        self._logins = logins
        self._sources = sources

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/persona", self.look, Access.LOGGED_IN),
            Route("GET", "/persona/text", self.open, Access.LOGGED_IN),
            Route("POST", "/persona/text", self.change, Access.LOGGED_IN),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page; the prompt is that of a chat, where one is named."""
        given = visit.request.query.get("where", "").strip()[:80]
        is_bad, where = False, ANYWHERE
        try:
            where = Conversation.parse(given) if given else ANYWHERE
        except NotAConversation:
            is_bad = True
        parts, now = await self._sources.rendered(where), await self._sources.look()
        speech = language_of(visit.request)
        places = await choices.places(self._sources, speech, "" if is_bad else given)
        called = {one.value: one.words for one in places}
        states = [
            replace(
                one,
                chats=tuple(
                    called.get(chat) or speech.place_named(chat)
                    for chat in map(_whole, now.personas.get(one.key, ()))
                ),
            )
            for one in self._sources.personas()
        ]
        return self._pages.show(
            visit,
            "persona",
            personas=states,
            parts=parts,
            tokens_of=sum(map(self._sources.estimate, parts or ())),
            where=given,
            places=places,
            is_bad=is_bad,
        )

    async def open(self, visit: Visit) -> web.Response:
        """The text of one, to be changed."""
        one = self._find(visit.request.query.get("key", ""))
        return self._missing(visit) if one is None else self._show(visit, one, one.text)

    async def change(self, visit: Visit) -> web.Response:
        """See what would be different (`look`), say it from now on (`apply`), or what was said
        before (`back`).
        """
        one = self._find(visit.fields.get("key", ""))
        if one is None:
            return self._missing(visit)
        if (action := visit.fields.get("do", "look")) not in ACTIONS:
            raise RequestRefused(400, "nothing of that kind is done here")
        text = visit.fields.get("text", "").replace("\r\n", "\n").strip()
        if action != "back" and (wrong := _wrong_with(text)):
            return self._show(visit, one, text, key=f"persona.{wrong}", status=400)
        if action == "look":
            return self._show(visit, one, text)
        if doubt := self._logins.doubt(visit.fields.get("totp", "")):
            return self._show(visit, one, text, key=f"totp.{doubt}", status=403)
        if action == "back":
            is_done = await self._sources.untell(one.key)
        else:
            is_done = await self._sources.retell(one.key, text)
        outcome = "ok" if is_done else "failed"
        note(self._sources, visit, f"persona {action}", what=one.key or "usual", outcome=outcome)
        now = self._find(one.key) or one
        key = f"persona.{action}.{outcome}"
        return self._show(visit, now, now.text if is_done else text, key=key)

    def _find(self, key: str) -> PersonaState | None:
        return next((one for one in self._sources.personas() if one.key == key), None)

    def _missing(self, visit: Visit) -> web.Response:
        return self._pages.show(visit, "missing", status=404, is_away=False)

    def _show(
        self, visit: Visit, one: PersonaState, text: str, *, key: str = "", status: int = 200
    ) -> web.Response:
        estimate = self._sources.estimate
        return self._pages.show(
            visit,
            "persona_text",
            status=status,
            one=one,
            text=text,
            key=key,
            longest=LONGEST,
            asks=self._logins.totp.is_on,
            changes=list(_changes(one.text, text)) if text != one.text else [],
            before=estimate(one.text),
            after=estimate(text),
        )


def _whole(chat: str) -> str:
    """A chat that has a persona; groups are named by their number alone in GROUPS_FILE."""
    return f"0:group:{chat}" if chat.isdecimal() else chat


def _wrong_with(text: str) -> str:
    if not text:
        return "empty"
    return "long" if len(text) > LONGEST else ""


def _changes(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The lines of both, each with what became of it. Lines are compared as wholes: `ndiff` looks
    for like ones, and 200 of them held the bot up for 13 seconds.
    """
    old, new = before.splitlines(), after.splitlines()
    for what, start, end, begin, stop in SequenceMatcher(None, old, new).get_opcodes():
        if what == "equal":
            yield from (("same", line) for line in old[start:end])
        else:
            yield from (("old", line) for line in old[start:end])
            yield from (("new", line) for line in new[begin:stop])
