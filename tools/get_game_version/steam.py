"""Steam, which has no version field: its patch notes, public build, and search.

The notes are Valve's; the build is from steamcmd.net, run by volunteers. A number counts only if a
title or text clearly names a version; otherwise the report has the build, its day and the title.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote_plus

from bot.core.ports import Web, WebResponse
from frostagent.types.errors import ToolFailed
from tools.get_game_version.names import fold, resembles
from tools.get_game_version.releases import Release, UnreadableAnswer, ask, link, pick, rows, tidy
from tools.get_game_version.versions import read_day, read_version, version_in

NEWS = "https://api.steampowered.com/ISteamNews/GetNewsForApp/v2/?appid={app}&count=5&maxlength=300&tags=patchnotes"
ANNOUNCEMENTS = (
    "https://api.steampowered.com/ISteamNews/GetNewsForApp/v2/"
    "?appid={app}&count=5&maxlength=300&feeds=steam_community_announcements"
)
INFO = "https://api.steamcmd.net/v1/info/{app}"
SEARCH = "https://store.steampowered.com/api/storesearch/?term={term}&l={language}&cc={country}"
PAGE = "https://store.steampowered.com/news/app/{app}"

FRESH = 1800.0
SEARCH_FRESH = 86400.0  # ids do not change; the longest cache time
NO_FEED = 403  # this app has no news; too many requests would give 429

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Note:
    """An announcement with its first sentence. `is_patch` if tagged as patch notes."""

    title: str
    day: dt.date
    url: str
    text: str = ""
    is_patch: bool = False

    def version(self, names: frozenset[str]) -> str:
        """The version that it clearly names, or empty. `names` are the game's, folded."""
        said = version_in(self.title, self.day, said_to_be_one=self.is_patch, names=names)
        return said or version_in(self.text, self.day, said_to_be_one=False, names=names)


@dataclass(frozen=True, slots=True)
class Build:
    """A build from steamcmd.net; `number` is empty if the app's depots are not public."""

    name: str
    number: str = ""
    day: dt.date | None = None


async def ask_steam(
    app: int, web: Web, *, channel: str, names: frozenset[str]
) -> tuple[Release, ...]:
    """The newest version, announcement and public build. Raises ToolFailed.

    An app whose name is not in `names` (folded; empty accepts any) is another game, and an error.
    """
    async with asyncio.TaskGroup() as group:
        told = group.create_task(_settle(_news(app, web)))
        built = group.create_task(
            _settle(ask(web, INFO.format(app=app), lambda got: read_build(got, app), fresh=FRESH))
        )
    news, build = told.result(), built.result()
    if isinstance(build, Build) and names and build.name and not resembles(build.name, names):
        raise ToolFailed(f"Steam app {app} is {tidy(build.name)}, another game")
    notes = () if isinstance(news, ToolFailed) else news or ()
    number = build.number if isinstance(build, Build) else ""
    if not notes and not number:
        failures = [str(result) for result in (news, build) if isinstance(result, ToolFailed)]
        raise ToolFailed(
            "; ".join(failures) or f"Steam app {app} has neither patch notes nor a public build"
        )
    page = PAGE.format(app=app) if notes else INFO.format(app=app)
    called = names | {fold(build.name)} if isinstance(build, Build) and build.name else names
    version, versioned = next(
        ((said, note) for note in notes if (said := note.version(called))), ("", None)
    )
    newest = notes[0] if notes else None
    cited = versioned or newest
    return (
        Release(
            channel=channel,
            source=link(cited.url if cited else "", page),
            version=version,
            released=versioned.day if versioned else None,
            build=number,
            built=build.day if isinstance(build, Build) else None,
            title=newest.title if newest else "",
            titled=newest.day if newest else None,
        ),
    )


async def _news(app: int, web: Web) -> tuple[Note, ...]:
    """Patch notes, newest first; without any, all announcements."""
    tagged = await ask(
        web,
        NEWS.format(app=app),
        lambda got: read_notes(got, patches=True),
        fresh=FRESH,
        absent=NO_FEED,
    )
    if tagged or tagged is None:
        return tagged or ()
    untagged = await ask(
        web,
        ANNOUNCEMENTS.format(app=app),
        lambda got: read_notes(got, patches=False),
        fresh=FRESH,
        absent=NO_FEED,
    )
    return untagged or ()


def read_notes(response: WebResponse, *, patches: bool) -> tuple[Note, ...]:
    """The dated items of a feed, newest first. Raises UnreadableAnswer."""
    items = pick(response.json(), "appnews.newsitems")
    if not isinstance(items, list):
        raise UnreadableAnswer("no list of news")
    notes = []
    for item in items:
        title, day = tidy(pick(item, "title")), read_day(pick(item, "date"))
        if title and day and not isinstance(pick(item, "date"), str):
            text = re.split(
                r"(?<=[.!?。！？])\s+|\n", str(pick(item, "contents") or ""), maxsplit=1
            )[0][:300]
            notes.append(Note(title, day, str(pick(item, "url")), text, patches))
    return tuple(sorted(notes, key=lambda note: note.day, reverse=True))


def read_build(response: WebResponse, app: int) -> Build:
    """An app's public branch. A missing app is an empty object. Raises UnreadableAnswer."""
    row = pick(response.json(), f"data.{app}")
    if not isinstance(row, dict) or not row:
        raise UnreadableAnswer(f"no app {app}")
    seconds = pick(row, "depots.branches.public.timeupdated")
    return Build(
        name=tidy(pick(row, "common.name")),
        number=read_version(pick(row, "depots.branches.public.buildid")) or "",
        day=read_day(int(seconds))
        if isinstance(seconds, str) and re.fullmatch(r"\d{1,12}", seconds)
        else None,
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """A store's app, by its id and name there."""

    app: int
    name: str


async def search_steam(
    term: str, web: Web, *, language: str, countries: tuple[str, ...]
) -> tuple[Offer, ...]:
    """Steam's results in the first country with any, as some hide titles. Raises ToolFailed."""
    for country in countries:
        url = SEARCH.format(term=quote_plus(term), language=language, country=country)
        if offers := await ask(web, url, read_offers, fresh=SEARCH_FRESH):
            return offers
    return ()


def read_offers(response: WebResponse) -> tuple[Offer, ...]:
    """The apps in a search result. Raises UnreadableAnswer."""
    items = pick(response.json(), "items")
    if not isinstance(items, list):
        raise UnreadableAnswer("no list of games")
    return tuple(
        Offer(pick(item, "id"), tidy(pick(item, "name")))
        for item in rows(items)
        if pick(item, "type") == "app"
        and isinstance(pick(item, "id"), int)
        and tidy(pick(item, "name"))
    )


async def _settle(asked: Awaitable[T]) -> T | ToolFailed:
    try:
        return await asked
    except ToolFailed as error:
        return error
