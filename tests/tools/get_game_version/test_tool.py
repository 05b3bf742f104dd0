"""`get_game_version` from the question to the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bot.domain.errors import InvalidArguments, ToolFailed
from bot.domain.ports import Web
from tests.adapters.fetching.replay import Replay
from tests.tools.get_game_version.bodies import (
    DDRAGON,
    GENSHIN_CN,
    GENSHIN_GLOBAL,
    HOYO_CN,
    HOYO_GLOBAL,
    MANIFEST,
    NEWS,
    UP_TO_DATE,
    branch,
    branches,
    manifest,
    news,
    up_to_date,
)
from tools.get_game_version import get_game_version

GetVersion = Callable[..., Coroutine[Any, Any, str]]


def test_the_model_sees_a_game() -> None:
    assert get_game_version.spec.parameters["required"] == ["game"]
    assert get_game_version.needs == (Web,)


async def test_minecraft_has_a_release_and_a_snapshot(server: Replay, ask: GetVersion) -> None:
    server.tell(MANIFEST, manifest())
    source = "https://piston-meta.mojang.com/mc/game/version_manifest_v2.json"
    assert await ask(game="Minecraft") == (
        "我的世界 Java 版 / Minecraft Java Edition\n"
        f"正式版：26.2（2026-06-16），来源 {source}\n"
        f"快照：26.3-snapshot-3（2026-07-21），来源 {source}"
    )
    assert server.count(MANIFEST) == 1


async def test_league_of_legends(server: Replay, ask: GetVersion) -> None:
    server.tell(DDRAGON, ["16.14.1"])
    answer = await ask(game="lol")
    assert "正式版：26.14（日期未知），数据版本 16.14.1，" in answer
    assert answer.endswith("来源 https://ddragon.leagueoflegends.com/api/versions.json")


async def test_genshin_has_two_servers_and_a_predownload(server: Replay, ask: GetVersion) -> None:
    server.tell(HOYO_CN, branches(branch(GENSHIN_CN, "6.7.0", "6.8.0")))
    server.tell(HOYO_GLOBAL, branches(branch(GENSHIN_GLOBAL, "6.7.0")))
    lines = (await ask(game="原神")).splitlines()
    assert [line.split("（")[0] for line in lines] == [
        "原神 / Genshin Impact",
        "国服：6.7.0",
        "国服预下载：6.8.0",
        "国际服：6.7.0",
    ]


async def test_counter_strike_has_a_version_and_its_last_announcement(server: Replay, ask: GetVersion) -> None:
    server.tell(UP_TO_DATE, up_to_date(14107))
    server.tell(NEWS, news("Release Notes for 11/18/2025"))
    lines = (await ask(game="CS2")).splitlines()
    assert lines[1].startswith("正式版：1.41.0.7（日期未知），数据版本 14107，来源 https://api.steampowered.com/")
    assert lines[2].startswith("最新更新公告：《Release Notes for 11/18/2025》（2025-11-18），来源 https://store")


async def test_a_source_that_fails_is_a_note(server: Replay, ask: GetVersion) -> None:
    server.tell(HOYO_CN, branches(branch(GENSHIN_CN, "6.7.0")))
    server.tell(HOYO_GLOBAL, {"retcode": -1, "message": "busy", "data": None})
    answer = await ask(game="genshin")
    assert "国服：6.7.0" in answer
    assert "没有查到：国际服（sg-hyp-api.hoyoverse.com sent an answer that cannot be read (error: busy)）" in answer


async def test_when_all_fail_the_hosts_are_named_and_nothing_is_invented(server: Replay, ask: GetVersion) -> None:
    server.tell(HOYO_CN, "", status=500)
    server.tell(HOYO_GLOBAL, "", gate=asyncio.Event())
    with pytest.raises(
        ToolFailed, match=r"hyp-api\.mihoyo\.com、sg-hyp-api\.hoyoverse\.com.*不要编造版本号"
    ) as failure:
        await ask(game="genshin")
    assert "answered 500" in str(failure.value)
    assert "did not answer within 1 s" in str(failure.value)


async def test_the_sources_are_asked_at_once(server: Replay, ask: GetVersion) -> None:
    gate = asyncio.Event()
    server.tell(HOYO_CN, branches(branch(GENSHIN_CN, "6.7.0")), gate=gate)
    server.tell(HOYO_GLOBAL, branches(branch(GENSHIN_GLOBAL, "6.7.0")), gate=gate)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asking = group.create_task(ask(game="genshin"))
        while len(server.asked) < 2:
            server.arrived.clear()
            await server.arrived.wait()
        gate.set()
    assert "国际服：6.7.0" in asking.result()


async def test_an_unknown_game_says_what_is_known(server: Replay, ask: GetVersion) -> None:
    with pytest.raises(ToolFailed) as failure:
        await ask(game="艾尔登法环")
    for title in ("我的世界", "League of Legends", "原神 / Genshin Impact", "Counter-Strike 2"):
        assert title in str(failure.value)
    assert "不要编造" in str(failure.value)
    assert server.asked == []


async def test_a_game_is_required(ask: GetVersion) -> None:
    with pytest.raises(InvalidArguments, match="game: required"):
        await ask()
