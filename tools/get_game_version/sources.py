"""The kinds of sources: how each is asked and how its answer is read.

Every kind is a pair: the url a row asks, and a pure reader from the answer to releases. A reader raises
`Unreadable` when the answer holds no version, an error inside a 200 included; nothing is ever guessed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bot.domain.errors import ToolFailed
from bot.domain.ports import Web, WebResponse
from tools.get_game_version.forms import read_version, say_version
from tools.get_game_version.paths import pick
from tools.get_game_version.rows import Kind, Source

FRESH = 1800.0
STEAM_NEWS = (
    "https://api.steampowered.com/ISteamNews/GetNewsForApp/v2/?appid={appid}&count=5&maxlength=300&tags=patchnotes"
)

WEB_ADDRESS = re.compile(r"https://[\w./%?=&#:+-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What one source says of one channel. `version` is empty where only an announcement is known, by its `title`."""

    channel: str
    source: str
    version: str = ""
    released: dt.date | None = None
    title: str = ""
    note: str = ""


class Unreadable(ValueError):
    """An answer that holds no version; the text says what it holds instead."""


Reader = Callable[[Source, Any], tuple[Release, ...]]


async def ask_source(source: Source, web: Web) -> tuple[Release, ...]:
    """Ask one source; what it says, one release for each channel. Raises ToolFailed."""
    url_of, read = KINDS[source.kind]
    response = await web.get(url_of(source), fresh=FRESH, keep=lambda response: _reads(read, source, response))
    host = host_of(source)
    if response.status != 200:
        raise ToolFailed(f"{host} answered {response.status}")
    try:
        return read(source, response.json())
    except ValueError as error:  # Unreadable, or no JSON at all
        reason = str(error) if isinstance(error, Unreadable) else "no JSON"
        raise ToolFailed(f"{host} sent an answer that cannot be read ({reason})") from error


def host_of(source: Source) -> str:
    """Whom a source asks."""
    url_of, _ = KINDS[source.kind]
    return urlsplit(url_of(source)).hostname or ""


def read_json(source: Source, data: Any) -> tuple[Release, ...]:
    """`pick` leads to the version and `date` to its day."""
    raw = read_version(pick(data, source.pick))
    if raw is None:
        raise Unreadable(f"no version at {source.pick}")
    version = say_version(raw, source.form)
    day = read_day(pick(data, source.date.replace("{version}", raw))) if source.date else None
    note = "，".join(part for part in (f"数据版本 {raw}" if version != raw else "", source.note) if part)
    return (Release(channel=source.channel, source=source.ref, version=version, released=day, note=note),)


def read_hoyoplay(source: Source, data: Any) -> tuple[Release, ...]:
    """The branches of a HoYoPlay launcher: what is played now, and what can be downloaded beforehand.

    The row is found by the game's id: without one asked for, or with one unknown, rows of other games come too.
    """
    if pick(data, "retcode") != 0:
        raise Unreadable(f"error: {tidy(pick(data, 'message'))}")
    row = next((row for row in _list(pick(data, "data.game_branches")) if pick(row, "game.id") == source.pick), None)
    version, coming = read_version(pick(row, "main.tag")), read_version(pick(row, "pre_download.tag"))
    if version is None:
        raise Unreadable(f"no version of game {source.pick}")
    now = Release(channel=source.channel, source=source.ref, version=version, note=source.note)
    if coming is None:
        return (now,)
    return (now, Release(channel=f"{source.channel}预下载", source=source.ref, version=coming, note=source.note))


def read_steam_news(source: Source, data: Any) -> tuple[Release, ...]:
    """The newest patch note of a Steam game: a title and a day, and a version only if the title has one."""
    items = _list(pick(data, "appnews.newsitems"))
    dated = [item for item in items if isinstance(pick(item, "date"), int) and tidy(pick(item, "title"))]
    if not dated:
        raise Unreadable("no patch notes")
    newest = max(dated, key=lambda item: int(pick(item, "date")))
    title, url = tidy(pick(newest, "title")), str(pick(newest, "url"))
    found = re.search(r"(?<![\d.])v?(\d+\.\d+(?:\.\d+){0,3}[a-z]?)(?![\d.])", title)
    return (
        Release(
            channel=source.channel,
            source=url if WEB_ADDRESS.fullmatch(url) else f"https://store.steampowered.com/news/app/{source.ref}",
            version=found[1] if found else "",
            released=read_day(pick(newest, "date")),
            title=title,
            note=source.note,
        ),
    )


def read_day(raw: object) -> dt.date | None:
    """A day from ISO text or seconds since 1970 (in UTC); None for anything else."""
    try:
        match raw:
            case bool():
                return None
            case str():
                return dt.datetime.fromisoformat(raw).date()
            case int() | float():
                return dt.datetime.fromtimestamp(raw, dt.UTC).date()
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None


def tidy(text: object) -> str:
    """A vendor's words as one short line: they go to a model."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(text or "")).split())[:120]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _reads(read: Reader, source: Source, response: WebResponse) -> bool:
    try:
        return bool(read(source, response.json()))
    except ValueError:
        return False


KINDS: Mapping[Kind, tuple[Callable[[Source], str], Reader]] = {
    "json": (lambda source: source.ref, read_json),
    "hoyoplay": (lambda source: source.ref, read_hoyoplay),
    "steam_news": (lambda source: STEAM_NEWS.format(appid=source.ref), read_steam_news),
}
