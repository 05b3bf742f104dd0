"""The page of tools: their state and latest calls, and a form that calls a read-only one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from adapters.console.http import FIELDS
from adapters.console.rendering import render, render_missing
from adapters.console.sources import SOURCES, note
from bot.core.console_views import ToolAnswer, ToolState

MAX_FIELDS: Final = 20  # for more, or for an unusual schema, there is one JSON field
MAX_ERROR = 300  # characters of an error shown
NOTHING: Mapping[str, str] = {}
CALL: Final = web.AppKey("call", asyncio.Lock)  # held by the running call


class Field(Struct, frozen=True, kw_only=True):
    """An argument: its `key` in the form, its purpose, and the entered value.

    `kind` is `text`, `number`, `choice` (of `choices`, entered by index) or `json`; a field without
    a `name` holds all arguments. `usual` is its default.
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
    """The fields of a tool's arguments, with the entered values by key."""
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
    """The entered values as the JSON a model would write. A value that does not fit is kept, and
    the tool reports it.
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


async def show_tools(request: web.Request) -> web.Response:
    """The page; unusable tools first, then failing ones."""
    sources = request.app[SOURCES]
    found = await sources.showing.tools()
    used = {one.name: one for one in found or ()}

    def tone(one: ToolState) -> str:
        health = used[one.name].health if one.name in used else "good"
        if one.reason or health == "bad":
            return "bad"
        return "warn" if one.permission == "deny" else health

    def place(one: ToolState) -> tuple[bool, int, str]:
        return not one.reason, ("bad", "warn", "good").index(tone(one)), one.name

    told = [(one, used.get(one.name), tone(one)) for one in sorted(sources.tools(), key=place)]
    mask = sources.mask  # before long values are cut
    return render(
        request,
        "tools",
        tools=told,
        servers=sources.servers(),
        web=sources.web(),
        is_away=found is None,
        mask=mask,
        most=MAX_ERROR,
    )


async def show_tool(request: web.Request) -> web.Response:
    one = _find(request)
    return render_missing(request) if one is None else _render_tool(request, one)


async def call_tool(request: web.Request) -> web.Response:
    """Call a tool with the entered values, and show its answer. One call at a time."""
    if (one := _find(request)) is None:
        return render_missing(request)
    if one.unfit:
        note(request, "call tool", what=one.name, outcome=f"refused: {one.unfit}")
        return _render_tool(request, one, status=403)
    typed, call = request[FIELDS], request.app[CALL]
    if call.locked():
        return _render_tool(request, one, typed=typed, is_busy=True, status=409)
    async with call:
        arguments = arguments_of(fields_of(one.parameters, typed))
        answer = await request.app[SOURCES].call(one.name, arguments)
    note(request, "call tool", what=one.name, outcome=answer.code)
    return _render_tool(request, one, typed=typed, answer=answer)


def _find(request: web.Request) -> ToolState | None:
    name = request.match_info["tool"]
    return next((one for one in request.app[SOURCES].tools() if one.name == name), None)


def _render_tool(
    request: web.Request,
    one: ToolState,
    *,
    typed: Mapping[str, str] = NOTHING,
    answer: ToolAnswer | None = None,
    is_busy: bool = False,
    status: int = 200,
) -> web.Response:
    return render(
        request,
        "tool",
        status=status,
        one=one,
        fields=() if one.unfit else fields_of(one.parameters, typed),
        answer=answer,
        is_busy=is_busy,
    )
