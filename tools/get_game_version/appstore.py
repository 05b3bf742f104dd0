"""Apple's store: an app by its id or exact name. About 20 requests a minute are free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from bot.core.ports import Web, WebResponse
from frostagent.types.errors import ToolFailed
from tools.get_game_version.names import fold, heads, resembles
from tools.get_game_version.releases import Release, UnreadableAnswer, ask, link, pick, rows, tidy
from tools.get_game_version.rows import AppStore, channel_of
from tools.get_game_version.versions import read_day, read_version

LOOKUP = "https://itunes.apple.com/lookup?id={app}&country={country}"
SEARCH = "https://itunes.apple.com/search?term={term}&country={country}&entity=software&limit=5"
PAGE = "https://apps.apple.com/{country}/app/id{app}"

FRESH = 1800.0
SEARCH_FRESH = 86400.0
GAMES = "6014"  # Apple's id of the genre


@dataclass(frozen=True, slots=True)
class App:
    """A row of an answer; `data` is Apple's."""

    id: int
    name: str
    data: dict[str, Any]

    @property
    def is_game(self) -> bool:
        return GAMES in map(
            str, (pick(self.data, "primaryGenreId"), *rows(pick(self.data, "genreIds")))
        )


def url_of(source: AppStore) -> str:
    """The URL for a source."""
    if source.app:
        return LOOKUP.format(app=source.app, country=source.country)
    return SEARCH.format(term=quote_plus(source.search), country=source.country)


async def ask_appstore(source: AppStore, web: Web, *, names: frozenset[str]) -> tuple[Release, ...]:
    """The app's version. Raises ToolFailed, also for an app that is not one of `names`."""
    apps = await ask(web, url_of(source), read_apps, fresh=FRESH) or ()
    if source.app:
        found = next((app for app in apps if app.id == source.app), None)
    else:
        # Titles may append a slogan to the name. Guides do so, too, so an exact match is better.
        named = [app for app in apps if app.is_game and fold(source.search) in heads(app.name)]
        found = min(named, key=lambda app: fold(app.name) != fold(source.search), default=None)
    where = f"the App Store ({source.country})"
    if found is None:
        raise ToolFailed(f"{where} has no {source.search or f'app {source.app}'}")
    if names and not resembles(found.name, names):
        raise ToolFailed(f"App Store app {found.id} is {found.name}, another app")
    version = read_version(pick(found.data, "version"))
    if version is None:
        raise ToolFailed(f"{where} has no version of {found.name}")
    return (
        Release(
            channel=channel_of(source),
            source=link(
                str(pick(found.data, "trackViewUrl")).partition("?")[0],
                PAGE.format(country=source.country, app=found.id),
            ),
            version=version,
            released=read_day(pick(found.data, "currentVersionReleaseDate")),
        ),
    )


async def search_appstore(term: str, web: Web, *, country: str = "cn") -> tuple[App, ...]:
    """The games that Apple returns for a name, matching or not. Raises ToolFailed."""
    url = SEARCH.format(term=quote_plus(term), country=country)
    return tuple(
        app for app in await ask(web, url, read_apps, fresh=SEARCH_FRESH) or () if app.is_game
    )


def read_apps(response: WebResponse) -> tuple[App, ...]:
    """The apps of an answer. Raises UnreadableAnswer."""
    results = pick(response.json(), "results")
    if not isinstance(results, list):
        raise UnreadableAnswer(
            f"error: {tidy(pick(response.json(), 'errorMessage')) or 'no results'}"
        )
    return tuple(
        App(pick(row, "trackId"), tidy(pick(row, "trackName")), row)
        for row in results
        if isinstance(row, dict)
        and isinstance(pick(row, "trackId"), int)
        and tidy(pick(row, "trackName"))
    )
