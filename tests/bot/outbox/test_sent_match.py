from __future__ import annotations

from bot.core.actions import MergedForward, SendMessage, SentSegment
from bot.core.segments import File, Forward, Mention, Picture, Segment, Video
from bot.outbox.sends import as_line, is_same_file, is_same_message
from frostagent.types.speech import Attachment, Quote, Text
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, said


@each_case(
    ("seen", "sent", "same"),
    [
        ((Text("你好"),), (Text("你好"),), True),
        ((Quote("1"), Text("你好 ")), (Quote("2"), Text("你好")), True),
        ((Text("a"), Mention(5), Text("b")), (Text("a"), Mention(5), Text("b")), True),
        ((Text("a\r\nb"),), (Text("a\nb"),), True),
        ((Text("你好"),), (Text("您好"),), False),
        ((Text("look"), Picture(file="x")), (Text("look"), Attachment("image", "base64://aa")), True),
        ((Text("look"),), (Text("look"), Attachment("image", "base64://aa")), False),
        ((Forward("123"),), (MergedForward(("a", "b"), "小霜"),), True),
        ((Text("a"),), (MergedForward(("a", "b"), "小霜"),), False),
        ((Video(file="x"),), (Attachment("video", "file:///a"),), True),
    ],
)
def test_the_same_words_and_as_many_media_are_the_same(
    seen: tuple[Segment, ...], sent: tuple[SentSegment, ...], same: bool
) -> None:
    assert is_same_message(said(seen, user=BOT, at=False), SendMessage(GROUP, sent)) is same


def test_another_conversation_is_another_message() -> None:
    assert not is_same_message(said("a", user=BOT, at=False), SendMessage(PRIVATE, (Text("a"),)))


def test_a_file_is_the_one_we_sent_by_its_name_and_by_its_size_where_both_are_known() -> None:
    sent = as_line(SendMessage(PRIVATE, (Attachment("file", "base64://aGVsbG8=", "a.txt"),)), "7", 0.0)
    offered = as_line(SendMessage(PRIVATE, (Attachment("file", "http://127.0.0.1/x", "a.txt"),)), "7", 0.0)
    seen = [File("a.txt", size=5), File("a.txt"), File("a.txt", size=6), File("b.txt", size=5), File("", size=5)]
    told = [said((one,), where=PRIVATE, at=False) for one in seen]
    assert [is_same_file(one, sent) for one in told] == [True, True, False, False, False]
    assert [is_same_file(one, offered) for one in told] == [True, True, True, False, False]
    assert not is_same_file(said((seen[0], Text("hi")), at=False), sent)
    assert not is_same_file(said("hi", at=False), as_line(SendMessage(PRIVATE, (Text("hi"),)), "7", 0.0))
