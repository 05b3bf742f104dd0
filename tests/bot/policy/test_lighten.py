from __future__ import annotations

import pytest

from bot.domain.segments import Card, Face, Forward, Image, Markdown, Segment, Text, Unsupported
from bot.policy.lighten import MAX_DATA, MAX_SEGMENTS, MAX_TEXT, lighten
from tests.fakes import said

LONG = "x" * 100_000


@pytest.mark.parametrize(
    "segment",
    [
        Text(LONG),
        Markdown(LONG),
        Forward("1", LONG),
        Card("xml", LONG, LONG),
        Unsupported("new", LONG),
        Image(file=LONG),
    ],
    ids=lambda segment: segment.type,
)
def test_ballast_is_cut(segment: Segment) -> None:
    (light,) = lighten(said((segment,), at=False)).segments
    assert light.type == segment.type
    assert len(repr(light)) <= max(MAX_TEXT, 2 * MAX_DATA) + 200


def test_a_message_without_ballast_is_the_same_object() -> None:
    message = said((Text("hi"), Face("1"), Card("json", "{}", "news")))
    assert lighten(message) is message


def test_a_message_has_a_bounded_number_of_segments() -> None:
    assert len(lighten(said((Face("1"),) * 5000, at=False)).segments) == MAX_SEGMENTS
