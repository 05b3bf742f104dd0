"""Asks a source: one request, its answer parsed, every failure in a text that names the host."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bot.core.ports import Web, WebResponse
from frostagent.types.errors import ToolFailed

STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[max ([^\[\]]+)\]|\[([^=\[\]]+)=([^\[\]]*)\]")


class BadPath(ValueError):
    """A path of the table is invalid."""


def pick(data: Any, path: str) -> Any:
    """The value at the path; None if there is none. Raises BadPath.

    A step is a key; an index (for an object: into its values, in order); [key=value], the first
    list item whose key has that value; or [max key], the item with the greatest number under that
    key.
    """
    at = 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            raise BadPath(f"{path!r} cannot be read from {path[at:]!r} on")
        at = step.end()
        key, index, greatest, wanted_key, wanted = step.groups()
        if key is not None:
            data = data.get(key) if isinstance(data, dict) else None
        elif index is not None:
            data = _at(data, int(index))
        elif greatest is not None:
            rows = [item for item in _rows(data) if _is_number(item.get(greatest))]
            data = max(rows, key=lambda item: item[greatest], default=None)
        else:
            rows = [item for item in _rows(data) if wanted_key in item]
            data = next((item for item in rows if _say(item[wanted_key]) == wanted), None)
    return data


def _at(data: Any, index: int) -> Any:
    items = list(data.values()) if isinstance(data, dict) else data
    return items[index] if isinstance(items, list) and -len(items) <= index < len(items) else None


def _rows(data: Any) -> list[dict[str, Any]]:
    return [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _say(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


T = TypeVar("T")

OK = 200
REFUSALS = {
    403: "refused (403), perhaps its limit of requests is used up",
    429: "answered 429: too many requests",
}
WEB_ADDRESS = re.compile(r"https://[\w./%?=&#:+-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One source's newest version on one channel.

    `version` is empty if the source only has an announcement (`title`, of the day `titled`) or a
    `build`. `raw` is the source's version if players use another. `coming` versions can be
    downloaded but not played.
    """

    channel: str
    source: str
    version: str = ""
    raw: str = ""
    released: dt.date | None = None
    build: str = ""
    built: dt.date | None = None
    title: str = ""
    titled: dt.date | None = None
    coming: bool = False
    note: str = ""
    note_en: str = ""


class UnreadableAnswer(ValueError):
    """An answer without a version; the text says what it has instead."""


async def ask(
    web: Web, url: str, read: Callable[[WebResponse], T], *, fresh: float, absent: int = 0
) -> T | None:
    """Request a URL and parse the answer; None for the status `absent`. Raises ToolFailed.

    `read` raises ValueError (preferably `UnreadableAnswer`) for an answer without the value,
    including an error inside a 200. Such answers, and empty ones, are not cached.
    """
    response = await web.get(
        url, fresh=fresh, keep=lambda response: _says_something(read, response)
    )
    host = urlsplit(url).hostname or ""
    if response.status == absent:
        return None
    if response.status != OK:
        raise ToolFailed(f"{host} {REFUSALS.get(response.status, f'answered {response.status}')}")
    try:
        return read(response)
    except ValueError as error:  # UnreadableAnswer, or not JSON
        reason = str(error) if isinstance(error, UnreadableAnswer) else "no JSON"
        raise ToolFailed(f"{host} sent an answer that cannot be read ({reason})") from error


def tidy(text: object) -> str:
    """A vendor's text as one short line, for a model."""
    return " ".join(
        "".join(char if char.isprintable() else " " for char in str(text or "")).split()
    )[:120]


def link(url: object, otherwise: str) -> str:
    """A vendor's URL if it is plain https, else `otherwise`."""
    return url if isinstance(url, str) and WEB_ADDRESS.fullmatch(url) else otherwise


def rows(value: object) -> list[Any]:
    """A list; empty for anything else."""
    return value if isinstance(value, list) else []


def _says_something(read: Callable[[WebResponse], object], response: WebResponse) -> bool:
    try:
        return bool(read(response))
    except ValueError:
        return False
