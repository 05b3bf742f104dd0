"""The page of tools: their state and latest calls, and a form that calls a read-only one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from adapters.console.rendering import Pages
from adapters.console.routes import Access, Route, Visit
from adapters.console.sources import Sources, note
from bot.domain.console_views import ToolAnswer, ToolState

MAX_FIELDS: Final = 20  # fields; what has more, or no schema that is understood, is typed as JSON
MAX_ERROR = 300  # characters of an error that are shown
NOTHING: Mapping[str, str] = {}


class Field(Struct, frozen=True, kw_only=True):
    """An argument: its `key` in the form, what it is for, and what is typed there.

    `kind` is `text`, `number`, `choice` (of `choices`, typed by their places) or `json`; a field
    without a `name` holds all arguments. `usual` is what counts where nothing is typed.
    """

    key: str
    name: str = ""
    kind: str = "json"
    about: str = ""
    usual: str = ""
    is_needed: bool = False
    choices: tuple[Any, ...] = ()
    typed: str = ""


def fields_of(schema: Mapping[str, Any], typed: Mapping[str, str]) -> tuple[Field, ...]:
    """The fields of a tool's arguments, with what was typed by their keys."""
    properties = schema.get("properties", {})
    if (
        not isinstance(properties, Mapping)
        or len(properties) > MAX_FIELDS
        or not all(isinstance(one, Mapping) for one in properties.values())
    ):
        return (Field(key="all", typed=typed.get("all", "{}")),)
    needed = schema.get("required", ())
    return tuple(
        _field(f"a{place}", str(name), one, typed, is_needed=name in needed)
        for place, (name, one) in enumerate(properties.items())
    )


def arguments_of(fields: Sequence[Field]) -> str:
    """The typed fields as the JSON a model would write. A value that does not fit is left as it is:
    the tool says what is wrong with it.
    """
    if [field.name for field in fields] == [""]:
        return fields[0].typed
    given = {field.name: _value(field) for field in fields if field.typed}
    return json.dumps(given, ensure_ascii=False)


def _field(
    key: str, name: str, schema: Mapping[str, Any], typed: Mapping[str, str], *, is_needed: bool
) -> Field:
    usual = schema.get("default")
    kind, choices = _kind(schema)
    return Field(
        key=key,
        name=name,
        kind=kind,
        about=str(schema.get("description", "")),
        usual="" if usual in (None, "") else json.dumps(usual, ensure_ascii=False),
        is_needed=is_needed,
        choices=choices,
        typed=typed.get(key, ""),
    )


def _kind(schema: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    if isinstance(choices := schema.get("enum"), list | tuple) and choices:
        return "choice", tuple(choices)
    match schema.get("type"):
        case "boolean":
            return "choice", (True, False)
        case "string":
            return "text", ()
        case "integer" | "number":
            return "number", ()
        case _:
            return "json", ()


def _value(field: Field) -> Any:
    typed = field.typed
    if field.kind == "text":
        return typed
    if field.kind == "choice":
        places = {str(place): choice for place, choice in enumerate(field.choices)}
        return places.get(typed, typed)
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed


class ToolPages:
    """The page, and that of one of them. One call goes on at a time."""

    def __init__(self, pages: Pages, sources: Sources) -> None:
        self._pages = pages
        self._sources = sources
        self._is_calling = False

    @property
    def routes(self) -> tuple[Route, ...]:
        """Those of these pages."""
        return (
            Route("GET", "/tools", self.look, Access.LOGGED_IN),
            Route("GET", "/tools/{tool}", self.open, Access.LOGGED_IN),
            Route("POST", "/tools/{tool}", self.call, Access.LOGGED_IN, lasts=True),
        )

    async def look(self, visit: Visit) -> web.Response:
        """The page; those that cannot be used first, then those that fail."""
        found = await self._sources.showing.tools()
        used = {one.name: one for one in found or ()}

        def tone(one: ToolState) -> str:
            health = used[one.name].health if one.name in used else "good"
            if one.reason or health == "bad":
                return "bad"
            return "warn" if one.permission == "deny" else health

        def place(one: ToolState) -> tuple[bool, int, str]:
            return not one.reason, ("bad", "warn", "good").index(tone(one)), one.name

        told = [
            (one, used.get(one.name), tone(one)) for one in sorted(self._sources.tools(), key=place)
        ]
        mask = self._sources.mask  # before what is long is cut
        return self._pages.show(
            visit, "tools", tools=told, is_away=found is None, mask=mask, most=MAX_ERROR
        )

    async def open(self, visit: Visit) -> web.Response:
        """One tool, with a form for its arguments where it may be called from here."""
        one = self._find(visit)
        return self._missing(visit) if one is None else self._show(visit, one)

    async def call(self, visit: Visit) -> web.Response:
        """Call it with what was typed, and show what it gave."""
        if (one := self._find(visit)) is None:
            return self._missing(visit)
        if one.unfit:
            self._note(visit, one, f"refused: {one.unfit}")
            return self._show(visit, one, status=403)
        if self._is_calling:
            return self._show(visit, one, typed=visit.fields, is_busy=True, status=409)
        self._is_calling = True
        try:
            arguments = arguments_of(fields_of(one.parameters, visit.fields))
            answer = await self._sources.call(one.name, arguments)
        finally:
            self._is_calling = False
        self._note(visit, one, answer.code)
        return self._show(visit, one, typed=visit.fields, answer=answer)

    def _find(self, visit: Visit) -> ToolState | None:
        name = visit.at["tool"]
        return next((one for one in self._sources.tools() if one.name == name), None)

    def _missing(self, visit: Visit) -> web.Response:
        return self._pages.show(visit, "missing", status=404, is_away=False)

    def _note(self, visit: Visit, one: ToolState, outcome: str) -> None:
        note(self._sources, visit, "call tool", what=one.name, outcome=outcome)

    def _show(
        self,
        visit: Visit,
        one: ToolState,
        *,
        typed: Mapping[str, str] = NOTHING,
        answer: ToolAnswer | None = None,
        is_busy: bool = False,
        status: int = 200,
    ) -> web.Response:
        return self._pages.show(
            visit,
            "tool",
            status=status,
            one=one,
            fields=() if one.unfit else fields_of(one.parameters, typed),
            answer=answer,
            is_busy=is_busy,
        )
