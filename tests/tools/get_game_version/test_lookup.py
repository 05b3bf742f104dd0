"""Names people type, and the game of the table they lead to; or what they may have meant."""

from __future__ import annotations

from tests.cases import each_case
from tools.get_game_version.games import GameTable
from tools.get_game_version.rows import Game, Steam, known_games

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
