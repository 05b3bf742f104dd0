"""What a row may say, the built-in rows, and an operator's."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from frostagent.types.errors import Problem
from tests.cases import each_case
from tools.get_game_version.releases import pick
from tools.get_game_version.rows import (
    AppStore,
    Bpsv,
    GitHub,
    HoYoPlay,
    Json,
    Source,
    Steam,
    channel_of,
    channels_of,
    known_games,
    read_rows,
)
from tools.get_game_version.sources import hosts_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "games.md"
GOOD = '[[game]]\nkey = "mine"\nzh = "我的游戏"\nen = "Mine"\nsources = [{ kind = "steam", app = 42 }]\n'


def with_source(source: str) -> str:
    return GOOD.replace('{ kind = "steam", app = 42 }', source)


def problem_of(text: str) -> str:
    games, problems = read_rows(text, file="games.toml")
    assert games == ()
    (problem,) = problems
    assert problem.name == "GAMES_FILE"
    assert "docs/games.md" in problem.fix
    return problem.what


def test_there_are_games_of_every_kind() -> None:
    assert len(known_games()) >= 30
    kinds = {source.kind for game in known_games() for source in game.sources}
    assert kinds == {"json", "bpsv", "hoyoplay", "steam", "github", "appstore"}


def test_no_two_games_share_a_name() -> None:
    names = Counter(name for game in known_games() for name in game.names)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_source_can_be_asked() -> None:
    for game in known_games():
        assert len(channels_of(game)) <= 4, game.key
        for source in game.sources:
            assert all("." in host for host in hosts_of(source))
            if isinstance(source, Json):
                pick({}, source.date.replace("{version}", "1.0"))


def test_a_row_of_an_operator_is_one_more_game() -> None:
    (game,), problems = read_rows(GOOD, file="games.toml")
    assert problems == ()
    assert (game.key, game.zh, game.en, game.sources) == ("mine", "我的游戏", "Mine", (Steam(app=42),))


def test_an_empty_file_has_no_games_and_no_problem() -> None:
    assert read_rows("", file="games.toml") == ((), ())


@each_case(
    ("text", "what"),
    [
        (GOOD.replace("zh", "zhh"), "games.toml row 1 (mine): zh: "),
        (GOOD.replace("42", '"x"'), "games.toml row 1 (mine): sources.0.steam.app: "),
        (with_source('{ kind = "steam", app = 42, pick = "a" }'), "sources.0.steam.pick: "),
        (with_source('{ kind = "sream", app = 42 }'), "sources.0: Input tag 'sream'"),
        (with_source('{ kind = "json", url = "http://x.example/", pick = "a" }'), "sources.0.json.url: "),
        (with_source('{ kind = "json", url = "https://x.example/", pick = "a[" }'), "cannot be read from '['"),
        (with_source('{ kind = "json", url = "https://x.example/", pick = "a", match = "(" }'), "no"),
        (with_source('{ kind = "json", url = "https://x.example/", pick = "a", match = "a" }'), "exactly one group"),
        (with_source('{ kind = "github", repo = "x" }'), "sources.0.github.repo: "),
        (with_source('{ kind = "appstore" }'), "needs either app (its id) or search (its name)"),
        (with_source('{ kind = "hoyoplay", game = "1Z8W5NHUQb", region = "us" }'), "sources.0.hoyoplay.region: "),
        (with_source(""), "sources: "),
        (GOOD.replace('"Mine"', '"!"'), "en: Value error, must have a letter"),
        ("[game]\nkey = 1\n", "games.toml has [game]"),
        ("game = [1]\n", "games.toml row 1: "),
    ],
)  # fmt: skip
def test_a_broken_row_is_one_problem_that_names_file_row_and_field(text: str, what: str) -> None:
    assert what in problem_of(text)


def test_a_broken_row_spoils_no_other() -> None:
    broken = with_source("").replace("mine", "broken")
    games, problems = read_rows(broken + GOOD + GOOD + "\n[more]\n", file="games.toml")
    assert [game.key for game in games] == ["mine"]
    assert [problem.what.partition(":")[0] for problem in problems] == [
        "games.toml has more, but may only have [[game]]",
        "games.toml row 1 (broken)",
        "games.toml row 3 (mine)",
    ]


def test_what_is_no_toml_is_the_callers_to_tell() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="line 1"):
        read_rows("game = = 1", file="games.toml")


def test_a_problem_reads_as_a_line() -> None:
    _, (problem,) = read_rows(with_source(""), file="games.toml")
    assert isinstance(problem, Problem)
    assert "\n" not in str(problem)


@each_case(
    ("source", "channel"),
    [
        (Json(url="https://x.example/", pick="a"), "正式版"), (Bpsv(product="wow"), "正式版"),
        (HoYoPlay(game="1Z8W5NHUQb"), "国服"), (HoYoPlay(game="1Z8W5NHUQb", region="global"), "国际服"),
        (Steam(app=1), "Steam"), (GitHub(repo="a/b"), "GitHub"), (AppStore(app=1), "iOS 国区"),
        (AppStore(app=1, country="us"), "iOS US"), (Steam(app=1, channel="测试版"), "测试版"),
    ],
)  # fmt: skip
def test_a_source_has_a_channel(source: Source, channel: str) -> None:
    assert channel_of(source) == channel


# --- docs/games.md ----------------------------------------------------------------------------------


def blocks() -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [text for mark, text in fences if not mark]


def test_every_example_of_the_document_is_rows_that_can_be_read() -> None:
    assert blocks()
    for block in blocks():
        games, problems = read_rows(block, file="games.md")
        assert problems == ()
        assert games


@each_case("source", get_args(Source))
def test_the_document_names_every_field_of_every_kind_and_no_other(source: type[Json]) -> None:
    own = {field.name: field.default for field in fields(source)}
    section = re.search(rf"^### `{own['kind']}`(.*?)(?=^##|\Z)", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section
    told = set(re.findall(r"^\| `(\w+)`", section[1], re.MULTILINE))
    assert told == set(own) - {"kind", "channel", "note", "note_en"}
