"""Where the sources stand in, and bodies in their shapes with made-up figures."""

from __future__ import annotations

from typing import Any

MANIFEST = "/piston-meta.mojang.com/mc/game/version_manifest_v2.json"
DDRAGON = "/ddragon.leagueoflegends.com/api/versions.json"
HOYO_CN = "/hyp-api.mihoyo.com/hyp/hyp-connect/api/getGameBranches"
HOYO_GLOBAL = "/sg-hyp-api.hoyoverse.com/hyp/hyp-connect/api/getGameBranches"
UP_TO_DATE = "/api.steampowered.com/ISteamApps/UpToDateCheck/v1/"
NEWS = "/api.steampowered.com/ISteamNews/GetNewsForApp/v2/"

GENSHIN_CN, GENSHIN_GLOBAL = "1Z8W5NHUQb", "gopR6Cufr3"


def manifest(release: str = "26.2", snapshot: str = "26.3-snapshot-3") -> dict[str, Any]:
    return {
        "latest": {"release": release, "snapshot": snapshot},
        "versions": [
            {"id": "26.3-snapshot-3", "type": "snapshot", "releaseTime": "2026-07-21T12:30:00+00:00"},
            {"id": "26.2", "type": "release", "releaseTime": "2026-06-16T10:00:00+00:00"},
        ],
    }


def branch(game: str, main: str, coming: str = "") -> dict[str, Any]:
    soon = {"tag": coming, "branch": "predownload"} if coming else None
    return {"game": {"id": game, "biz": "x"}, "main": {"tag": main, "branch": "main"}, "pre_download": soon}


def branches(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"retcode": 0, "message": "OK", "data": {"game_branches": list(rows)}}


def up_to_date(version: int = 14107) -> dict[str, Any]:
    return {"response": {"success": True, "up_to_date": False, "required_version": version, "message": "x"}}


def news(*titles: str, date: int = 1763500000) -> dict[str, Any]:
    items = [
        {"gid": "1", "title": title, "url": f"https://store.steampowered.com/news/app/730/view/{number}", "date": date}
        for number, title in enumerate(titles, 1)
    ]
    return {"appnews": {"appid": 730, "newsitems": items, "count": len(items)}}
