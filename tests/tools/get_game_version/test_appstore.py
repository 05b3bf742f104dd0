"""Apple's store: an app by its id or by exactly its name."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import Replay
from tests.tools.get_game_version.bodies import APPLE, APPLE_SEARCH, app, apps
from tools.get_game_version.appstore import ask_appstore, search_appstore
from tools.get_game_version.rows import AppStore

HOK = AppStore(app=989673964)
NAMES = frozenset({"王者荣耀", "honorofkings"})


async def test_an_app_by_its_id(server: Replay, web: HttpxWeb) -> None:
    server.tell(APPLE, apps(app(1, "x"), app(989673964, "王者荣耀", "11.1.1.8")), id="989673964", country="cn")
    (found,) = await ask_appstore(HOK, web, names=NAMES)
    assert (found.version, found.released, found.channel) == ("11.1.1.8", dt.date(2026, 10, 29), "iOS 国区")
    assert found.source == "https://apps.apple.com/cn/app/id989673964"


async def test_an_app_by_its_name_must_be_a_game_of_exactly_that_name(server: Replay, web: HttpxWeb) -> None:
    rows = [app(1, "光·遇攻略"), app(2, "光·遇", genre=6016), app(3, "光·遇 - 三周年", "0.30")]
    server.tell(APPLE_SEARCH, apps(*rows), term="光·遇", entity="software")
    (found,) = await ask_appstore(AppStore(search="光·遇"), web, names=frozenset({"光遇"}))
    assert (found.version, found.source) == ("0.30", "https://apps.apple.com/cn/app/id3")
    server.tell(APPLE_SEARCH, apps(app(1, "第五人格攻略")))
    with pytest.raises(ToolFailed, match=r"has no 第五人格"):
        await ask_appstore(AppStore(search="第五人格"), web, names=frozenset())


async def test_an_id_that_belongs_to_another_app_is_an_error(server: Replay, web: HttpxWeb) -> None:
    server.tell(APPLE, apps(app(989673964, "贪吃蛇大作战")))
    with pytest.raises(ToolFailed, match="is 贪吃蛇大作战, another app"):
        await ask_appstore(HOK, web, names=NAMES)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (apps(), "has no app 989673964"),
        ({"errorMessage": "Invalid value(s) for key(s): [country]"}, "error: Invalid value"),
        ({"results": 7}, "no results"),
        (apps({"trackId": 989673964}, {"trackId": "x", "trackName": "y"}), "has no app"),
        (apps(app(989673964, "王者荣耀", "soon")), "no version of 王者荣耀"),
        (apps(app(989673964, "别的", "1.0") | {"genreIds": 5}), "is 别的, another app"),
    ],
)
async def test_what_holds_no_version_is_a_failure(server: Replay, web: HttpxWeb, body: Any, words: str) -> None:
    server.tell(APPLE, body)
    with pytest.raises(ToolFailed) as failure:
        await ask_appstore(HOK, web, names=NAMES)
    assert words in str(failure.value)


async def test_an_odd_link_is_not_passed_on(server: Replay, web: HttpxWeb) -> None:
    server.tell(APPLE, apps(app(989673964, "王者荣耀") | {"trackViewUrl": "javascript:x"}))
    (found,) = await ask_appstore(HOK, web, names=NAMES)
    assert found.source == "https://apps.apple.com/cn/app/id989673964"


async def test_the_search_gives_games_only(server: Replay, web: HttpxWeb) -> None:
    server.tell(APPLE_SEARCH, apps(app(1, "原神"), app(2, "原神地图", genre=6016)), country="cn")
    assert [(found.id, found.name) for found in await search_appstore("原神", web)] == [(1, "原神")]


async def test_a_genre_that_is_none_is_no_game(server: Replay, web: HttpxWeb) -> None:
    server.tell(APPLE_SEARCH, apps(app(1, "原神", genre=0) | {"genreIds": 5}))
    assert await search_appstore("原神", web) == ()


async def test_an_exact_title_is_better_than_one_that_begins_so(server: Replay, web: HttpxWeb) -> None:
    server.tell(APPLE_SEARCH, apps(app(1, "崩坏3 - 攻略助手", "1.0"), app(2, "崩坏3", "8.5.0")))
    (found,) = await ask_appstore(AppStore(search="崩坏3"), web, names=frozenset({"崩坏3"}))
    assert found.version == "8.5.0"


async def test_a_recorded_lookup(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(APPLE, "itunes_lookup_cn")
    (found,) = await ask_appstore(HOK, web, names=NAMES)
    assert found.version == "11.1.1.8"
