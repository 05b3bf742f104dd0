from __future__ import annotations

from bot.core.actions import as_received
from bot.core.segments import File, Mention, Picture, Record, Segment, Video
from frostagent.types.speech import Attachment, MediaKind, Text
from tests.cases import each_case


@each_case(
    ("kind", "received"),
    [
        ("image", Picture(file="a.bin")),
        ("record", Record(file="a.bin")),
        ("video", Video(file="a.bin")),
        ("file", File(name="a.bin")),
    ],
)
def test_a_medium_arrives_as_the_segment_of_its_kind_without_its_bytes(kind: MediaKind, received: Segment) -> None:
    assert as_received(Attachment(kind, "base64://aaaa", "a.bin")) == received


def test_everything_else_arrives_as_it_was_sent() -> None:
    assert [as_received(segment) for segment in (Text("hi"), Mention(5))] == [Text("hi"), Mention(5)]
