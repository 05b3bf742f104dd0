"""The estimate: its shape, and how far it is from what vendors counted."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.models.tokens import (
    BLANK,
    BOUNDS,
    CJK,
    DIGIT,
    LETTER,
    OTHER,
    PICTURE,
    SIGN,
    Scale,
    estimate,
    estimate_message,
    estimate_messages,
    estimate_text,
)
from frostagent.types import messages as model_messages
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from tests.cases import each_case

COUNTED = Path(__file__).parents[2] / "data" / "providers" / "counted.csv"
TOOL = ToolSpec("f", "Does it.", {"type": "object", "properties": {}})


@given(st.text(), st.text())
def test_a_text_has_as_many_as_its_parts(left: str, right: str) -> None:
    assert estimate_text(left + right) == pytest.approx(estimate_text(left) + estimate_text(right))


@given(st.text(min_size=1), st.characters())
def test_a_longer_text_never_has_fewer(text: str, more: str) -> None:
    assert estimate_text(text + more) > estimate_text(text) > 0


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_a_token_is_1_to_1_and_a_half_chinese_characters(text: str) -> None:
    assert len(text) / 1.5 <= estimate_text(text) <= len(text)


@given(st.text(alphabet=st.characters(codec="ascii"), min_size=1))
def test_no_ascii_text_is_more_than_a_token_for_two_characters(text: str) -> None:
    assert estimate_text(text) <= len(text) / 2


@each_case(("text", "wide"), [("かな", 2), ("한글", 2), ("，。", 2), ("é", 0), ("", 0)])
def test_what_is_as_dense_as_chinese_counts_like_it(text: str, wide: int) -> None:
    assert (estimate_text(text) == pytest.approx(0.7 * wide)) is (wide > 0 or not text)


def test_each_kind_of_character_has_its_weight() -> None:
    assert estimate_text("a") == LETTER
    assert estimate_text("1") == DIGIT
    assert estimate_text(" ") == BLANK
    assert [estimate_text(sign) for sign in "-{_."] == [SIGN] * 4
    assert estimate_text("é") == estimate_text("😀") == OTHER
    assert estimate_text("\ud800") == CJK  # half a character, as QQ sends them


def test_english_prose_has_about_four_characters_a_token() -> None:
    prose = "The quick brown fox jumps over the lazy dog, and nobody in the village minds it at all. " * 20
    assert 3.5 < len(prose) / estimate_text(prose) < 6


MESSAGES: tuple[Message, ...] = (
    SystemMessage("be kind"),
    UserMessage("北京天气"),
    AssistantMessage("", (ToolCall("c0", "get_weather", '{"city": "北京"}'),)),
    ToolMessage("c0", "get_weather", "晴"),
    UserMessage("look", images=("data:image/png;base64,AAAA",)),
)


def test_every_message_every_tool_and_every_picture_counts() -> None:
    found = [estimate(ModelRequest(MESSAGES[:count])) for count in range(len(MESSAGES) + 1)]
    assert found == sorted(set(found))
    assert estimate(ModelRequest(MESSAGES, (TOOL,))) > found[-1]
    assert estimate(ModelRequest(MESSAGES, (TOOL, TOOL))) > estimate(ModelRequest(MESSAGES, (TOOL,)))
    assert estimate_message(MESSAGES[-1]) > PICTURE
    assert estimate_message(ToolMessage("c0", "f", "", images=("data:,",))) > PICTURE


def test_messages_have_as_many_together_as_one_by_one() -> None:
    assert estimate_messages(MESSAGES) == pytest.approx(sum(map(estimate_message, MESSAGES)))
    assert estimate_messages(()) == 0


TEXTS = st.lists(st.text(max_size=20).map(UserMessage), max_size=8).map(tuple)


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 24))
def test_what_was_counted_before_is_not_counted_again_and_only_where_it_still_stands(
    before: tuple[Message, ...], kept: tuple[Message, ...], behind: tuple[Message, ...], place: int
) -> None:
    whole = (*before, *kept, *behind)
    known = model_messages.Counted(len(before), kept, estimate_messages(kept))
    counted = ModelRequest(whole, (TOOL,), counted=known)
    assert estimate(counted) == pytest.approx(estimate(ModelRequest(whole, (TOOL,))))
    others = (*whole[:place], UserMessage("put in by a hook"), *whole[place + 1 :])
    for made in (others, whole[place:], whole[::-1], ()):
        expected = estimate(ModelRequest(made, (TOOL,)))
        assert estimate(replace(counted, messages=made)) == pytest.approx(expected)


def test_the_tokens_of_what_was_counted_are_taken_as_they_are() -> None:
    known = model_messages.Counted(1, MESSAGES[1:4], 1000.0)
    alone = estimate(ModelRequest((MESSAGES[0], MESSAGES[4])))
    assert estimate(ModelRequest(MESSAGES, counted=known)) == pytest.approx(alone + 1000.0)


# --- what a model makes of it -----------------------------------------------------------------------


def test_the_first_count_is_believed_and_later_ones_move_it() -> None:
    scale = Scale()
    assert scale.correct(100) == 100
    scale.learn(100, 150)
    assert scale.correct(100) == 150
    scale.learn(100, 100)
    assert scale.correct(100) == 135


def test_no_count_teaches_nothing() -> None:
    scale = Scale()
    scale.learn(100, 0)
    scale.learn(0, 100)
    assert scale.correct(100) == 100


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**7))))
def test_the_factor_stays_within_bounds(counts: list[tuple[float, int]]) -> None:
    scale = Scale()
    for estimated, reported in counts:
        scale.learn(estimated, reported)
        assert scale.factor == 1.0 or BOUNDS[0] <= scale.factor <= BOUNDS[1]


@given(st.floats(0.6, 2.5))
def test_a_model_that_counts_steadily_is_soon_known(factor: float) -> None:
    scale = Scale()
    scale.learn(1000, 1000)
    for _ in range(12):
        scale.learn(1000, round(1000 * factor))
    assert scale.factor == pytest.approx(factor, rel=0.05)


# --- what vendors counted ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counted:
    """How much of what a real request held, and the prompt tokens its vendor counted."""

    session: str
    turn: int
    request: ModelRequest
    reported: int

    @property
    def ratio(self) -> float:
        return estimate(self.request) / self.reported


def _read(row: Mapping[str, str]) -> Counted:
    """The estimate looks at nothing but these figures, so other characters do."""
    held = {name: int(figure) for name, figure in row.items() if name != "session"}
    kinds = {"letters": "a", "digits": "1", "signs": ".", "blanks": " ", "cjk": "字", "others": "я"}
    asked = UserMessage("".join(character * held[kind] for kind, character in kinds.items()))
    called = AssistantMessage("", (ToolCall("", "", ""),) * held["calls"])
    messages: tuple[Message, ...] = (asked, called, *(UserMessage(""),) * held["messages"])
    request = ModelRequest(messages[: held["messages"]], (ToolSpec("", "", {}),) * held["tools"])
    return Counted(row["session"], held["turn"], request, held["counted"])


@pytest.fixture(scope="module")
def counted() -> list[Counted]:
    with COUNTED.open(encoding="utf-8", newline="") as lines:
        return [_read(row) for row in csv.DictReader(lines)]


def test_long_prompts_without_tools_are_estimated_within_a_third_and_most_within_a_tenth(
    counted: list[Counted],
) -> None:
    """Where the recorded prompt is all of it: some hosts put a long one of their own before it."""
    ratios = [one.ratio for one in counted if one.reported >= 300 and not one.request.tools and one.ratio > 0.5]
    assert len(ratios) >= 6
    assert all(0.67 <= ratio <= 1.33 for ratio in ratios), sorted(ratios)
    assert sum(0.9 <= ratio <= 1.1 for ratio in ratios) >= 0.8 * len(ratios)


def test_long_prompts_with_tools_are_mostly_estimated_within_a_factor_of_two(counted: list[Counted]) -> None:
    """Vendors tell a model 20 to 1000 tokens about tools beside the schemas; the prompts here are short for that."""
    ratios = sorted(one.ratio for one in counted if one.reported >= 300 and one.request.tools)
    assert len(ratios) >= 90
    assert 0.8 <= statistics.median(ratios) <= 1.1
    assert sum(0.5 <= ratio <= 2 for ratio in ratios) >= 0.85 * len(ratios)


def test_the_second_turn_is_estimated_within_a_quarter_mostly_once_the_first_was_counted(
    counted: list[Counted],
) -> None:
    """Five in six, whoever counts; these prompts are short, so one result more is a large part of them."""
    latest: dict[str, Scale] = {}
    errors = []
    for one in sorted(counted, key=lambda one: (one.session, one.turn)):
        if one.reported < 100:
            continue
        if scale := latest.get(one.session):
            errors.append(abs(scale.correct(estimate(one.request)) / one.reported - 1))
        latest.setdefault(one.session, Scale()).learn(estimate(one.request), one.reported)
    assert len(errors) >= 40
    assert sum(error <= 0.25 for error in errors) >= 5 / 6 * len(errors), sorted(errors)
