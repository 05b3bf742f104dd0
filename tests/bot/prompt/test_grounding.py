from __future__ import annotations

from bot.prompt.extraction import is_grounded
from tests.cases import each_case


@each_case(
    ("fact", "said"),
    [
        ("对花生过敏", "我对花生过敏，千万别给我点"),
        ("不吃辣", "你记一下，我不吃辣"),
        ("养了一只叫豆豆的猫", "我家养了一只猫，叫豆豆，你们看"),
        ("妈妈对花生过敏", "我妈妈对花生过敏"),
        ("喜欢猫，不喜欢狗", "我喜欢猫，但是不喜欢狗"),
        ("养了一只猫", "我养了只猫"),
        ("特别喜欢喝茶", "特别喜欢喝茶"),
        ("11 月 30 日考研", "我 11 月 30 日考研"),
        ("allergic to peanuts", "I told you: I'm allergic to peanuts."),
        ("moved to Hangzhou in 2024", "yes, we moved to Hangzhou in 2024"),
    ],
)
def test_what_somebody_said_of_himself_is_grounded(fact: str, said: str) -> None:
    assert is_grounded(fact, [said], others=("小红",))


@each_case(
    ("fact", "said"),
    [
        ("喜欢猫", "我不喜欢猫"),
        ("不喜欢猫", "我喜欢猫"),
        ("对花生过敏", "我对花生过敏吗？"),
        ("搬去北京住", "如果我搬去北京住"),
        ("5 月去日本", "我 3 月去日本"),
        ("三只猫", "我有两只猫"),
        ("每周日晚上打副本", "我每周六晚上打副本"),
        ("怀孕了", "小红跟我说她怀孕了"),
        ("对花生过敏", "小红对花生过敏"),
        ("对花生过敏", "@小刚#3 你对花生过敏吧"),
        ("对花生过敏", "我妈对花生过敏"),
        ("allergic to peanuts", "my mother is allergic to peanuts"),
        ("allergic to peanuts", "I'm not allergic to peanuts"),
        ("lives in Berlin", "he lives in Berlin"),
        ("的", "我在北京"),
    ],
)
def test_what_is_turned_round_guessed_or_anothers_is_not(fact: str, said: str) -> None:
    assert not is_grounded(fact, [said], others=("小红", "我"))
