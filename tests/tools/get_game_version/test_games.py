"""The table as a port: read when needed, an operator's rows in it, what was said and what was missed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.adapters.fetching.replay import StoppedClock
from tools.get_game_version import games as module
from tools.get_game_version.games import Games, Missed
from tools.get_game_version.releases import Release
from tools.get_game_version.rows import Steam, known_games

ROW = '[[game]]\nkey = "{key}"\nzh = "{zh}"\nen = "Mine"\nsources = [{{ kind = "steam", app = {app} }}]\n'
SAID = (Release(channel="Steam", source="https://x.example/", version="1.0"),)


def write(file: Path, content: str | bytes) -> None:
    file.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "games.toml"


async def test_the_table_is_not_read_before_it_is_needed(clock: StoppedClock) -> None:
    known_games.cache_clear()
    games = Games(clock=clock)
    games.check()
    games.reload()
    assert known_games.cache_info().misses == 0
    table = await games.table()
    assert len(table.games) == len(known_games())
    assert await games.table() is table


async def test_rows_of_an_operator_come_beside_and_instead_of_the_built_in_ones(
    clock: StoppedClock, file: Path
) -> None:
    write(file, ROW.format(key="genshin", zh="原神", app=1) + ROW.format(key="mine", zh="我家游乐园", app=2))
    table = await Games(clock=clock, file=file).table()
    assert len(table.games) == len(known_games()) + 1
    for name, app in (("原神", 1), ("我家游乐园", 2)):
        game = table.find(name).game
        assert game is not None
        assert game.sources == (Steam(app=app),)


async def test_a_broken_row_is_a_warning_and_stops_nothing(
    clock: StoppedClock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, ROW.format(key="genshin", zh="原神", app='"x"') + ROW.format(key="mine", zh="我家游乐园", app=2))
    games = Games(clock=clock, file=file)
    with caplog.at_level(logging.WARNING):
        (problem,) = games.check()
    assert [record.getMessage() for record in caplog.records] == [str(problem)]
    assert str(problem).startswith("GAMES_FILE: games.toml row 1 (genshin): sources.0.steam.app: ")
    table = await games.table()
    assert table.find("我家游乐园").game is not None
    assert table.find("原神").game in known_games()


@pytest.mark.parametrize(
    ("content", "what"),
    [(None, "cannot be read (No such file"), (b"\xff\xfe", "is not UTF-8"), (b"game = [", "is not TOML: ")],
)
async def test_a_file_that_cannot_be_read_is_one_problem_and_the_built_in_games_remain(
    clock: StoppedClock, file: Path, content: bytes | None, what: str
) -> None:
    if content is not None:
        write(file, content)
    games = Games(clock=clock, file=file)
    (problem,) = games.check()
    assert what in problem.what
    assert len((await games.table()).games) == len(known_games())


async def test_the_rows_are_read_again_on_demand(clock: StoppedClock, file: Path) -> None:
    write(file, "")
    games = Games(clock=clock, file=file)
    assert (await games.table()).find("我家游乐园").game is None
    games.miss("我家游乐园", "", Missed())
    write(file, ROW.format(key="mine", zh="我家游乐园", app=2))
    assert games.reload() == ()
    assert (await games.table()).find("我家游乐园").game is not None
    assert games.missed("我家游乐园", "") is None


@pytest.mark.parametrize("content", ["game = [", "[[game]]\nkey = 1\n"])
async def test_where_rereading_finds_a_problem_the_old_rows_stay(clock: StoppedClock, file: Path, content: str) -> None:
    write(file, ROW.format(key="mine", zh="我家游乐园", app=2))
    games = Games(clock=clock, file=file)
    table = await games.table()
    write(file, content)
    assert len(games.reload()) == 1
    assert await games.table() is table


async def test_reading_again_before_the_first_use_reads_no_built_in_row(clock: StoppedClock, file: Path) -> None:
    write(file, ROW.format(key="mine", zh="我家游乐园", app=2))
    games = Games(clock=clock, file=file)
    assert games.reload() == ()
    assert (await games.table()).find("我家游乐园").game is not None


def test_what_was_said_is_kept_for_a_day(clock: StoppedClock) -> None:
    games = Games(clock=clock)
    assert games.kept(Steam(app=1)) is None
    games.keep(Steam(app=1), SAID)
    clock.time += 3600
    kept = games.kept(Steam(app=1))
    assert kept is not None
    assert (kept.releases, games.age(kept)) == (SAID, 3600)
    assert games.kept(Steam(app=1), younger=1800) is None
    clock.time += module.STALE
    assert games.kept(Steam(app=1)) is None


def test_a_miss_is_remembered_for_ten_minutes(clock: StoppedClock) -> None:
    games = Games(clock=clock)
    games.miss("a", "b", Missed(near=("A",)))
    assert games.missed("a", "b") == Missed(near=("A",))
    assert games.missed("a", "") is None
    clock.time += 601
    assert games.missed("a", "b") is None
