"""Asking a source: one request, its answer read, every failure in words that name
the host.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bot.domain.errors import ToolFailed
from bot.domain.ports import Web, WebResponse

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

    `version` is empty where the source only has an announcement (its `title`, of the day `titled`)
    or a `build`; `raw` is the version as the source has it, where players say another. `coming` can
    be downloaded, not played.
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
    """An answer that holds no version; the text says what it holds instead."""


async def ask(
    web: Web, url: str, read: Callable[[WebResponse], T], *, fresh: float, absent: int = 0
) -> T | None:
    """Ask a url and read the answer; None for the status `absent`. Raises ToolFailed.

    `read` raises ValueError (best `UnreadableAnswer`) for an answer without what is sought, an
    error inside a 200 included: such an answer is not kept, and neither is an empty one.
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
    except ValueError as error:  # Unreadable, or no JSON at all
        reason = str(error) if isinstance(error, UnreadableAnswer) else "no JSON"
        raise ToolFailed(f"{host} sent an answer that cannot be read ({reason})") from error


def tidy(text: object) -> str:
    """A vendor's words as one short line: they go to a model."""
    return " ".join(
        "".join(char if char.isprintable() else " " for char in str(text or "")).split()
    )[:120]


def link(url: object, otherwise: str) -> str:
    """A vendor's url if it is a plain one."""
    return url if isinstance(url, str) and WEB_ADDRESS.fullmatch(url) else otherwise


def rows(value: object) -> list[Any]:
    """A list, empty for anything else."""
    return value if isinstance(value, list) else []


def _says_something(read: Callable[[WebResponse], object], response: WebResponse) -> bool:
    try:
        return bool(read(response))
    except ValueError:
        return False
