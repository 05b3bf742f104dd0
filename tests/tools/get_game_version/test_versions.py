"""How players call a version, and what is one."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.cases import each_case
from tools.get_game_version.versions import (
    Form,
    match_version,
    read_day,
    read_version,
    say_version,
    split_build,
    version_in,
)

DAY = dt.date(2026, 11, 18)


@each_case(
    ("raw", "form", "said"),
    [
        ("16.14.1", "league", "26.14"),
        ("15.1.1", "league", "25.1"),
        ("14.24.1", "league", "14.24.1"),
        ("lolpatch_7.20", "league", "lolpatch_7.20"),
        ("14035", "counter_strike", "1.40.3.5"),
        ("14107", "counter_strike", "1.41.0.7"),
        ("140351", "counter_strike", "140351"),
        ("1458", "dotted", "1.4.5.8"),
        ("14510", "dotted", "14510"),
        ("26.3-snapshot-3", "", "26.3-snapshot-3"),
    ],
)
def test_a_known_shape_is_turned_and_an_unknown_one_left(raw: str, form: Form, said: str) -> None:
    assert say_version(raw, form) == said


@each_case("raw", ["1.20.4", "24w09a", "b1.7.3", "16.14.1+build", 14035])
def test_a_version_is_read(raw: Any) -> None:
    assert read_version(raw) == str(raw)


@each_case("raw", [None, "", True, 1.5, [], {}, "latest", "1.2 3", "1.2\n", "版本1", "1" * 41, "<b>1</b>"])
def test_what_cannot_be_a_version_is_none(raw: Any) -> None:
    assert read_version(raw) is None


@each_case(
    ("raw", "match", "version"),
    [
        ("https://x.example/bedrock-server-1.26.36.1.zip", r"server-([\d.]+)\.zip", "1.26.36.1"),
        ("++Fortnite+Release-37.10-CL-4", r"Release-(\d+\.\d+)", "37.10"),
        ("nothing", r"Release-(\d+)", None),
        (7, r"(\d)", None),
        ("1.2", "", "1.2"),
    ],
)
def test_a_match_cuts_a_version_out(raw: Any, match: str, version: str | None) -> None:
    assert match_version(raw, match) == version


def test_a_build_stands_behind_a_version_of_battle_net() -> None:
    assert split_build("12.0.7.61234") == ("12.0.7", "61234")
    assert split_build("2.20.0.0.145000") == ("2.20.0.0", "145000")
    assert split_build("1.2.3") == ("1.2.3", "")


@each_case(
    ("title", "version"),
    [
        ("Stardew Valley 1.6.15 Patch now available", "1.6.15"),
        ("v0.6.2 Hotfix", "0.6.2"),
        ("1.0.21.1更新公告", "1.0.21.1"),
        ("Patch 7.33b is here", "7.33b"),
        ("Update 1.6.15.", "1.6.15"),
        ("Release Notes for 11/18/2026", ""),
        ("11.18 更新公告", ""),
        ("18.11 patch", ""),
        ("2026.11.18 维护公告", ""),
        ("18.11.2026 maintenance", ""),
        ("Weekend sale: 12.5% off", ""),
        ("Only $4.99 this week", ""),
        ("1.5倍经验", ""),
        ("Season 4", ""),
        ("Patch Notes - 1.2.3c", "1.2.3c"),
        ("The 1.7 update is out", "1.7"),
        ("重磅：1.6版本更新", "1.6"),
        ("《星露谷物语》1.6.9", "1.6.9"),
        ("2.0 is here", "2.0"),
        ("Autumn v2.1", "2.1"),
        ("Update: 1.5x XP", ""),
        ("Update 3.2m players", ""),
        ("Update 3.2 million players", ""),
        ("1.2 Million copies sold update", ""),
        ("4.5 stars update", ""),
        ("DLSS 4.5 support update", ""),
        ("Proton 8.0 update", ""),
        ("RTX4.5 update", ""),
        ("Patch Notes 22.11.26", ""),
        ("Patch Notes 26.11.22", ""),
        ("Patch Notes 11.22.26", ""),
        ("Patch Notes 1.22.26", "1.22.26"),
        ("Price update 9.99 €", ""),
        ("Price update €9.99", ""),
        ("更新公告 11月22日 10.00 维护", ""),
        ("10.00 维护更新", ""),
        ("Update 1.7 delayed", ""),
        ("Preview of the 1.7 update", ""),
        ("Roadmap: update 1.7", ""),
        ("1.7版本前瞻", ""),
        ("版本1.7预告", ""),
        ("Patch 1.7z", ""),
    ],
)
def test_a_title_names_a_version_only_where_it_surely_does(title: str, version: str) -> None:
    names = frozenset({"stardewvalley", "星露谷物语", "sdv", "on"})
    assert version_in(title, DAY, said_to_be_one=True, names=names) == version


def test_a_number_in_a_text_about_something_else_is_no_version() -> None:
    assert version_in("We sold 2.5 copies to every cat", DAY, said_to_be_one=False) == ""
    assert version_in("Patch 2.5.1 fixes the cat", DAY, said_to_be_one=False) == "2.5.1"


@each_case(
    ("raw", "day"),
    [
        ("2026-06-16T10:00:00+00:00", dt.date(2026, 6, 16)), ("2026-06-16T10:00:00Z", dt.date(2026, 6, 16)),
        ("2026-06-30", dt.date(2026, 6, 30)), ("26-11-05-13-21-30-90fb63", dt.date(2026, 11, 5)),
        ("26-13-05-13-21-30-90fb63", None), (1734718461, dt.date(2024, 12, 20)), (None, None), (True, None),
        ("soon", None), (10**20, None), ([], None),
    ],
)  # fmt: skip
def test_a_day_is_read_or_unknown(raw: Any, day: dt.date | None) -> None:
    assert read_day(raw) == day
