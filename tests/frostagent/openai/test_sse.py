"""Framing: events come out the same however the bytes were cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from frostagent.models.openai.stream import Event, EventDecoder
from tests.cases import each_case

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
EVENTS = st.lists(st.tuples(st.sampled_from(["", "error", "ping"]), st.lists(LINE, min_size=1, max_size=3)), max_size=6)


def decode(*chunks: bytes) -> list[Event]:
    decoder = EventDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [*events, *decoder.finish()]


def write(events: list[tuple[str, list[str]]], end: str) -> bytes:
    lines: list[str] = []
    for name, data in events:
        lines += [": keep-alive", "id: 7", "retry: 10"]
        lines += [f"event: {name}"] if name else []
        lines += [f"data: {line}" for line in data]
        lines.append("")
    return "".join(line + end for line in lines).encode()


@given(EVENTS, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 400), max_size=30))
def test_any_chunking_and_any_line_end_give_the_same_events(
    events: list[tuple[str, list[str]]], end: str, cuts: list[int]
) -> None:
    """2.18"""
    body = write(events, end)
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    expected = [(name.encode(), "\n".join(data).encode()) for name, data in events]
    assert decode(body) == expected
    assert decode(*(body[start:stop] for start, stop in pairwise(edges))) == expected
    assert decode(*(body[at : at + 1] for at in range(len(body)))) == expected


@each_case(
    ("body", "data"),
    [
        (b"data:{}\n\n", b"{}"),
        (b"data: {}\n\n", b"{}"),
        (b"data:  {}\n\n", b" {}"),
        (b"data\n\n", b""),
        (b"data: a\ndata: b\n\n", b"a\nb"),
        (b"data: a\n", b"a"),
        (b"data: a", b"a"),
        (b"data: a\r", b"a"),
        (b"\n\n\ndata: a\n\n\n", b"a"),
        (b"data: a\r\n\r\n\n\r\n", b"a"),
    ],
)
def test_data_lines_are_read_as_the_standard_says_and_a_missing_end_is_forgiven(body: bytes, data: bytes) -> None:
    assert decode(body) == [(b"", data)]


def test_comments_and_blank_lines_are_no_events() -> None:
    """2.1"""
    assert decode(b": OPENROUTER PROCESSING\n\n: keep-alive\n\n\n\nid: 1\n\n") == []


def test_a_name_belongs_to_its_event_alone() -> None:
    assert decode(b"event: error\n\ndata: a\n\nevent:error\ndata: b\n\ndata: c\n\n") == [
        (b"", b"a"),
        (b"error", b"b"),
        (b"", b"c"),
    ]
