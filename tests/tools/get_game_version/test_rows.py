"""The table of games, and the names it is asked by."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import TypeAdapter, ValidationError

from tools.get_game_version.paths import pick
from tools.get_game_version.rows import Game, Source, find_game, fold, known_games
from tools.get_game_version.sources import host_of


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("minecraft", "minecraft"), ("Minecraft", "minecraft"), ("MC", "minecraft"), ("我的世界", "minecraft"),
        ("Minecraft: Java Edition", "minecraft"), ("Java版", "minecraft"), ("mincraft", "minecraft"),
        ("LoL", "lol"), ("英雄联盟", "lol"), ("ＬＯＬ", "lol"), ("League of Legends", "lol"),
        ("英雄联盟的最新版本", "lol"),
        ("原神", "genshin"), ("Genshin", "genshin"), ("genshin impact", "genshin"), ("原神版本", "genshin"),
        ("CS2", "cs2"), ("Counter-Strike 2", "cs2"), ("counter strike", "cs2"), ("csgo", "cs2"), ("反恐", "cs2"),
        ("cs2 version", "cs2"), ("Genshin Impct", "genshin"),
    ],
)  # fmt: skip
def test_a_game_is_found_by_what_people_call_it(name: str, key: str) -> None:
    game = find_game(name, known_games())
    assert game is not None
    assert game.key == key


@pytest.mark.parametrize(
    "name",
    [
        "",
        "!!",
        "版本",
        "原",
        "Elden Ring",
        "艾尔登法环",
        "Minecraft Bedrock",
        "基岩版",
        "Counter-Strike 1",
        "英雄联盟手游",
        "原神2",
    ],
)
def test_another_game_is_not_taken_for_one_of_ours(name: str) -> None:
    assert find_game(name, known_games()) is None


def test_a_beginning_that_two_games_share_finds_neither() -> None:
    source = Source(kind="json", ref="https://x.example/", channel="c", pick="v")
    games = tuple(Game(key=key, zh=key, en=key, sources=(source,)) for key in ("half-life 1", "half-life 2"))
    assert find_game("half", games) is None
    assert find_game("half-life 2", games) == games[1]


def test_a_name_is_folded_but_never_to_nothing() -> None:
    assert fold("Counter-Strike® 2") == fold("counterstrike2")
    assert fold("version") == "version"


def test_no_two_games_share_a_name() -> None:
    names = Counter(name for game in known_games() for name in game.names)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_row_can_be_asked() -> None:
    for game in known_games():
        assert game.sources, game.key
        for source in game.sources:
            assert "." in host_of(source)
            pick({}, source.pick)
            pick({}, source.date.replace("{version}", "1.0"))


def test_a_misspelt_field_of_the_table_is_an_error() -> None:
    row = {"kind": "json", "ref": "https://x.example/", "channel": "c", "piick": "v"}
    with pytest.raises(ValidationError, match="piick"):
        TypeAdapter(Source).validate_python(row)
