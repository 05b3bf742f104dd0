"""Names as they compare."""

from __future__ import annotations

from tests.cases import each_case
from tools.get_game_version.names import (
    closeness,
    fold,
    heads,
    is_slip,
    language_of,
    may_begin,
    may_stand_for,
    resembles,
    same_numbers,
    words_of,
)


@each_case(
    ("one", "other"),
    [
        ("Counter-Strike® 2", "counterstrike2"), ("ＬＯＬ", "lol"), ("Hades II", "hades 2"), ("文明VI", "文明6"),
        ("HELLDIVERS™ 2", "helldivers 2"), ("原神国服的最新版本号", "原神"), ("Stardew version", "stardew"),
        ("Diablo IV", "diablo4"), ("崩坏：星穹铁道", "崩坏星穹铁道"), ("方舟B服", "方舟"), ("原神 PC版", "原神"),
    ],
)  # fmt: skip
def test_names_that_are_one_fold_to_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@each_case(
    ("one", "other"),
    [("英雄联盟", "英雄联盟手游"), ("Hades", "Hades II"), ("魔兽世界", "魔兽世界怀旧服"), ("Civil War", "C4 War")],
)
def test_names_that_are_two_stay_two(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_a_name_is_never_folded_to_nothing() -> None:
    assert fold("version") == "version"
    assert fold("版本") == "版本"
    assert fold("!!") == ""


def test_a_stores_title_may_have_a_slogan_behind_it() -> None:
    assert "原神" in heads("原神-「空月之歌」")
    assert "光遇" in heads("光·遇")
    assert "eldenring" in heads("ELDEN RING™")
    assert heads("-") == frozenset()


def test_numbers_must_agree() -> None:
    assert same_numbers("persona3", "persona3reload")
    assert not same_numbers("persona3", "persona5")


@each_case(
    ("title", "same"),
    [
        ("王者荣耀", True), ("王者荣耀-新赛季", True), ("Honor of Kings", True), ("Grand Theft Auto V Legacy", False),
        ("贪吃蛇大作战", False), ("", False),
    ],
)  # fmt: skip
def test_a_title_is_held_to_the_names_of_a_game(title: str, same: bool) -> None:
    assert resembles(title, frozenset({"王者荣耀", "honorofkings"})) is same


def test_a_beginning_must_be_long_enough_and_counts_as_alike() -> None:
    assert may_begin("王者")
    assert may_begin("gens")
    assert not may_begin("原")
    assert not may_begin("gen")
    assert closeness("星露谷", "星露谷物语") >= 60
    assert closeness("abc", "xyz") == 0
    assert closeness("圆神", "原神") >= 60
    assert closeness("微信", "原神") == 0


@each_case(
    ("wanted", "known", "slip"),
    [
        ("Genshin Impct", "Genshin Impact", True), ("Elden Rign version", "ELDEN RING", True),
        ("Baldurs Gate III", "Baldur's Gate 3", True), ("factroio", "Factorio", True),
        ("Hearthstnoe", "Hearthstone", True),
        ("Hearhtstnoe", "Hearthstone", True), ("Haeds", "Hades", True), ("Hdaes", "Hades", True),
        ("Hdsae", "Hades", False),
        ("Shades", "Hades", False), ("Papers", "Paper", False), ("Industry", "Mindustry", False),
        ("Hades 3", "Hades 2", False), ("Counter-Strike 2D", "Counter-Strike 2", False),
        ("Monster", "Monster Hunter", False),
        ("Monster Hunter World", "Monster Hunter Wilds", False), ("王者荣耀荣", "王者荣耀", True),
        ("明日方州", "明日方舟", False),
        ("version", "version", False), ("", "", False),
    ],
)  # fmt: skip
def test_a_slip_is_one_in_each_word(wanted: str, known: str, slip: bool) -> None:
    assert is_slip(words_of(wanted), words_of(known)) is slip


@each_case(
    ("wanted", "known", "enough"),
    [
        ("Wuthering", "Wuthering Waves", True), ("Wuther", "Wuthering Waves", False), ("Terra", "Terraria", False),
        ("Stellar", "Stellaris", False), ("Monster Hunter Wild", "Monster Hunter Wilds", True),
        ("三角", "三角洲", True),
        ("饥荒", "饥荒联机", False), ("Honor", "Honor of Kings", False), ("Kings", "Honor of Kings", False),
    ],
)  # fmt: skip
def test_most_of_a_name_stands_for_it(wanted: str, known: str, enough: bool) -> None:
    assert may_stand_for(fold(wanted), words_of(known)) is enough


def test_the_language_is_that_of_the_question() -> None:
    assert (language_of("原神"), language_of("Genshin Impact")) == ("zh", "en")
