"""From a name to a game, through the table and the stores."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adapters.fetching.client import HttpxWeb
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.cases import each_case
from tests.tools.get_game_version.bodies import APPLE_SEARCH, STEAM_SEARCH, app, apps, offers
from tools.get_game_version.games import Games, GameTable, Missed
from tools.get_game_version.resolver import FoundGame, choose, look_up, resolve
from tools.get_game_version.rows import AppStore, Steam, known_games
from tools.get_game_version.steam import Offer

TABLE = GameTable(known_games())


def chosen(term: str, names: Sequence[str]) -> str | None:
    offer = choose(term, [Offer(number, name) for number, name in enumerate(names, 1)])
    return offer.name if offer else None


@each_case(
    ("term", "names", "taken"),
    [
        ("传送门", ["传送门", "传送门2"], "传送门"),
        ("Portal 2", ["Portal 2", "Portal"], "Portal 2"),
        ("Portal II", ["Portal 2 - Soundtrack", "PORTAL 2™"], "PORTAL 2™"),
        ("传送门", ["传送门2"], None),
        ("女神异闻录3", ["女神异闻录5", "女神异闻录4"], None),
        ("女神异闻录3", ["女神异闻录3 Reload", "女神异闻录3 Portable"], None),
        ("太吾", ["太吾绘卷", "太吾绘卷 原声音乐集"], None),
        ("太吾", ["太吾绘卷", "太吾传"], None),
        ("鬼谷八荒", ["鬼谷八荒", "鬼谷八荒：大型扩展包"], "鬼谷八荒"),
        ("Dark", ["Darkest Dungeon", "Dark Souls"], None),
        ("Terra", ["Terraforming Mars: The Complete Collection"], None),
        ("Hollow Kniht", ["Hollow Knight"], "Hollow Knight"),
        ("Hollow Kniht", ["Hollow Knight", "Hollow Knigt"], None),
        ("Undertale", ["UNDERTALE Soundtrack"], None),
        ("Undertale Soundtrack", ["UNDERTALE Soundtrack"], "UNDERTALE Soundtrack"),
        ("Same", ["Same", "SAME"], None),
        ("Monster Hunter Worlds", ["Monster Hunter Wilds"], None),
        ("Papers", ["Paper"], None),
        ("x", [], None),
    ],
)
def test_an_offer_is_taken_only_if_it_is_surely_meant(term: str, names: list[str], taken: str | None) -> None:
    assert chosen(term, names) == taken


def test_the_english_name_helps_where_the_other_is_unknown_but_not_against_its_number() -> None:
    found = look_up(TABLE, "褪色者模拟器", "Elden Ring").game
    assert found is not None
    assert found.key == "elden-ring"
    assert look_up(TABLE, "原神2", "Genshin Impact").game is None
    assert look_up(TABLE, "褪色者模拟器", "Elden Ring 2").game is None
    assert look_up(TABLE, "褪色者模拟器", "").near == ()
    bg3 = look_up(TABLE, "博德门3", "Baldur's Gate 3").game
    assert bg3 is not None


async def test_a_game_of_the_table_asks_nobody(server: Replay, web: HttpxWeb, games: Games) -> None:
    found = await resolve("原神", "", games, web)
    assert isinstance(found, FoundGame)
    assert (found.game.key, found.store) == ("genshin", "")
    assert server.asked == []


async def test_an_ambiguous_name_asks_nobody_and_suggests(server: Replay, web: HttpxWeb, games: Games) -> None:
    missed = await resolve("崩坏", "", games, web)
    assert isinstance(missed, Missed)
    assert set(missed.near) == {"崩坏3 / Honkai Impact 3rd", "崩坏：星穹铁道 / Honkai: Star Rail"}
    assert server.asked == []


async def test_steam_is_searched_in_chinese(server: Replay, web: HttpxWeb, games: Games) -> None:
    server.tell(
        STEAM_SEARCH, offers({838350: "太吾绘卷", 1: "太吾绘卷 原声音乐集"}), term="太吾绘卷", l="schinese", cc="CN"
    )
    found = await resolve("太吾绘卷", "", games, web)
    assert isinstance(found, FoundGame)
    assert (found.game.sources, found.game.zh, found.store) == ((Steam(app=838350),), "太吾绘卷", "Steam")


async def test_steam_is_searched_by_the_english_name_too(server: Replay, web: HttpxWeb, games: Games) -> None:
    server.tell(STEAM_SEARCH, offers({}))
    server.tell(STEAM_SEARCH, offers({620: "Portal 2", 400: "Portal"}), term="Portal 2", l="english", cc="US")
    found = await resolve("传送门二", "Portal 2", games, web)
    assert isinstance(found, FoundGame)
    assert found.game.sources == (Steam(app=620),)


async def test_a_latin_name_is_searched_in_both_languages(server: Replay, web: HttpxWeb, games: Games) -> None:
    server.tell(STEAM_SEARCH, offers({620: "传送门 2"}), l="schinese")
    server.tell(STEAM_SEARCH, offers({620: "Portal 2"}), l="english")
    found = await resolve("Portal 2", "", games, web)
    assert isinstance(found, FoundGame)
    assert (found.game.zh, found.game.en) == ("传送门 2", "Portal 2")


async def test_apples_store_is_searched_where_steam_has_nothing(server: Replay, web: HttpxWeb, games: Games) -> None:
    server.tell(STEAM_SEARCH, offers({}))
    server.tell(APPLE_SEARCH, apps(app(7, "开心消消乐®"), app(8, "开心消消乐攻略")), term="开心消消乐")
    found = await resolve("开心消消乐", "", games, web)
    assert isinstance(found, FoundGame)
    assert (found.game.sources, found.store) == ((AppStore(app=7),), "App Store")


@pytest.mark.parametrize(
    ("name", "imitation"),
    [("侠盗猎车手", "侠盗猎车手: 罪恶都市模拟"), ("塞尔达传说", "塞尔达传说 - 攻略助手"), ("宝可梦", "宝可梦-消消乐")],
)
async def test_apples_only_imitation_is_not_taken(
    server: Replay, web: HttpxWeb, games: Games, name: str, imitation: str
) -> None:
    server.tell(STEAM_SEARCH, offers({}))
    server.tell(APPLE_SEARCH, apps(app(7, imitation)))
    assert await resolve(name, "", games, web) == Missed(near=(imitation,))


async def test_apples_imitations_are_suggested_at_most(server: Replay, web: HttpxWeb, games: Games) -> None:
    server.tell(STEAM_SEARCH, offers({5: "消消乐大师", 6: "别的"}))
    server.tell(APPLE_SEARCH, apps(app(7, "消消乐 - 甲"), app(8, "消消乐 - 乙"), app(9, "不相干")))
    missed = await resolve("消消乐", "", games, web)
    assert missed == Missed(near=("消消乐大师", "消消乐 - 甲", "消消乐 - 乙"))


async def test_a_miss_is_remembered_but_not_one_where_somebody_did_not_answer(
    server: Replay, web: HttpxWeb, games: Games, clock: StoppedClock
) -> None:
    server.tell(STEAM_SEARCH, "", status=503)
    server.tell(APPLE_SEARCH, apps())
    missed = await resolve("没有这个", "", games, web)
    assert missed == Missed(troubles=("store.steampowered.com answered 503",))
    server.tell(STEAM_SEARCH, offers({}))
    assert await resolve("没有这个", "", games, web) == Missed()
    asked = len(server.asked)
    assert await resolve("没有这个", "", games, web) == Missed()
    assert len(server.asked) == asked
    clock.time += 601
    await resolve("没有这个", "", games, web)
    assert len(server.asked) > asked


@pytest.mark.parametrize("patience", [0.5])
async def test_when_both_stores_fail_both_are_named(
    server: Replay, web: HttpxWeb, games: Games, patience: float
) -> None:
    server.tell(STEAM_SEARCH, {}, gate=asyncio.Event())
    server.tell(APPLE_SEARCH, "<html>")
    missed = await resolve("没有这个", "", games, web)
    assert isinstance(missed, Missed)
    steam, apple = missed.troubles
    assert f"store.steampowered.com did not answer within {patience:g} s" in steam
    assert "itunes.apple.com" in apple


async def test_a_suggestion_of_the_table_stands_before_those_of_the_stores(
    server: Replay, web: HttpxWeb, games: Games
) -> None:
    server.tell(STEAM_SEARCH, offers({1: "明日方州外传"}))
    server.tell(APPLE_SEARCH, apps())
    missed = await resolve("明日方洲", "", games, web)
    assert isinstance(missed, Missed)
    assert missed.near[0] == "明日方舟 / Arknights"
