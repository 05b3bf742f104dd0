"""Versions in words."""

from __future__ import annotations

import datetime as dt

from tests.cases import each_case
from tools.get_game_version.games import Missed
from tools.get_game_version.names import Language
from tools.get_game_version.releases import Release
from tools.get_game_version.report import (
    ChannelAnswer,
    report_missed,
    report_silence,
    report_versions,
    say_channel,
    say_release,
    say_title,
)
from tools.get_game_version.resolver import FoundGame
from tools.get_game_version.rows import Game, Steam

GAME = Game(key="genshin", zh="原神", en="Genshin Impact", sources=(Steam(app=1),))
DAY = dt.date(2026, 6, 16)
PLAIN = Release(channel="国服", source="https://x.example/", version="6.7.0", released=DAY)
WELL = ChannelAnswer("国服", (PLAIN,))


@each_case(
    ("release", "zh", "en"),
    [
        (
            PLAIN,
            "国服：6.7.0（2026-06-16），来源 https://x.example/",
            "China: 6.7.0 (2026-06-16), source https://x.example/",
        ),
        (
            Release(channel="国服", source="s", version="6.8.0", coming=True),
            "国服预下载：6.8.0（日期未知），来源 s",
            "China, pre-download: 6.8.0 (date unknown), source s",
        ),
        (
            Release(channel="正式版", source="s", version="26.14", raw="16.14.1", note="注", note_en="note"),
            "正式版：26.14（日期未知），数据版本 16.14.1，注，来源 s",
            "release: 26.14 (date unknown), 16.14.1 in the data, note, source s",
        ),
        (
            Release(channel="Steam", source="s", build="7", built=DAY, title="Notes", titled=DAY),
            "Steam：没有公布版本号，build 7（2026-06-16），最新公告《Notes》（2026-06-16），来源 s",
            (
                "Steam: no version number published, build 7 (2026-06-16), "
                'latest announcement "Notes" (2026-06-16), source s'
            ),
        ),
        (
            Release(channel="国际服", source="s", version="1.2.3", build="7"),
            "国际服：1.2.3（日期未知），build 7，来源 s",
            "global: 1.2.3 (date unknown), build 7, source s",
        ),
    ],
)
def test_a_release_is_one_line(release: Release, zh: str, en: str) -> None:
    assert say_release(release, WELL, "zh") == zh
    assert say_release(release, WELL, "en") == en


@each_case(
    ("seconds", "zh", "en"),
    [
        (10, "0 分钟前", "0 min ago"),
        (1500, "25 分钟前", "25 min ago"),
        (7200, "2 小时前", "2 h ago"),
        (80_100, "22 小时15 分钟前", "22 h 15 min ago"),
    ],
)
def test_an_old_answer_says_how_old_it_is_and_why(seconds: float, zh: str, en: str) -> None:
    old = ChannelAnswer("国服", (PLAIN,), seconds, "x.example answered 500")
    assert say_release(PLAIN, old, "zh").endswith(f"（这是 {zh}查到的，现在查不到：x.example answered 500）")
    assert say_release(PLAIN, old, "en").endswith(f"(found {en}, cannot be had now: x.example answered 500)")


def test_the_questions_language_comes_first() -> None:
    assert (say_title(GAME, "zh"), say_title(GAME, "en")) == ("原神 / Genshin Impact", "Genshin Impact / 原神")
    assert say_title(Game(key="x", zh="X", en="X", sources=GAME.sources), "en") == "X"
    assert (say_channel("快照", "en"), say_channel("我的频道", "en")) == ("snapshot", "我的频道")


def test_channels_that_failed_are_a_line_at_the_end() -> None:
    answers = (WELL, ChannelAnswer("国际服", trouble="y.example answered 500"), ChannelAnswer("预下载"))
    assert (
        report_versions(FoundGame(GAME), answers, "zh").splitlines()[-1] == "没有查到：国际服 (y.example answered 500)"
    )
    assert (
        report_versions(FoundGame(GAME), answers, "en").splitlines()[-1] == "No answer: global (y.example answered 500)"
    )
    assert len(report_versions(FoundGame(GAME), (WELL,), "zh").splitlines()) == 2


def test_a_game_found_by_a_store_says_so() -> None:
    assert "（按名字在 Steam 找到的）" in report_versions(FoundGame(GAME, "Steam"), (WELL,), "zh").splitlines()[0]
    assert "(found by name on Steam)" in report_versions(FoundGame(GAME, "Steam"), (WELL,), "en").splitlines()[0]


@each_case(("language", "never"), [("zh", "不要编造版本号"), ("en", "do not make up a version")])
def test_what_is_not_known_is_never_to_be_invented(language: Language, never: str) -> None:
    silence = report_silence(
        FoundGame(GAME), (ChannelAnswer("国服", trouble="x.example answered 500"),), ("x.example",), language
    )
    assert "x.example answered 500" in silence
    assert never in silence
    missed = report_missed("鲁迅", Missed(near=("A / B",), troubles=("c.example answered 503",)), language)
    for part in ("鲁迅", "A / B", "c.example answered 503", never):
        assert part in missed
    assert never in report_missed("鲁迅", Missed(), language)
