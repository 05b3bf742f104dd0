from __future__ import annotations

import pytest

from adapters.words.word_file import compile_pattern
from bot.policy.join_rules import JoinRule, answer_in, decide
from tests.cases import each_case

ACCEPTS = JoinRule(compile_pattern("香山"), accepts=True)
REFUSES = JoinRule(compile_pattern("/微信|qq群/"), accepts=False, reason="广告")


@each_case(
    ("comment", "answer"),
    [
        ("问题：去过香山吗？\n答案：泰山", "泰山"),
        ("问题：第一行\n第二行\n答案：泰山\n答案：香山", "泰山\n答案：香山"),
        ("Question: who?\nAnswer: Tom", "Tom"),
        ("我是小明", "我是小明"),
        ("我的问题：答案：香山", "我的问题：答案：香山"),
        ("问题：去过香山吗？\n答案：", ""),
    ],
)
def test_only_the_applicants_own_words_are_an_answer(comment: str, answer: str) -> None:
    assert answer_in(comment) == answer


@each_case(
    ("comment", "number"),
    [("香山", 1), ("加微信", 2), ("香 山，加微信", 1), ("Ｑ Ｑ群", 2), ("泰山", 0), ("", 0), ("问题：香山\n答案：", 0)],
)
def test_the_first_rule_that_fits_decides(comment: str, number: int) -> None:
    decided = decide((ACCEPTS, REFUSES), comment)
    assert (decided.number if decided else 0) == number


@pytest.mark.parametrize("words", ["/(/", "/a*/", "", " ", "x" * 501])
def test_what_is_no_pattern_is_refused_with_a_reason(words: str) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        compile_pattern(words)


def test_a_pattern_takes_linear_time() -> None:
    assert not compile_pattern("/(a+)+$/")("a" * 400 + "!")
