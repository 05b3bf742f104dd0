from __future__ import annotations

from bot.core.language import Translations


def test_a_sentence_is_told_with_what_stands_in_its_places_and_any_other_as_it_is() -> None:
    told = Translations(
        {
            "{} of {} are here": "{1} 个里有 {0} 个在",
            "{} is away": "{} 不在",
            "nobody": "没有人",
            "{} (late)": "{}（晚）",
        }
    )
    for text, said in (
        ("3 of 10 are here", "10 个里有 3 个在"),
        ("a.b* is away", "a.b* 不在"),
        ("nobody is away", "没有人 不在"),  # a part is a sentence itself
        ("nobody (late)", "没有人（晚）"),
        ("{0}\n1 of {x} are here", "{x} 个里有 {0}\n1 个在"),
        ("she is away now", "she is away now"),
        ("", ""),
    ):
        assert told(text) == said


def test_what_stands_first_is_told_where_two_fit() -> None:
    both = {"{} answers in {} s": "{} 用 {} 秒", "{} answers {}": "{} 说 {}"}
    assert Translations(both)("it answers in 3 s") == "it 用 3 秒"
    assert Translations(dict(reversed(both.items())))("it answers in 3 s") == "it 说 in 3 s"
