"""Where the sources stand in, and bodies in their shapes with made-up figures."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

MANIFEST = "/piston-meta.mojang.com/mc/game/version_manifest_v2.json"
MANIFEST_MIRROR = "/bmclapi2.bangbang93.com/mc/game/version_manifest_v2.json"
BEDROCK = "/net.web.minecraft-services.net/api/v1.0/download/links"
DDRAGON = "/ddragon.leagueoflegends.com/api/versions.json"
VALORANT = "/valorant-api.com/v1/version"
HOYO_CN = "/hyp-api.mihoyo.com/hyp/hyp-connect/api/getGameBranches"
HOYO_CN_PACKAGES = "/hyp-api.mihoyo.com/hyp/hyp-connect/api/getGamePackages"
HOYO_GLOBAL = "/sg-hyp-api.hoyoverse.com/hyp/hyp-connect/api/getGameBranches"
BATTLE_NET = "/us.version.battle.net/v2/products/wow/versions"
BATTLE_NET_OLD = "/us.patch.battle.net/wow/versions"
UP_TO_DATE = "/api.steampowered.com/ISteamApps/UpToDateCheck/v1/"
NEWS = "/api.steampowered.com/ISteamNews/GetNewsForApp/v2/"
INFO = "/api.steamcmd.net/v1/info/{app}"
STEAM_SEARCH = "/store.steampowered.com/api/storesearch/"
APPLE = "/itunes.apple.com/lookup"
APPLE_SEARCH = "/itunes.apple.com/search"
RELEASES = "/api.github.com/repos/ppy/osu/releases/latest"
TAGS = "/api.github.com/repos/ppy/osu/tags"
OSU_CHANGELOG = "/osu.ppy.sh/api/v2/changelog"

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


def packages(game: str, main: str) -> dict[str, Any]:
    row = {"game": {"id": game}, "main": {"major": {"version": main}}, "pre_download": {"major": None, "patches": []}}
    return {"retcode": 0, "message": "OK", "data": {"game_packages": [row]}}


def up_to_date(version: int = 14107) -> dict[str, Any]:
    return {"response": {"success": True, "up_to_date": False, "required_version": version, "message": "x"}}


def news(*titles: str, date: int = 1763500000, contents: str = "") -> dict[str, Any]:
    items = [
        {
            "gid": "1",
            "title": title,
            "url": f"https://store.steampowered.com/news/app/730/view/{number}",
            "date": date - number,
            "contents": contents,
        }
        for number, title in enumerate(titles, 1)
    ]
    return {"appnews": {"appid": 730, "newsitems": items, "count": len(items)}}


def info(app: int, name: str, build: str = "21000001", updated: str = "1763500000") -> dict[str, Any]:
    public = {"buildid": build, "timeupdated": updated, "timebuildupdated": updated}
    row = {
        "common": {"name": name, "type": "Game"},
        "depots": {"branches": {"beta": {"buildid": "9"}, "public": public}},
    }
    return {"data": {str(app): row}, "status": "success"}


def offers(names: Mapping[int, str]) -> dict[str, Any]:
    items = [{"type": "app", "name": name, "id": app, "metascore": ""} for app, name in names.items()]
    return {"total": len(items), "items": items}


def apps(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"resultCount": len(rows), "results": list(rows)}


def app(track: int, name: str, version: str = "1.2.3", genre: int = 6014) -> dict[str, Any]:
    return {
        "trackId": track,
        "trackName": name,
        "version": version,
        "currentVersionReleaseDate": "2026-10-29T01:02:03Z",
        "trackViewUrl": f"https://apps.apple.com/cn/app/id{track}?uo=4",
        "primaryGenreId": genre,
        "genreIds": [str(genre)],
    }


def release(tag: str = "2026.1101.0-lazer") -> dict[str, Any]:
    return {
        "tag_name": tag,
        "html_url": f"https://github.com/ppy/osu/releases/tag/{tag}",
        "published_at": "2026-11-01T12:00:00Z",
        "prerelease": False,
    }


def bpsv(*, header: str = "", rows: tuple[str, ...] = ()) -> str:
    """A table as Battle.net writes it; the columns may come in any order."""
    lines = [header or "Region!STRING:0|BuildId!DEC:4|VersionsName!String:0", "## seqn = 3184412"]
    return "\n".join([*lines, *(rows or ("us|61234|12.0.7.61234", "cn|61200|12.0.5.61200"))]) + "\n"


JSON_ROWS: list[tuple[str, int, str, Any, str, dt.date | None]] = [
    (
        "minecraft-bedrock",
        0,
        BEDROCK,
        {
            "result": {
                "links": [
                    {"downloadType": "serverBedrockWindows", "downloadUrl": "https://x.example/bedrock-server-9.9.zip"},
                    {
                        "downloadType": "serverBedrockLinux",
                        "downloadUrl": "https://x.example/bedrock-server-1.26.36.1.zip",
                    },
                ]
            }
        },
        "1.26.36.1",
        None,
    ),
    (
        "paper",
        0,
        "",
        {"project": {"id": "paper"}, "versions": {"26.2": ["26.2.1", "26.2"], "1.21": ["1.21.11"]}},
        "26.2.1",
        None,
    ),
    ("fabric", 0, "", [{"version": "0.18.0", "stable": False}, {"version": "0.17.9", "stable": True}], "0.17.9", None),
    ("neoforge", 0, "", {"isSnapshot": False, "version": "26.1.2.7-beta"}, "26.1.2.7-beta", None),
    (
        "valorant",
        0,
        VALORANT,
        {
            "status": 200,
            "data": {"branch": "release-12.04", "version": "12.04.00.1", "buildDate": "2026-03-01T21:16:13Z"},
        },
        "12.04",
        dt.date(2026, 3, 1),
    ),
    ("arknights", 0, "", {"resVersion": "26-11-05-13-21-30-90fb63", "clientVersion": "2.6.40"}, "2.6.40", None),
    (
        "arknights",
        1,
        "",
        {"resVersion": "26-11-05-13-21-30-90fb63", "clientVersion": "2.6.40"},
        "26-11-05-13-21-30-90fb63",
        dt.date(2026, 11, 5),
    ),
    (
        "dota2",
        0,
        "",
        {
            "patches": [
                {"patch_number": "7.41", "patch_timestamp": 1763500000},
                {"patch_number": "7.40", "patch_timestamp": 1},
            ],
            "success": 1,
        },
        "7.41",
        dt.date(2025, 11, 18),
    ),
    ("factorio", 0, "", {"stable": {"alpha": "2.0.77"}, "experimental": {"alpha": "2.1.14"}}, "2.0.77", None),
    ("factorio", 1, "", {"stable": {"alpha": "2.0.77"}, "experimental": {"alpha": "2.1.14"}}, "2.1.14", None),
    ("terraria", 0, "", ["terraria-server-1458.zip", "terraria-server-1449.zip"], "1.4.5.8", None),
    ("roblox", 0, "", {"version": "0.701.0.7010123", "clientVersionUpload": "version-x"}, "0.701.0.7010123", None),
    ("fortnite", 0, "", {"status": 200, "data": {"build": "++Fortnite+Release-37.10-CL-123"}}, "37.10", None),
    (
        "osu",
        1,
        "",
        {
            "streams": [
                {"name": "cuttingedge"},
                {
                    "name": "lazer",
                    "latest_build": {"version": "2026.1101.0", "created_at": "2026-11-01T01:00:00+00:00"},
                },
            ]
        },
        "2026.1101.0",
        dt.date(2026, 11, 1),
    ),
    ("wuwa", 0, "", {"default": {"version": "3.5.3"}, "predownload": {"version": "3.6.0"}}, "3.5.3", None),
    ("wuwa", 1, "", {"default": {"version": "3.5.3"}, "predownload": {"version": "3.6.0"}}, "3.6.0", None),
]
"""A built-in game, which of its sources, where it is asked (empty: by its url), an answer, the version, its day."""
