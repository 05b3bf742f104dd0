from __future__ import annotations

from bot.policy.new_groups import QUESTION, GroupWord, Mode, group_in, read_word
from tests.cases import each_case


@each_case(
    ("text", "word"),
    [
        ("上线", GroupWord(Mode.LIVE)),
        (" Live 4242。", GroupWord(Mode.LIVE, 4242)),
        ("忽略4242", GroupWord(Mode.OFF, 4242)),
        ("ignore!", GroupWord(Mode.OFF)),
        ("上线了吗", None),
        ("live a little", None),
        ("上线 ４２", None),
    ],
)
def test_a_word_on_a_group_is_nothing_else_than_that(text: str, word: GroupWord | None) -> None:
    assert read_word(text) == word


@each_case("words", QUESTION)
def test_a_question_names_its_group_at_its_beginning(words: str) -> None:
    question = words.format(group=4242)
    assert (group_in(question), group_in(f"他说 {question}")) == (4242, 0)
