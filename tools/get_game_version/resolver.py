"""Finds the game for a name: in the table, then on Steam, then on Apple's store; else suggestions.

A wrong game is worse than none: a store's result counts only if it alone has this name, apart from
typos.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.ports import Web
from frostagent.types.errors import ToolFailed
from tools.get_game_version.appstore import search_appstore
from tools.get_game_version.games import Games, GameTable, Looked, Missed
from tools.get_game_version.names import (
    ALIKE,
    HAN,
    closeness,
    fold,
    is_slip,
    same_numbers,
    words_of,
)
from tools.get_game_version.rows import AppStore, Game, Steam
from tools.get_game_version.steam import Offer, search_steam

SEARCH_SECONDS = 15.0
SUGGESTED = 5

# China's store hides titles that are not licensed there.
CHINESE_STORES, OTHER_STORES = ("CN", "HK", "JP"), ("US", "JP")

EXTRA = re.compile(
    r"原声|音乐集|设定集|画集|试玩|测试服|服务器|皮肤|季票|通行证|扩展包|资料片|追加|礼包|升级包"
    r"|soundtrack|\bost\b|\bdlc\b|\bpack\b|\bdemo\b|playtest|\bserver\b|artbook|art book|"
    r"season pass|upgrade|"
    r"\bbeta\b|\bbundle\b|supporter|public test",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FoundGame:
    """A game, and the store where it was found by name; empty for the table."""

    game: Game
    store: str = ""


async def resolve(name: str, name_en: str, games: Games, web: Web) -> FoundGame | Missed:
    """The game that is meant. `Missed.troubles` lists failed requests. Never raises."""
    table = await games.table()
    looked = look_up(table, name, name_en)
    if looked.game is not None:
        return FoundGame(looked.game)
    near = tuple(f"{game.zh} / {game.en}" for game in looked.near)
    if looked.ambiguous:
        return Missed(near=near)
    key = fold(name), fold(name_en)
    if missed := games.missed(*key):
        return missed
    found, offered, troubles = await _search(name, name_en, web)
    if found is not None:
        return found
    missed = Missed(near=tuple(dict.fromkeys((*near, *offered)))[:SUGGESTED], troubles=troubles)
    if not troubles:
        games.miss(*key, missed)
    return missed


def look_up(table: GameTable, name: str, name_en: str) -> Looked:
    """Look up the name as typed; else the English one, if its numbers agree."""
    looked = table.find(name)
    if looked.game is not None or looked.ambiguous or not fold(name_en):
        return looked
    english = table.find(name_en)
    numbers = re.findall(r"\d+", fold(name))
    if english.game is not None and not any(
        set(numbers) <= set(re.findall(r"\d+", known))
        for known in (*english.game.names, fold(name_en))
    ):
        return looked
    return Looked(english.game, looked.near or english.near, english.ambiguous)


async def _search(
    name: str, name_en: str, web: Web
) -> tuple[FoundGame | None, list[str], tuple[str, ...]]:
    """The game in the stores; or the names they offered, and which failed and why."""
    offered: list[str] = []
    troubles: list[str] = []
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            found = await _search_steam(name, name_en, web, offered, troubles)
            return (
                found or await _search_apple(name, web, offered, troubles),
                offered,
                tuple(troubles),
            )
    except TimeoutError:
        return None, offered, (*troubles, f"the search took longer than {SEARCH_SECONDS:g} s")


async def _search_steam(
    name: str, name_en: str, web: Web, offered: list[str], troubles: list[str]
) -> FoundGame | None:
    """Search Steam in Chinese, and in English if possible; the first clear match counts."""
    english = name_en if fold(name_en) else name
    terms: list[tuple[str, str, tuple[str, ...]]] = [(name, "schinese", CHINESE_STORES)]
    if not HAN.search(english):
        terms.append((english, "english", OTHER_STORES))

    async def search(term: str, language: str, countries: tuple[str, ...]) -> tuple[Offer, ...]:
        try:
            return await search_steam(term, web, language=language, countries=countries)
        except ToolFailed as error:
            troubles.append(str(error))
            return ()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(search(*term)) for term in terms]
    offers = [task.result() for task in tasks]
    for (term, _, _), found in zip(terms, offers, strict=True):
        if offer := choose(term, found):
            other = next(
                (known.name for each in offers for known in each if known.app == offer.app),
                offer.name,
            )
            game = Game(
                key=f"steam {offer.app}", zh=other, en=offer.name, sources=(Steam(app=offer.app),)
            )
            return FoundGame(game, "Steam")
    for (term, _, _), found in zip(terms, offers, strict=True):
        offered += [
            offer.name for offer in found if closeness(fold(term), fold(offer.name)) >= ALIKE
        ]
    return None


async def _search_apple(
    name: str, web: Web, offered: list[str], troubles: list[str]
) -> FoundGame | None:
    """The game that has exactly this name on Apple's store: guides and imitations add a slogan."""
    try:
        apps = await search_appstore(name, web)
    except ToolFailed as error:
        troubles.append(str(error))
        return None
    wanted = fold(name)
    if app := next((app for app in apps if fold(app.name) == wanted), None):
        game = Game(
            key=f"appstore {app.id}", zh=app.name, en=app.name, sources=(AppStore(app=app.id),)
        )
        return FoundGame(game, "App Store")
    offered += [app.name for app in apps if closeness(wanted, fold(app.name)) >= ALIKE]
    return None


def choose(term: str, offers: Sequence[Offer]) -> Offer | None:
    """The only offer with this name; else the only one a typo away, if no name extends it."""
    wanted = fold(term)
    base = [offer for offer in offers if not EXTRA.search(offer.name) or EXTRA.search(term)]
    same = [offer for offer in base if same_numbers(wanted, fold(offer.name))]
    exact = [offer for offer in same if fold(offer.name) == wanted]
    if exact:
        return exact[0] if len(exact) == 1 else None
    begun = [offer for offer in base if fold(offer.name).startswith(wanted)]
    near = [offer for offer in same if is_slip(words_of(term), words_of(offer.name))]
    return near[0] if len(near) == 1 and not begun else None
