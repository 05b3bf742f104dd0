from __future__ import annotations

from bot.core import codec
from bot.core.events import Sender
from bot.core.journal import AttachmentNamed
from bot.core.segments import File, Forward, Picture, Record
from tests.cases import each_case
from tests.fakes import GROUP


@each_case("segment", [Picture("a"), Record("b"), File("c"), Forward("9"), None])
def test_a_thing_is_read_as_it_was_written(segment: Picture | Record | File | Forward | None) -> None:
    thing = AttachmentNamed(conversation=GROUP, number=7, message_id="5", sender=Sender(5, "小红"), segment=segment)
    assert codec.read(AttachmentNamed, codec.write(thing)) == thing
