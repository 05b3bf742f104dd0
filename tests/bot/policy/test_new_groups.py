from __future__ import annotations

from bot.policy.new_groups import QUESTION, GroupWord, Mode, group_in, mode_of_new_groups, read_word
from tests.cases import each_case


@each_case(
    ("text", "word"),
    [
        ("上线", GroupWord(Mode.LIVE)),
        ("上线 0", GroupWord(Mode.LIVE, 0)),
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


@each_case(
    ("setting", "owners", "listed", "mode"),
    [
        ("ask", True, False, Mode.ASKING),
        ("ask", False, False, Mode.LIVE),
        ("ask", True, True, Mode.LIVE),
        ("off", False, False, Mode.OFF),
        ("shadow", True, False, Mode.SHADOW),
        ("off", True, True, Mode.LIVE),
    ],
)
def test_new_groups_are_as_the_settings_say_unless_groups_are_listed_or_nobody_can_be_asked(
    setting: str, owners: bool, listed: bool, mode: Mode
) -> None:
    assert mode_of_new_groups(setting, has_owners=owners, has_listed_groups=listed) is mode
