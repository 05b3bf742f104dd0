"""The table as a port: read when needed, an operator's rows in it, what was said and what was missed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.adapters.fetching.replay import StoppedClock
from tests.cases import each_case
from tools.get_game_version import games as module
from tools.get_game_version.games import Games, GameTable, Missed
from tools.get_game_version.releases import Release
from tools.get_game_version.rows import Game, Steam, known_games

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


TABLE = GameTable(known_games())

FOUND = [
    # Chinese
    ("我的世界", "minecraft"), ("基岩版", "minecraft-bedrock"), ("英雄联盟", "lol"), ("英雄联盟手游", "wild-rift"),
    ("无畏契约", "valorant"), ("原神", "genshin"), ("崩坏：星穹铁道", "starrail"), ("绝区零", "zzz"),
    ("崩坏3", "honkai3"),
    ("鸣潮", "wuwa"), ("明日方舟", "arknights"), ("明日方舟终末地", "endfield"), ("反恐精英2", "cs2"),
    ("异星工厂", "factorio"), ("泰拉瑞亚", "terraria"), ("堡垒之夜", "fortnite"), ("守望先锋", "overwatch"),
    ("魔兽世界", "wow"), ("魔兽世界怀旧服", "wow-classic"), ("炉石传说", "hearthstone"), ("暗黑破坏神4", "diablo4"),
    ("星际争霸2", "starcraft2"), ("魔兽争霸3", "warcraft3"), ("星露谷物语", "stardew"), ("幻兽帕鲁", "palworld"),
    ("绝地求生", "pubg"), ("艾尔登法环", "elden-ring"), ("黑神话：悟空", "wukong"), ("永劫无间", "naraka"),
    ("饥荒联机版", "dst"), ("文明6", "civ6"), ("彩虹六号：围攻", "r6"), ("空洞骑士", "hollow-knight"),
    ("空洞骑士：丝之歌", "silksong"), ("博德之门3", "bg3"), ("赛博朋克2077", "cyberpunk"), ("王者荣耀", "hok"),
    ("和平精英", "hpjy-ios"), ("第五人格", "identity5"), ("金铲铲之战", "tft-mobile"),
    # English, in any case and punctuation
    ("Minecraft", "minecraft"), ("Minecraft: Java Edition", "minecraft"), ("Minecraft Bedrock", "minecraft-bedrock"),
    ("League of Legends", "lol"), ("Genshin Impact", "genshin"), ("Honkai: Star Rail", "starrail"),
    ("Zenless Zone Zero", "zzz"), ("Wuthering Waves", "wuwa"), ("Counter-Strike 2", "cs2"), ("DOTA 2", "dota2"),
    ("Diablo IV", "diablo4"), ("Hades", "hades"), ("Hades 2", "hades2"), ("Baldur's Gate III", "bg3"),
    ("StarCraft II", "starcraft2"), ("osu!", "osu"), ("ELDEN RING", "elden-ring"), ("Apex Legends", "apex"),
    # what players call it
    ("mc", "minecraft"), ("Java版", "minecraft"), ("ＬＯＬ", "lol"), ("撸啊撸", "lol"), ("瓦", "valorant"),
    ("ys", "genshin"),
    ("星铁", "starrail"), ("粥", "arknights"), ("csgo", "cs2"), ("ow2", "overwatch"), ("炉石", "hearthstone"),
    ("老头环", "elden-ring"), ("农药", "hok"), ("吃鸡", "pubg"), ("吃鸡手游", "hpjy-ios"), ("pubgm", "pubg-mobile"),
    ("d2r", "diablo2"),
    ("mcbe", "minecraft-bedrock"),
    # with the question still around it
    ("原神国服", "genshin"), ("英雄联盟的最新版本", "lol"), ("cs2 version", "cs2"), ("明日方舟B服", "arknights"),
    ("星露谷物语steam版", "stardew"), ("王者荣耀更新", "hok"),
    # beginnings
    ("王者", "hok"), ("戴森", "dsp"), ("genshin", "genshin"), ("Wuthering", "wuwa"), ("三角", "delta-force"),
    ("Monster Hunter Wild", "mhwilds"), ("Black Myth", "wukong"),
    # one of a series
    ("Monster Hunter: World", "mhworld"), ("怪物猎人世界", "mhworld"), ("怪猎崛起", "mhrise"), ("怪猎荒野", "mhwilds"),
    ("饥荒", "dont-starve"), ("Don't Starve", "dont-starve"), ("Dont Starve Together", "dst"), ("饥荒联机", "dst"),
    ("崩3", "honkai3"), ("MC基岩版", "minecraft-bedrock"), ("PUBG MOBILE", "pubg-mobile"),
    # slips
    ("mincraft", "minecraft"), ("minecarft", "minecraft"), ("Genshin Impct", "genshin"),
    ("Staredw Valley", "stardew"),
    ("Valorent", "valorant"), ("factroio", "factorio"), ("Terarria", "terraria"), ("Elden Rign", "elden-ring"),
    ("Hearthstoen", "hearthstone"), ("pal world", "palworld"), ("Leage of Legends", "lol"), ("Overwach", "overwatch"),
    ("王者荣耀荣", "hok"), ("Baldurs Gate 3", "bg3"), ("Genshin Imapct version", "genshin"),
    ("Counter Stirke 2", "cs2"), ("Subnatica", "subnautica"),
]  # fmt: skip

SUGGESTED = [
    ("艾尔登法怀", "elden-ring"), ("明日方州", "arknights"), ("英雄联萌", "lol"), ("我的世界2", "minecraft"),
    ("崩坏", "starrail"),
    ("崩坏", "honkai3"), ("魔兽", "wow"), ("魔兽", "warcraft3"), ("暗黑破坏神", "diablo4"),
    ("星际争霸", "starcraft2"),
    ("文明", "civ6"), ("文明7", "civ6"), ("Counter-Strike 1", "cs2"), ("Hades 3", "hades"), ("原神2", "genshin"),
    ("英雄", "lol"), ("赛博朋客2078", "cyberpunk"), ("honkai", "honkai3"), ("绝地潜兵", "helldivers2"),
    ("原", "genshin"),
    # a series, or a word of a name
    ("怪物猎人", "mhwilds"), ("怪物猎人", "mhworld"), ("怪猎", "mhrise"), ("Monster Hunter", "mhworld"),
    ("Heroes", "heroes-of-the-storm"), ("Honor", "hok"), ("Peace", "hpjy-ios"), ("Wild", "wild-rift"),
    ("Terra", "terraria"), ("Stellar", "stellaris"), ("深海", "subnautica"), ("风暴", "heroes-of-the-storm"),
    ("致命", "lethal-company"), ("军团", "tf2"), ("Wuther", "wuwa"), ("明日", "arknights"),
    # one letter away, and another word
    ("Shades", "hades"), ("Papers", "paper"), ("Industry", "mindustry"), ("Monster Hunter Wild Hearts", "mhwilds"),
    ("Counter-Strike 2D", "cs2"),
    # two characters, one wrong
    ("圆神", "genshin"), ("鸣朝", "wuwa"),
]  # fmt: skip

NOTHING = ["", "!!", "版本", "鲁迅全集", "微信", "gta", "女神异闻录3", "ab"]


@each_case(("name", "key"), FOUND)
def test_a_game_is_found_by_what_people_call_it(name: str, key: str) -> None:
    looked = TABLE.find(name)
    assert looked.game is not None, [game.key for game in looked.near]
    assert looked.game.key == key


@each_case(("name", "key"), SUGGESTED)
def test_what_is_not_certain_is_suggested_and_not_taken(name: str, key: str) -> None:
    looked = TABLE.find(name)
    assert looked.game is None
    assert key in [game.key for game in looked.near]


@each_case("name", NOTHING)
def test_another_game_is_not_taken_for_one_of_ours(name: str) -> None:
    looked = TABLE.find(name)
    assert looked.game is None
    assert looked.near == ()


def test_a_beginning_that_two_games_share_is_ambiguous() -> None:
    games = tuple(Game(key=key, zh=key, en=key, sources=(Steam(app=1),)) for key in ("half-life red", "half-life blue"))
    table = GameTable(games)
    assert table.find("half").ambiguous
    assert set(table.find("half").near) == set(games)
    assert table.find("half-life blue").game == games[1]


def test_two_games_that_are_as_close_are_ambiguous() -> None:
    games = tuple(Game(key=key, zh=key, en=key, sources=(Steam(app=1),)) for key in ("warlandia", "warlandio"))
    assert GameTable(games).find("warlandiu").ambiguous


def test_of_two_rows_with_one_name_the_earlier_has_it() -> None:
    mine = Game(key="mine", zh="原神", en="Mine", sources=(Steam(app=1),))
    assert GameTable((mine, *known_games())).find("原神").game == mine
