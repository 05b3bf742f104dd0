"""CQ codes there and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.simulator import wire
from adapters.simulator.wire import mention, text
from tests.cases import each_case


@each_case(
    ("written", "segments"),
    [
        ("", []),
        ("hi", [text("hi")]),
        ("[CQ:at,qq=10001] hi", [mention(10001), text(" hi")]),
        ("a[CQ:face,id=1]b", [text("a"), {"type": "face", "data": {"id": "1"}}, text("b")]),
        ("[CQ:shake]", [{"type": "shake", "data": {}}]),
        ("[CQ:at,qq=1", [text("[CQ:at,qq=1")]),
        ("&#91;CQ:at,qq=all&#93; &amp;#91;", [text("[CQ:at,qq=all] &#91;")]),
        ("[CQ:image,file=a&#44;b=c.png]", [{"type": "image", "data": {"file": "a,b=c.png"}}]),
    ],
)
def test_a_string_is_read_as_segments(written: str, segments: list[dict[str, Any]]) -> None:
    assert wire.parse_cq(written) == segments


@given(st.text(alphabet="[]&,=;# aCQ:汉#91", min_size=1))
def test_no_text_can_smuggle_a_code(words: str) -> None:
    assert (
        "".join(piece["data"]["text"] for piece in wire.parse_cq(wire.format_cq([text(f"|{words}|")]))) == f"|{words}|"
    )


def test_values_are_written_as_javascript_writes_them() -> None:
    segment = {"type": "face", "data": {"id": 1, "raw": {"a": 1}, "big": True, "none": None}}
    assert wire.format_cq([segment]) == "[CQ:face,id=1,raw=&#91;object Object&#93;,big=true]"


@pytest.mark.parametrize(
    "name",
    ["message_group__nc_group_at_middle_suffix", "message_media__nc_group_image", "message_media__nc_group_file"],
)
def test_raw_messages_are_the_recorded_ones(name: str, recorded: Callable[[str], dict[str, Any]]) -> None:
    real = recorded(name)
    assert wire.format_cq(real["message"]) == real["raw_message"]
