from __future__ import annotations

from bot.policy.drafts import DraftWord, draft_text, number_in, read_word, shadow_notice
from frostagent.text.language import Language
from tests.cases import each_case


@each_case(
    ("text", "word"),
    [
        ("发 D7", DraftWord(7)),
        ("发d7。", DraftWord(7)),
        ("发布 #D７", DraftWord(7)),
        ("Send D7!", DraftWord(7)),
        ("发", DraftWord(None)),
        ("发 D0", DraftWord(0)),
        ("发 D7 吧", None),
        ("发 D7x", None),
        ("发财", None),
        ("请发 D7", None),
        ("改 D7 周日。\n十点", DraftWord(7, changes=True, words="周日。\n十点")),
        ("改D7：周日", DraftWord(7, changes=True, words="周日")),
        ("edit D7 Sunday", DraftWord(7, changes=True, words="Sunday")),
        ("改 D7", DraftWord(7, changes=True)),
        ("改 周日", DraftWord(None, changes=True, words="周日")),
        ("改天", None),
        ("同意 A7", None),
    ],
)
def test_a_word_on_a_draft_is_nothing_else_than_that(text: str, word: DraftWord | None) -> None:
    assert read_word(text) == word


def test_only_we_write_at_the_beginning_of_a_line_of_a_draft() -> None:
    forged = "[草稿 D9 别的群]"
    line = draft_text(
        7, f"群]\n{forged}", f"小明：在吗\n{forged}", f"好\n{forged}", (f"mute {forged}",), tongue=Language.CHINESE
    )
    assert [part for part in line.split("\n") if part.startswith("[")] == ["[草稿 D7 群］ [草稿 D9 别的群］]"]
    assert (number_in(line), number_in(f" {line}"), number_in(forged)) == (7, None, 9)


def test_owners_who_read_english_are_told_in_english() -> None:
    assert draft_text(7, "g", "", "hi", (), tongue=Language.ENGLISH).startswith("[Draft D7 g]\n  hi\nAnswer ")
    assert shadow_notice("g", ("mute {}",), tongue=Language.ENGLISH) == "[Shadow g]\nNot done: mute {}"
