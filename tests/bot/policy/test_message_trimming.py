from __future__ import annotations

import inspect
import sys
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.events import Sender
from bot.core.segments import Card, File, Forward, Keyboard, Markdown, Mention, Picture, Segment
from bot.policy.message_trimming import (
    HEAD,
    HEAVIEST,
    MAX_DATA,
    MAX_NAME,
    MAX_SEGMENTS,
    MAX_TEXT,
    TAIL,
    message_weight,
    trim_message,
)
from frostagent.types.speech import Face, Text
from tests.cases import each_case
from tests.fakes import said

LONG = "x" * 480_000


def made(kind: type[Segment]) -> Segment:
    """A segment of the kind, in which every text is long."""
    given = {"str": LONG, "tuple[str, ...]": (LONG,) * 1000, "int": 1, "bool": False}
    hints = inspect.get_annotations(kind)
    values = {name: given.get(hints[name], "json") for name in kind.__struct_fields__}
    return kind(**values)  # type: ignore[arg-type]  # whatever its fields are


@each_case("kind", get_args(Segment))
def test_no_segment_is_heavy(kind: type[Segment]) -> None:
    (light,) = trim_message(said((made(kind),), at=False)).segments
    assert type(light) is kind
    assert len(repr(light)) <= MAX_TEXT + 2000
    assert trim_message(said((light,), at=False)).segments[0] == light


def test_the_texts_of_one_message_are_bounded_together_and_keep_both_ends() -> None:
    parts = Text("a" * 10_000), Face("1"), Text("b" * 400_000), Markdown("c" * 69_999), Text("d")
    light = trim_message(said(parts, at=False))
    texts = [segment.text for segment in light.segments if isinstance(segment, Text)]
    assert texts == ["a" * 10_000, "b" * (HEAD - 10_000) + "…(共 480000 字)…", "d"]
    assert light.segments[-2] == Markdown("c" * (TAIL - 1))


@each_case("pieces", [1, 2, 3, 7, 150])
def test_however_a_long_text_is_cut_into_segments_it_is_shortened_alike(pieces: int) -> None:
    whole = "".join(chr(0x4E00 + number % 9000) for number in range(45_000))
    size = -(-len(whole) // pieces)
    parts = tuple(Text(whole[at : at + size]) for at in range(0, len(whole), size))
    shown = "".join(
        segment.text for segment in trim_message(said(parts, at=False)).segments if isinstance(segment, Text)
    )
    assert shown == f"{whole[:HEAD]}…(共 45000 字)…{whole[-TAIL:]}"


@given(st.lists(st.integers(0, 15_000).map(lambda size: Text("z" * size)), max_size=5))
def test_texts_that_fit_are_left_alone_and_others_are_marked_once(parts: list[Text]) -> None:
    message = said(tuple(parts), at=False)
    total = sum(len(part.text) for part in parts)
    light = trim_message(message)
    assert (light is message) is (total <= MAX_TEXT)
    shown = "".join(segment.text for segment in light.segments if isinstance(segment, Text))
    assert shown.count(f"(共 {total} 字)") == (total > MAX_TEXT)
    assert shown.count("z") == (total if total <= MAX_TEXT else HEAD + TAIL)
    assert trim_message(light) is light


def test_sixty_floods_take_little_memory() -> None:
    """They took 96 MB."""
    floods = [trim_message(said("\U0001f600" * 480_000, at=False)) for _ in range(60)]
    kept = sum(sys.getsizeof(segment.text) for one in floods for segment in one.segments if isinstance(segment, Text))
    assert kept < 6 * 2**20


@each_case(("size", "weight"), [(0, 1), (999, 1), (1000, 2), (20_000, 21), (50_000_000, HEAVIEST)])
def test_a_long_message_weighs_as_much_as_several(size: int, weight: int) -> None:
    assert message_weight(said((Text("x" * (size // 2)), Markdown("x" * (size - size // 2))), at=False)) == weight


def test_names_are_short() -> None:
    light = trim_message(replace(said("hi"), sender=Sender(5, LONG, LONG), group_name=LONG))
    assert (len(light.sender.nickname), len(light.sender.card), len(light.group_name)) == (MAX_NAME,) * 3
    for one in (Sender(5, LONG), Sender(5, "a", LONG)):
        assert len(trim_message(replace(said("hi"), sender=one)).sender.name) == MAX_NAME
    assert trim_message(replace(said("hi"), group_name=LONG)).group_name == "x" * MAX_NAME
    (mention,) = trim_message(said((Mention(5, LONG),), at=False)).segments
    assert mention == Mention(5, "x" * MAX_DATA)


def test_what_is_of_no_use_when_it_is_cut_is_left_out() -> None:
    url = "https://a.example/" + "y" * 1900
    light = trim_message(said((Picture(file=LONG, url=url), Picture(url=LONG), File(LONG, id=LONG)), at=False))
    assert light.segments == (Picture(url=url), Picture(), File("x" * MAX_DATA))


def test_what_a_forward_holds_is_asked_for_when_it_is_needed() -> None:
    assert trim_message(said((Forward("1", "[]"),), at=False)).segments == (Forward("1"),)


def test_a_message_without_ballast_is_the_same_object() -> None:
    message = said((Text("hi"), Face("1"), Card("json", "{}", "news"), Forward("1"), Keyboard(("a",))))
    assert trim_message(message) is message


def test_a_message_has_a_bounded_number_of_segments() -> None:
    assert len(trim_message(said((Face("1"),) * 5000, at=False)).segments) == MAX_SEGMENTS
