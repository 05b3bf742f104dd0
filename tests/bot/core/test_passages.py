"""Which paragraphs a question is about, and long texts in parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.passages import GAP, parts_of, passages_about
from tests.cases import each_case

FILLER = [f"第{n}段说的是别的事情，和天气有关的内容一概没有，只是为了把篇幅拉长。" for n in range(80)]
PARAGRAPHS = [
    *FILLER[:20],
    "## 营业时间",
    "周一到周五早上九点开门，晚上六点关门。",
    *FILLER[20:50],
    "## Refunds",
    "A refund takes up to seven days; write to the shop within a month.",
    *FILLER[50:],
]


@each_case(
    ("about", "found", "heading"),
    [
        ("几点关门", "晚上六点关门", "## 营业时间"),
        ("营业时间是什么", "## 营业时间", "## 营业时间"),
        ("how long does a refund take", "A refund takes up to seven days", "## Refunds"),
        ("REFUND", "A refund takes up to seven days", "## Refunds"),
    ],
)
def test_the_nearest_passages_are_found_with_their_heading(about: str, found: str, heading: str) -> None:
    text = passages_about(PARAGRAPHS, about, size=300)
    assert found in text
    assert heading in text
    assert len(text) <= 300
    assert text.startswith(GAP)


def test_passages_stand_in_the_order_of_the_document() -> None:
    text = passages_about(["苹果一斤三元", *FILLER, "苹果产自烟台"], "苹果", size=100)
    assert text.split(f"\n{GAP}\n") == ["苹果一斤三元", "苹果产自烟台"]


def test_no_passage_is_about_words_that_are_not_there() -> None:
    assert passages_about(PARAGRAPHS, "blockchain") == ""
    assert passages_about([], "x") == ""
    assert passages_about(PARAGRAPHS, "？！") == ""


def test_a_long_paragraph_is_parted_between_its_sentences() -> None:
    long = "无关的话。" * 200 + "答案是四十二。" + "无关的话。" * 200
    assert passages_about([long], "答案", size=500).strip(f"{GAP}\n").startswith("无关的话。")
    assert "答案是四十二" in passages_about([long], "答案", size=500)


@given(st.lists(st.text(min_size=1, max_size=200), max_size=20), st.integers(10, 300))
def test_parts_are_all_of_the_text_and_none_is_longer_than_it_may(paragraphs: list[str], size: int) -> None:
    parts = parts_of(paragraphs, size)
    assert all(len(part) <= size for part in parts)
    assert "".join("".join(parts).split()) == "".join("".join(paragraphs).split())


@given(st.lists(st.text(max_size=300), max_size=20), st.text(max_size=50), st.integers(50, 500))
def test_passages_are_never_longer_than_they_may(paragraphs: list[str], about: str, size: int) -> None:
    assert len(passages_about(paragraphs, about, size)) <= size + len(GAP) + 1
