from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.actions import SendMessage
from bot.core.codec import Unreadable, read, write
from bot.core.events import Event
from bot.core.segments import Segment, SendSegment
from frostagent.types.messages import Message, ToolSpec
from frostagent.types.runs import Outcome
from frostagent.types.speech import Receipt, Text
from tests.cases import each_case

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))

KINDS: list[Any] = [Segment, tuple[Segment, ...], Event, SendSegment, SendMessage, Receipt, Message, Outcome]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind).split(" | ", maxsplit=1)[0][-30:])
@given(data=st.data())
def test_whatever_is_written_is_read_back_the_same(kind: Any, data: st.DataObject) -> None:
    value = data.draw(st.from_type(kind))
    text = write(value)
    assert read(kind, text) == value
    assert write(read(kind, text)) == text


def test_letters_stay_letters_and_the_type_is_the_tag() -> None:
    assert write(Text("你好")) == '{"type":"text","text":"你好"}'


@each_case("text", ["", "{", "[]", '{"type":"nobody"}', '{"type":"text"}', '{"type":"image","size":"6"}', "null"])
def test_text_that_is_none_of_it_is_told_apart(text: str) -> None:
    with pytest.raises(Unreadable):
        read(Segment, text)


def test_a_text_of_a_kind_of_its_own_is_written_as_text() -> None:
    class Marked(str):
        __slots__ = ()

    assert write(Text(Marked("你好"))) == write(Text("你好"))
    with pytest.raises(TypeError, match="object has no form in JSON"):
        write(object())


def test_a_field_that_is_missing_takes_its_default() -> None:
    assert read(Segment, '{"type":"image"}') == read(Segment, '{"type":"image","file":"","size":0}')


def test_a_tool_with_its_schema_can_be_written() -> None:
    spec = ToolSpec("a", "b", {"type": "object", "properties": {"x": {"type": "string"}}})
    assert {read(ToolSpec, write(spec))} == {spec}
