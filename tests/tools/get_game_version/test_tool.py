"""`get_game_version` from the question to the answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from bot.core.ports import Web
from frostagent.types.errors import InvalidArguments, ToolFailed
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.tools.get_game_version.bodies import (
    APPLE,
    APPLE_SEARCH,
    DDRAGON,
    GENSHIN_CN,
    GENSHIN_GLOBAL,
    HOYO_CN,
    HOYO_GLOBAL,
    INFO,
    MANIFEST,
    MANIFEST_MIRROR,
    NEWS,
    OSU_CHANGELOG,
    RELEASES,
    STEAM_SEARCH,
    UP_TO_DATE,
    app,
    apps,
    branch,
    branches,
    info,
    manifest,
    news,
    offers,
    release,
    up_to_date,
)
from tools.get_game_version import get_game_version, tool
from tools.get_game_version.games import Games

GetVersion = Callable[..., Coroutine[Any, Any, str]]

DOCUMENT = Path(__file__).parents[3] / "docs" / "games.md"


def tell_genshin(server: Replay) -> None:
    server.tell(HOYO_CN, branches(branch(GENSHIN_CN, "6.7.0", "6.8.0")))
    server.tell(HOYO_GLOBAL, branches(branch(GENSHIN_GLOBAL, "6.7.0")))
    server.tell(APPLE, apps(app(1467190251, "原神", "6.7.0")))


def test_the_model_sees_a_game_and_its_english_name() -> None:
    assert get_game_version.spec.parameters["required"] == ["game"]
    assert set(get_game_version.spec.parameters["properties"]) == {"game", "name_en"}
    assert get_game_version.needs == (Web, Games)


async def test_minecraft_has_a_release_and_a_snapshot(server: Replay, ask: GetVersion) -> None:
    server.tell(MANIFEST, manifest())
    source = "https://piston-meta.mojang.com/mc/game/version_manifest_v2.json"
    assert await ask(game="我的世界") == (
        "我的世界 Java 版 / Minecraft Java Edition\n"
        f"正式版：26.2（2026-06-16），来源 {source}\n"
        f"快照：26.3-snapshot-3（2026-07-21），来源 {source}"
    )
    assert await ask(game="Minecraft") == (
        "Minecraft Java Edition / 我的世界 Java 版\n"
        f"release: 26.2 (2026-06-16), source {source}\n"
        f"snapshot: 26.3-snapshot-3 (2026-07-21), source {source}"
    )
    assert server.count(MANIFEST) == 1


async def test_league_of_legends(server: Replay, ask: GetVersion) -> None:
    server.tell(DDRAGON, ["16.14.1"])
    answer = await ask(game="英雄联盟最新版本")
    assert "正式版：26.14（日期未知），数据版本 16.14.1，" in answer
    assert answer.endswith("来源 https://ddragon.leagueoflegends.com/api/versions.json")


async def test_genshin_has_two_servers_a_predownload_and_an_app(server: Replay, ask: GetVersion) -> None:
    tell_genshin(server)
    lines = (await ask(game="原神")).splitlines()
    assert [line.split("（")[0] for line in lines] == [
        "原神 / Genshin Impact",
        "国服：6.7.0",
        "国服预下载：6.8.0",
        "国际服：6.7.0",
        "iOS 国区：6.7.0",
    ]


async def test_counter_strike_has_a_version_and_its_last_announcement(server: Replay, ask: GetVersion) -> None:
    server.tell(UP_TO_DATE, up_to_date(14107))
    server.tell(NEWS, news("Release Notes for 11/18/2025"))
    server.tell(INFO.format(app=730), info(730, "Counter-Strike 2"))
    lines = (await ask(game="反恐精英2")).splitlines()
    assert lines[1].startswith("正式版：1.41.0.7（日期未知），数据版本 14107，来源 https://api.steampowered.com/")
    assert lines[2].startswith(
        "Steam：没有公布版本号，build 21000001（2025-11-18），"
        "最新公告《Release Notes for 11/18/2025》（2025-11-18），来源 https://store"
    )


async def test_a_game_of_no_table_is_found_on_steam(server: Replay, ask: GetVersion) -> None:
    server.tell(STEAM_SEARCH, offers({}))
    server.tell(STEAM_SEARCH, offers({620: "Portal 2"}), term="Portal 2")
    server.tell(NEWS, news("Portal 2 Update 2.0.1"), appid="620")
    server.tell(INFO.format(app=620), info(620, "Portal 2"))
    lines = (await ask(game="传送门二", name_en="Portal 2")).splitlines()
    assert lines[0] == "Portal 2（按名字在 Steam 找到的）"
    assert lines[1].startswith("Steam：2.0.1（")


async def test_a_game_of_no_table_is_found_in_apples_store(server: Replay, ask: GetVersion) -> None:
    server.tell(STEAM_SEARCH, offers({}))
    server.tell(APPLE_SEARCH, apps(app(7, "开心消消乐")))
    server.tell(APPLE, apps(app(7, "开心消消乐", "1.2.3")), id="7")
    lines = (await ask(game="开心消消乐")).splitlines()
    assert lines[0] == "开心消消乐（按名字在 App Store 找到的）"
    assert lines[1].startswith("iOS 国区：1.2.3（2026-10-29），来源 https://apps.apple.com/")


# --- what fails, what is old ----------------------------------------------------------------------------


async def test_a_source_that_fails_is_a_note(server: Replay, ask: GetVersion) -> None:
    tell_genshin(server)
    server.tell(HOYO_GLOBAL, {"retcode": -1, "message": "busy", "data": None})
    answer = await ask(game="原神")
    assert "国服：6.7.0" in answer
    assert "没有查到：国际服 (sg-hyp-api.hoyoverse.com sent an answer that cannot be read (error: busy)" in answer


async def test_the_next_source_of_a_channel_is_asked_where_one_fails(server: Replay, ask: GetVersion) -> None:
    server.tell(MANIFEST, "", status=503)
    server.tell(MANIFEST_MIRROR, manifest())
    answer = await ask(game="mc")
    assert "release: 26.2 (2026-06-16), source https://bmclapi2.bangbang93.com/" in answer
    assert "No answer" not in answer


async def test_the_sources_of_a_channel_are_asked_in_their_order(server: Replay, ask: GetVersion) -> None:
    stream = {"name": "lazer", "latest_build": {"version": "2026.1", "created_at": "2026-01-01T00:00:00+00:00"}}
    server.tell(OSU_CHANGELOG, {"streams": [stream]})
    server.tell(RELEASES, release())
    assert "lazer: 2026.1101.0-lazer (2026-11-01), source https://github.com/" in await ask(game="osu!")


async def test_what_is_optional_and_absent_is_not_mentioned(server: Replay, ask: GetVersion) -> None:
    path = (
        "/prod-cn-alicdn-gamestarter.kurogame.com/launcher/game/G152/10003_Y8xXrXk65DqFHEDgApn3cpK5lfczpFx5/index.json"
    )
    server.tell(path, {"default": {"version": "3.5.3"}})
    answer = await ask(game="鸣潮")
    assert "国服：3.5.3" in answer
    assert "预下载" not in answer
    assert "没有查到：国际服 (prod-alicdn" in answer


async def test_an_answer_is_used_for_half_an_hour_and_then_asked_again(
    server: Replay, ask: GetVersion, clock: StoppedClock
) -> None:
    server.tell(DDRAGON, ["16.14.1"])
    for _ in range(3):
        await ask(game="lol")
        clock.time += 590
    assert server.count(DDRAGON) == 1
    clock.time += 100
    server.tell(DDRAGON, ["16.15.1"])
    assert "26.15" in await ask(game="lol")
    assert server.count(DDRAGON) == 2


async def test_for_a_day_an_old_answer_is_better_than_none_and_says_its_age(
    server: Replay, ask: GetVersion, clock: StoppedClock
) -> None:
    server.tell(DDRAGON, ["16.14.1"])
    await ask(game="英雄联盟")
    server.tell(DDRAGON, "", status=500)
    clock.time += 3 * 3600
    answer = await ask(game="英雄联盟")
    assert "26.14" in answer
    assert answer.endswith("（这是 3 小时前查到的，现在查不到：ddragon.leagueoflegends.com answered 500）")
    clock.time += 22 * 3600
    with pytest.raises(ToolFailed, match="answered 500"):
        await ask(game="英雄联盟")


@pytest.mark.parametrize("patience", [0.5])
async def test_when_all_fail_the_hosts_are_named_and_nothing_is_invented(
    server: Replay, ask: GetVersion, patience: float
) -> None:
    server.tell(HOYO_CN, "", status=500)
    server.tell(HOYO_GLOBAL, "", gate=asyncio.Event())
    with pytest.raises(
        ToolFailed, match=r"hyp-api\.mihoyo\.com、sg-hyp-api\.hoyoverse\.com、itunes\.apple\.com.*不要编造版本号"
    ) as failure:
        await ask(game="原神")
    assert "answered 500" in str(failure.value)
    assert f"did not answer within {patience:g} s" in str(failure.value)


async def test_a_channel_has_a_deadline(server: Replay, ask: GetVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "CHANNEL_SECONDS", 0.1)
    server.tell(DDRAGON, "", gate=asyncio.Event())
    with pytest.raises(ToolFailed, match=r"took longer than 0\.1 s"):
        await ask(game="lol")


async def test_the_channels_are_asked_at_once(server: Replay, ask: GetVersion) -> None:
    tell_genshin(server)
    gate = asyncio.Event()
    server.tell(HOYO_CN, branches(branch(GENSHIN_CN, "6.7.0")), gate=gate)
    server.tell(HOYO_GLOBAL, branches(branch(GENSHIN_GLOBAL, "6.7.0")), gate=gate)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asking = group.create_task(ask(game="genshin"))
        while len(server.asked) < 3:
            server.arrived.clear()
            await server.arrived.wait()
        gate.set()
    assert "global: 6.7.0" in asking.result()


async def test_a_hundred_equal_questions_are_one_request(server: Replay, ask: GetVersion) -> None:
    gate = asyncio.Event()
    server.tell(MANIFEST, manifest(), gate=gate)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asked = [group.create_task(ask(game="mc")) for _ in range(100)]
        await server.arrived.wait()
        gate.set()
    assert len({task.result() for task in asked}) == 1
    assert server.count(MANIFEST) == 1


# --- questions that cannot be answered ----------------------------------------------------------------------


async def test_an_unknown_game_gets_suggestions_and_no_version(server: Replay, ask: GetVersion) -> None:
    server.tell(STEAM_SEARCH, offers({}))
    server.tell(APPLE_SEARCH, apps())
    with pytest.raises(ToolFailed, match=r"“明日方州”.*明日方舟 / Arknights.*name_en.*不要编造版本号"):
        await ask(game="明日方州")
    with pytest.raises(ToolFailed, match=r"not certain which game \"Qwertyuiop\" is.*do not make up"):
        await ask(game="Qwertyuiop")


@pytest.mark.parametrize("game", ["", "  ", "!!", "\u202e"])
async def test_a_name_without_a_letter_is_no_argument(ask: GetVersion, game: str) -> None:
    with pytest.raises(InvalidArguments, match="must be the name of a game"):
        await ask(game=game)


async def test_a_game_is_required(ask: GetVersion) -> None:
    with pytest.raises(InvalidArguments, match="game: required"):
        await ask()


# --- docs/games.md ----------------------------------------------------------------------------------------


async def test_the_examples_of_the_document_answer(
    server: Replay, ask: GetVersion, clock: StoppedClock, tmp_path: Path
) -> None:
    file = tmp_path / "games.toml"
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    file.write_text("".join(text for mark, text in fences if not mark), "utf-8")
    games = Games(clock=clock, file=file)
    assert games.check() == ()
    server.tell(NEWS, news("Portal 2 Update 2.0.1"), appid="620")
    server.tell(INFO.format(app=620), info(620, "Portal 2"))
    assert "Steam：2.0.1" in await ask(games, game="传送门2")
    server.tell("/versions.example.net/latest.json", "", status=500)
    server.tell("/versions.example.net/mirror.json", ["1.4.2"])
    builds = {"builds": [{"name": "stable"}, {"name": "beta", "file": "game-1.5.0.zip"}]}
    server.tell("/versions.example.net/builds.json", builds)
    answer = await ask(games, game="我的游戏")
    assert "正式版：1.4.2" in answer
    assert "测试版：1.5.0" in answer
    server.tell("/versions.example.net/latest.json", {"release": {"version": "1.4.3", "day": "2026-11-20"}})
    clock.time += 3600
    assert "正式版：1.4.3（2026-11-20）" in await ask(games, game="我的游戏")
