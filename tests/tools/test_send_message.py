from __future__ import annotations

from typing import Any

import pytest

from bot.domain.actions import Attachment, Confirmed, MediaKind, Receipt, Refused, SendSegment, Unknown
from bot.domain.errors import InvalidArguments, MediaError, ToolDenied, ToolFailed, ToolUnavailable
from bot.domain.ports import Media, Speaker
from bot.domain.segments import Mention, Quote, Text
from tests.fakes import tool_context
from tools.send_message import MAX_MEDIA, REQUIRED, send_message, tell

MEDIA_KINDS = ("image", "record", "video", "file")


class Mouth:
    """A speaker that remembers what it said and where, and answers as it is told."""

    def __init__(self, *receipts: Receipt) -> None:
        self.receipts = receipts
        self.said: list[tuple[tuple[SendSegment, ...], str]] = []

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        if session == "forbidden":
            raise ToolDenied("not there")
        self.said.append((segments, session))
        return self.receipts


class Shelf:
    """A media folder that holds everything but `missing`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        self.asked.append(path or url)
        if path == "missing":
            raise MediaError("there is no file missing; it holds: cat.png")
        return Attachment(kind, f"base64://{path}" if path else url, name)


async def send(
    *parts: dict[str, Any], mouth: Mouth | None = None, shelf: Shelf | None = None, **more: Any
) -> tuple[str, list[tuple[tuple[SendSegment, ...], str]]]:
    """Call it as the model does; its result, and what was said."""
    mouth = mouth or Mouth(Confirmed("9001"))
    context = tool_context({Speaker: mouth, Media: shelf or Shelf()})
    arguments = send_message.check({"messages": list(parts), **more})
    result = await send_message.run(context, arguments)
    assert isinstance(result, str)
    return result, mouth.said


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "segment"),
    [
        ({"type": "plain", "text": "你好\n "}, Text("你好\n ")),
        ({"type": "image", "path": "cat.png"}, Attachment("image", "base64://cat.png")),
        ({"type": "record", "path": "a.amr"}, Attachment("record", "base64://a.amr")),
        ({"type": "video", "url": "https://example.com/a.mp4"}, Attachment("video", "https://example.com/a.mp4")),
        ({"type": "file", "path": "a.pdf", "url": "https://example.com/a"}, Attachment("file", "base64://a.pdf")),
        ({"type": "mention_user", "mention_user_id": "3000000001"}, Mention(3_000_000_001)),
        ({"type": "mention_user", "mention_user_id": 777}, Mention(777)),
    ],
)
async def test_each_type_becomes_its_segment(part: dict[str, Any], segment: SendSegment) -> None:
    result, said = await send(part)
    assert said == [((segment,), "")]
    assert result == "消息已发送 (message_id: 9001)"


@pytest.mark.parametrize("id_", ["-7", 7, " 7 "])
async def test_a_quote_goes_with_what_it_is_about(id_: str | int) -> None:
    _, said = await send({"type": "quote", "message_id": id_}, {"type": "plain", "text": "yes"})
    assert said == [((Quote(str(id_).strip()), Text("yes")), "")]


async def test_the_parts_stay_in_order() -> None:
    _, said = await send(
        {"type": "mention_user", "mention_user_id": "5"},
        {"type": "plain", "text": " 看"},
        {"type": "image", "path": "cat.png"},
        {"type": "plain", "text": "可爱吗"},
    )
    assert said == [((Mention(5), Text(" 看"), Attachment("image", "base64://cat.png"), Text("可爱吗")), "")]


async def test_it_speaks_in_this_conversation_unless_another_is_named() -> None:
    part = {"type": "plain", "text": "hi"}
    assert (await send(part))[1][0][1] == ""
    assert (await send(part, session="10001:group:5555"))[1][0][1] == "10001:group:5555"
    with pytest.raises(ToolDenied):
        await send(part, session="forbidden")


async def test_fields_of_other_types_do_not_matter_when_they_are_empty() -> None:
    every_field = {"text": "hi", "path": "", "url": "", "mention_user_id": "", "message_id": ""}
    assert (await send({"type": "plain", **every_field}))[1] == [((Text("hi"),), "")]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", [None, "", " \n\t"])
@pytest.mark.parametrize("type_", REQUIRED)
async def test_each_type_needs_its_fields(type_: str, blank: str | None) -> None:
    part: dict[str, Any] = {"type": type_}
    if blank is not None:
        part |= dict.fromkeys(REQUIRED[type_], blank)
    mouth = Mouth()
    with pytest.raises(InvalidArguments) as caught:
        await send({"type": "plain", "text": "hi"}, part, mouth=mouth)
    assert caught.value.fields == (f"messages.1: type {type_} needs {' or '.join(REQUIRED[type_])}",)
    assert mouth.said == []


@pytest.mark.parametrize("id_", ["all", "@777", "-5", "1.5", "七", "７", "1e3", " 7", "9" * 21, "9" * 5000])
async def test_a_mention_needs_a_number(id_: str) -> None:
    with pytest.raises(InvalidArguments, match=r"messages\.0: mention_user_id must be a QQ number, digits only"):
        await send({"type": "mention_user", "mention_user_id": id_})


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"type": "poem", "text": "hi"}, "messages.0.type"),
        ({"text": "hi"}, "messages.0.type"),
        ({"type": "plain", "text": "hi", "colour": "red"}, "messages.0.colour"),
        ({"type": "plain", "text": None}, "messages.0.text"),
    ],
)
async def test_a_part_that_is_none_is_told_by_its_field(part: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        await send(part)
    assert [line.partition(":")[0] for line in caught.value.fields] == [field]


async def test_no_parts_at_all_say_nothing() -> None:
    with pytest.raises(InvalidArguments, match="at least one part is needed"):
        await send()


@pytest.mark.parametrize("times", [1, 2])
async def test_a_quote_alone_says_nothing(times: int) -> None:
    mouth = Mouth()
    with pytest.raises(InvalidArguments, match="a quote alone says nothing"):
        await send(*[{"type": "quote", "message_id": "7"}] * times, mouth=mouth)
    assert mouth.said == []


async def test_too_many_media_are_refused_before_any_is_read() -> None:
    shelf = Shelf()
    media = [{"type": kind, "path": "a"} for kind in MEDIA_KINDS * 3]
    with pytest.raises(InvalidArguments, match=f"at most {MAX_MEDIA} media in one call"):
        await send(*media[: MAX_MEDIA + 1], shelf=shelf)
    assert shelf.asked == []
    text = {"type": "plain", "text": "hi"}
    assert (await send(*media[:MAX_MEDIA], text, text))[0] == "消息已发送 (message_id: 9001)"


@pytest.mark.parametrize("kind", MEDIA_KINDS)
async def test_a_medium_that_cannot_be_sent_stops_the_whole_message(kind: str) -> None:
    mouth = Mouth()
    with pytest.raises(InvalidArguments) as caught:
        await send({"type": "plain", "text": "看"}, {"type": kind, "path": "missing"}, mouth=mouth)
    assert caught.value.fields == ("messages.1: there is no file missing; it holds: cat.png",)
    assert mouth.said == []


# --- what became of it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("receipts", "told"),
    [
        ((Confirmed("1"),), "消息已发送 (message_id: 1)"),
        ((Confirmed("1"), Confirmed("2")), "消息已发送 (message_id: 1, 2)"),
        ((Confirmed(""), Confirmed("2")), "消息已发送 (message_id: 2)"),
        ((Confirmed(""),), "消息已发送"),
    ],
)
def test_what_was_confirmed_is_told_with_its_ids(receipts: tuple[Receipt, ...], told: str) -> None:
    assert tell(receipts) == told


def test_what_was_refused_is_an_error_that_says_what_arrived() -> None:
    with pytest.raises(ToolFailed, match="message 1 and what follows it was not delivered: QQ said '禁言中'"):
        tell((Refused("禁言中"),))
    with pytest.raises(ToolFailed, match=r"message 3 .* \(the 2 before it arrived\): QQ said 'x'"):
        tell((Confirmed("1"), Confirmed("2"), Refused("x")))


def test_what_may_have_arrived_is_no_error_and_must_not_be_repeated() -> None:
    told = tell((Confirmed("1"), Unknown("no answer")))
    assert told.startswith("message 2 may have been delivered")
    assert "Do not repeat it" in told


def test_what_was_blank_was_not_sent() -> None:
    with pytest.raises(ToolFailed, match="nothing was sent"):
        tell(())


async def test_a_failed_send_is_a_failed_call() -> None:
    with pytest.raises(ToolFailed):
        await send({"type": "plain", "text": "hi"}, mouth=Mouth(Refused("no")))


# --- what the model is told of it -----------------------------------------------------------------


def test_the_model_knows_the_seven_types_and_that_parts_are_needed() -> None:
    schema = send_message.spec.parameters
    assert schema["required"] == ["messages"]
    part = schema["properties"]["messages"]["items"]
    assert part["properties"]["type"]["enum"] == list(REQUIRED)
    assert part["required"] == ["type"]
    assert set(schema["properties"]) == {"messages", "session"}


def test_it_needs_a_mouth_and_a_shelf_and_may_have_been_done_when_cut_off() -> None:
    assert send_message.needs == (Speaker, Media)
    assert send_message.may_have_happened


async def test_without_a_speaker_nothing_can_be_said() -> None:
    arguments = send_message.check({"messages": [{"type": "plain", "text": "hi"}]})
    with pytest.raises(ToolUnavailable):
        await send_message.run(tool_context({Media: Shelf()}), arguments)
