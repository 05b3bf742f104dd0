"""The kinds of sources: their requests and readers. Readers are pure and never guess."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, assert_never
from urllib.parse import urlsplit

from bot.core.ports import Web, WebResponse
from frostagent.types.errors import ToolFailed
from tools.get_game_version import appstore, steam
from tools.get_game_version.releases import Release, UnreadableAnswer, ask, link, pick, rows, tidy
from tools.get_game_version.rows import (
    AppStore,
    Bpsv,
    GitHub,
    HoYoPlay,
    Json,
    Source,
    Steam,
    channel_of,
)
from tools.get_game_version.versions import (
    match_version,
    read_day,
    read_version,
    say_version,
    split_build,
)

FRESH = 1800.0
GITHUB_FRESH = 3600.0  # 60 requests an hour per address, including 304s

# Battle.net's second address uses plain http on its own port; some networks allow only one of them.
BATTLE_NET = (
    "https://us.version.battle.net/v2/products/{product}/versions",
    "http://us.patch.battle.net:1119/{product}/versions",
)
HOYOPLAY = {
    "cn": "https://hyp-api.mihoyo.com/hyp/hyp-connect/api/{call}?launcher_id=jGHBHlcOq1&game_ids[]={game}",
    "global": "https://sg-hyp-api.hoyoverse.com/hyp/hyp-connect/api/{call}?launcher_id=VYTpXlbWo8&game_ids[]={game}",
}
# Branches first: Genshin's packages stopped at 5.5.0.
HOYOPLAY_CALLS = ("getGameBranches", "getGamePackages")
Reader = Callable[[str, WebResponse], tuple[Release, ...]]
GITHUB = (
    "https://api.github.com/repos/{repo}/releases/latest",
    "https://api.github.com/repos/{repo}/tags",
)


async def ask_source(
    source: Source, web: Web, *, names: frozenset[str] = frozenset()
) -> tuple[Release, ...]:
    """A source's releases, one for each channel; empty only if the row is optional.

    `names` are the game's, folded: a store's answer about another game is an error. Raises
    ToolFailed.
    """
    match source:
        case Json():
            return (
                await ask(web, source.url, lambda got: read_json(source, got.json()), fresh=FRESH)
                or ()
            )
        case Bpsv():
            return await _first(web, source, lambda url, got: read_bpsv(source, got.body, url))
        case HoYoPlay():
            return await _first(
                web, source, lambda url, got: read_hoyoplay(source, got.json(), url)
            )
        case Steam():
            return await steam.ask_steam(source.app, web, channel=channel_of(source), names=names)
        case GitHub():
            return await _ask_github(source, web)
        case AppStore():
            return await appstore.ask_appstore(source, web, names=names)
        case _:
            assert_never(source)


def urls_of(source: Source) -> tuple[str, ...]:
    """The URLs of a source; the first one is always requested."""
    match source:
        case Json():
            return (source.url,)
        case Bpsv():
            return tuple(url.format(product=source.product) for url in BATTLE_NET)
        case HoYoPlay():
            return tuple(
                HOYOPLAY[source.region].format(call=call, game=source.game)
                for call in HOYOPLAY_CALLS
            )
        case Steam():
            return steam.NEWS.format(app=source.app), steam.INFO.format(app=source.app)
        case GitHub():
            return tuple(url.format(repo=source.repo) for url in GITHUB)
        case AppStore():
            return (appstore.url_of(source),)
        case _:
            assert_never(source)


def hosts_of(source: Source) -> tuple[str, ...]:
    """The hosts of a source."""
    return tuple(dict.fromkeys(urlsplit(url).hostname or "" for url in urls_of(source)))


def host_of(source: Source) -> str:
    """The first host of a source."""
    return hosts_of(source)[0]


def fresh_for(source: Source) -> float:
    """The seconds for which a source's answer is fresh."""
    return GITHUB_FRESH if isinstance(source, GitHub) else FRESH


async def _first(web: Web, source: Source, read: Reader) -> tuple[Release, ...]:
    """The first readable answer of its URLs. Raises ToolFailed with the errors of all."""
    troubles: list[str] = []
    for url in urls_of(source):
        try:
            return await ask(web, url, partial(read, url), fresh=FRESH) or ()
        except ToolFailed as error:
            troubles.append(str(error))
    raise ToolFailed("; ".join(dict.fromkeys(troubles)))


async def _ask_github(source: GitHub, web: Web) -> tuple[Release, ...]:
    """The latest release, or the newest tag of a repository without releases."""
    latest, tags = urls_of(source)
    found = await ask(
        web, latest, lambda got: read_release(source, got.json()), fresh=GITHUB_FRESH, absent=404
    )
    return (
        found
        or await ask(web, tags, lambda got: read_tags(source, got.json()), fresh=GITHUB_FRESH)
        or ()
    )


def read_json(source: Json, data: Any) -> tuple[Release, ...]:
    """The version at `pick` with the day at `date`."""
    found = pick(data, source.pick)
    raw = match_version(found, source.match)
    if raw is None:
        if source.optional and isinstance(data, dict | list) and found is None:
            return ()
        raise UnreadableAnswer(f"no version at {source.pick}")
    version = say_version(raw, source.form)
    return (
        Release(
            channel=channel_of(source),
            source=source.url,
            version=version,
            raw=raw if version != raw else "",
            released=read_day(pick(data, source.date.replace("{version}", raw)))
            if source.date
            else None,
            note=source.note,
            note_en=source.note_en or source.note,
        ),
    )


def read_bpsv(source: Bpsv, body: bytes, url: str) -> tuple[Release, ...]:
    """A table with fields between bars and a header; the order of fields changes."""
    lines = [
        line
        for line in body.decode("utf-8", "replace").splitlines()
        if line.strip() and line[:2] != "##"
    ]
    header = [field.partition("!")[0].casefold() for field in lines[0].split("|")] if lines else []
    if not {"region", "versionsname"} <= set(header):
        raise UnreadableAnswer(
            f"no table of versions: {tidy(lines[0])[:60]}" if lines else "nothing"
        )
    table = [dict(zip(header, line.split("|"), strict=False)) for line in lines[1:]]
    row = next((row for row in table if row.get("region") == source.region), {})
    raw = read_version(row.get("versionsname"))
    if raw is None:
        raise UnreadableAnswer(f"no version of {source.product} in {source.region}")
    version, build = split_build(raw)
    return (Release(channel=channel_of(source), source=url, version=version, build=build),)


def read_hoyoplay(source: HoYoPlay, data: Any, url: str) -> tuple[Release, ...]:
    """A launcher's branches or packages: the current version, and a pre-download.

    The row is found by the game's id: without an id, or with an unknown one, the answer has other
    games' rows.
    """
    if pick(data, "retcode") != 0:
        raise UnreadableAnswer(f"error: {tidy(pick(data, 'message'))}")
    games = rows(pick(data, "data.game_branches")) + rows(pick(data, "data.game_packages"))
    row = next((row for row in games if pick(row, "game.id") == source.game), None)
    version, coming = (_hoyoplay_version(pick(row, branch)) for branch in ("main", "pre_download"))
    if version is None:
        raise UnreadableAnswer(f"no version of game {source.game}")
    now = Release(channel=channel_of(source), source=url, version=version)
    if coming is None:
        return (now,)
    return (now, Release(channel=channel_of(source), source=url, version=coming, coming=True))


def read_release(source: GitHub, data: Any) -> tuple[Release, ...]:
    """GitHub's latest release, without the v before its number."""
    version = _tag(source, pick(data, "tag_name"))
    if version is None:
        raise UnreadableAnswer(
            f"no version in {tidy(pick(data, 'tag_name'))[:40] or tidy(pick(data, 'message'))}"
        )
    return (
        Release(
            channel=channel_of(source),
            source=link(pick(data, "html_url"), f"https://github.com/{source.repo}/releases"),
            version=version,
            released=read_day(pick(data, "published_at")),
        ),
    )


def read_tags(source: GitHub, data: Any) -> tuple[Release, ...]:
    """The first tag with a version; GitHub lists the newest first."""
    version = next(filter(None, (_tag(source, pick(row, "name")) for row in rows(data))), None)
    if version is None:
        raise UnreadableAnswer("no tag with a version")
    return (
        Release(
            channel=channel_of(source),
            source=f"https://github.com/{source.repo}/tags",
            version=version,
        ),
    )


def _hoyoplay_version(branch: Any) -> str | None:
    return read_version(pick(branch, "tag")) or read_version(pick(branch, "major.version"))


def _tag(source: GitHub, name: object) -> str | None:
    version = match_version(name, source.match)
    return version[1:] if version and version[0] in "vV" and version[1:2].isdigit() else version
