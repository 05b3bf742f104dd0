from __future__ import annotations

import asyncio
import base64
import importlib
import json
from typing import Any

import pytest
from msgspec.structs import replace

from adapters.media.folder import MAX_BASE64
from adapters.onebot.protocol import MAX_FRAME, write_call
from adapters.onebot.segments import write_segments
from bot.core.segments import as_sent
from frostagent.engine.tool_execution import run_body
from frostagent.types.errors import InvalidArguments, MediaError, ToolDenied, ToolFailed, ToolUnavailable
from frostagent.types.ports import Media, Speaker
from frostagent.types.results import ToolResult
from frostagent.types.speech import (
    Attachment,
    Confirmed,
    MediaKind,
    Mention,
    MentionAll,
    Quote,
    Receipt,
    Refused,
    SendSegment,
    Text,
    Unknown,
)
from tests.cases import each_case
from tests.fakes import tool_context
from tools.send_message import FETCHING, MAX_MEDIA, REQUIRED, send_message, tell

MEDIA_KINDS = ("image", "record", "video", "file")


class Mouth:
    """A speaker that remembers what it said and where, and answers as it is told."""

    def __init__(self, *receipts: Receipt) -> None:
        self.receipts = receipts
        self.said: list[tuple[tuple[SendSegment, ...], str]] = []
        self.allowed: list[bool] = []

    async def say(
        self, segments: tuple[SendSegment, ...], *, session: str = "", allowed: bool = False
    ) -> tuple[Receipt, ...]:
        self.allowed.append(allowed)
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
    return await call({"messages": list(parts), **more}, mouth=mouth, shelf=shelf)


async def call(
    raw: dict[str, Any], *, mouth: Mouth | None = None, shelf: Shelf | None = None
) -> tuple[str, list[tuple[tuple[SendSegment, ...], str]]]:
    """The same with the arguments as they came."""
    mouth = mouth or Mouth(Confirmed("9001"))
    return (await result_of(raw, mouth, shelf)).content, mouth.said


async def result_of(raw: dict[str, Any], mouth: Mouth, shelf: Shelf | None = None) -> ToolResult:
    """The result of the call, in whole."""
    context = tool_context({Speaker: mouth, Media: shelf or Shelf()})
    result = await run_body(send_message, context, send_message.check(raw))
    assert isinstance(result, ToolResult)
    return result


# --- what is said ---------------------------------------------------------------------------------


@each_case(
    ("part", "segment"),
    [
        ({"type": "plain", "text": "你好\n "}, Text("你好\n ")),
        ({"type": "text", "text": "你好"}, Text("你好")),
        ({"type": "image", "path": "cat.png"}, Attachment("image", "base64://cat.png")),
        ({"type": "record", "path": "a.amr"}, Attachment("record", "base64://a.amr")),
        ({"type": "video", "url": "https://example.com/a.mp4"}, Attachment("video", "https://example.com/a.mp4")),
        ({"type": "file", "path": "a.pdf", "url": "https://example.com/a"}, Attachment("file", "base64://a.pdf")),
        ({"type": "mention_user", "mention_user_id": "3000000001"}, Mention("3000000001")),
        ({"type": "mention_user", "mention_user_id": 777}, Mention("777")),
    ],
)
async def test_each_type_becomes_its_segment(part: dict[str, Any], segment: SendSegment) -> None:
    result, said = await send(part)
    assert said == [((segment,), "")]
    assert result == "消息已发送 (message_id: 9001)"


@each_case("id_", ["-7", 7, " 7 ", ""])
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
    assert said == [((Mention("5"), Text(" 看"), Attachment("image", "base64://cat.png"), Text("可爱吗")), "")]


async def test_it_speaks_in_this_conversation_unless_another_is_named() -> None:
    part = {"type": "plain", "text": "hi"}
    assert (await send(part))[1][0][1] == ""
    assert (await send(part, session="10001:group:5555"))[1][0][1] == "10001:group:5555"
    with pytest.raises(ToolDenied):
        await send(part, session="forbidden")


async def test_fields_of_other_types_do_not_matter_when_they_are_empty() -> None:
    every_field = {"text": "hi", "path": "", "url": "", "mention_user_id": "", "message_id": ""}
    assert (await send({"type": "plain", **every_field}))[1] == [((Text("hi"),), "")]


async def test_null_is_a_field_left_out() -> None:
    every_field = dict.fromkeys(("text", "path", "url", "mention_user_id", "message_id"))
    image = {"type": "image", **every_field, "path": "cat.png"}
    _, said = await send({"type": "plain", **every_field, "text": "hi"}, image, session=None)
    assert said == [((Text("hi"), Attachment("image", "base64://cat.png")), "")]


@each_case(
    "messages",
    [
        {"type": "plain", "text": "hi"},
        '{"type": "plain", "text": "hi"}',
        ' [{"type": "plain", "text": "hi", "url": null}]\n',
    ],
)
async def test_one_part_alone_and_json_in_a_text_are_read_as_a_list(messages: object) -> None:
    assert (await call({"messages": messages}))[1] == [((Text("hi"),), "")]


# --- what is refused ------------------------------------------------------------------------------


@each_case("blank", ["absent", None, "", " \n\t"])
@each_case("type_", [type_ for type_, needed in REQUIRED.items() if needed])
async def test_each_type_needs_its_fields(type_: str, blank: str | None) -> None:
    part: dict[str, Any] = {"type": type_}
    if blank != "absent":
        part |= dict.fromkeys(REQUIRED[type_], blank)
    mouth = Mouth()
    with pytest.raises(InvalidArguments) as caught:
        await send({"type": "plain", "text": "hi"}, part, mouth=mouth)
    assert caught.value.fields == (f"messages.1: type {type_} needs {' or '.join(REQUIRED[type_])}",)
    assert mouth.said == []


@each_case(
    "id_",
    [
        *("@777", "-5", "1.5", "七", "７", "1e3", " 7", "9" * 21, "9" * 5000, "9" * 20, str(2**63)),
        *("0", "00", 0, " 0", "+0", "-0", "0.0", "０", "全体", "全体成员", "@all", "everyone", "ａｌｌ", "al l"),
    ],
)
async def test_a_mention_needs_a_number(id_: str | int) -> None:
    """0 is everybody to some servers."""
    with pytest.raises(InvalidArguments, match=r"messages\.0: mention_user_id must be the number behind a name"):
        await send({"type": "mention_user", "mention_user_id": id_})


@each_case("id_", ["all", "ALL", " All "])
async def test_everybody_is_mentioned_by_one_word_only(id_: str) -> None:
    assert (await send({"type": "mention_user", "mention_user_id": id_}))[1] == [((MentionAll(),), "")]


async def test_what_somebody_has_allowed_is_said_as_allowed() -> None:
    mouth = Mouth(Confirmed("1"))
    context = tool_context({Speaker: mouth, Media: Shelf()})
    raw = json.dumps({"messages": [{"type": "plain", "text": "hi"}]})
    for allowed in (False, True):
        checked = send_message.read(raw)
        await run_body(send_message, replace(context, allowed=allowed), dict(checked.arguments))
    assert mouth.allowed == [False, True]


@each_case(
    ("part", "field"),
    [
        ({"type": "poem", "text": "hi"}, "messages.0.type"),
        ({"text": "hi"}, "messages.0.type"),
        ({"type": "plain", "text": "hi", "colour": "red"}, "messages.0.colour"),
    ],
)
async def test_a_part_that_is_none_is_told_by_its_field(part: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        await send(part)
    assert [line.partition(":")[0] for line in caught.value.fields] == [field]


@each_case("messages", [[], None, "[]", "null"])
async def test_no_parts_at_all_say_nothing(messages: object) -> None:
    with pytest.raises(InvalidArguments, match="at least one part is needed"):
        await call({"messages": messages})


@each_case(
    ("messages", "problem"),
    [
        ("hi", "messages: must be a list of parts, not a text"),
        ("[{'type': 'plain'}]", "messages: must be a list of parts, not a text"),
        ("[" * 100_000, "messages: must be a list of parts, not a text"),
        ('"hi"', "messages: Input should be a valid list"),
        (7, "messages: Input should be a valid list"),
        (["hi"], "messages.0: Input should be"),
        ([None], "messages.0: Input should be"),
        ({"type": "plain"}, "messages.0: type plain needs text"),
        ('{"type": "plain", "colour": 1, "text": "hi"}', "messages.0.colour: no such field"),
        ([{"type": None, "text": "hi"}], "messages.0.type: required"),
    ],
)
async def test_what_is_neither_parts_nor_nearly_so_is_told(messages: object, problem: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        await call({"messages": messages})
    assert caught.value.fields[0].startswith(problem)


@each_case("times", [1, 2])
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


class Heavy(Shelf):
    """Every file has so many bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.source = "base64://" + base64.b64encode(bytes(size)).decode()

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        await super().attach(kind, path=path, url=url, name=name)
        return Attachment(kind, self.source if path else url, name)


async def test_media_that_are_too_large_together_are_refused_before_anything_is_said() -> None:
    mouth, shelf = Mouth(), Heavy(13 * 2**20)
    image = {"type": "image", "path": "a.png"}
    with pytest.raises(InvalidArguments) as caught:
        await send({"type": "plain", "text": "看"}, *[image] * 5, mouth=mouth, shelf=shelf)
    assert caught.value.fields == (
        "messages.3: the files of one call may have 37 MiB together; send this one in another call",
    )
    assert (mouth.said, len(shelf.asked)) == ([], 3)
    link = {"type": "image", "url": "https://example.com/a.png"}
    assert (await send(image, *[link] * 5, image, shelf=shelf))[0] == "消息已发送 (message_id: 9001)"


@pytest.mark.parametrize("count", [1, MAX_MEDIA])
async def test_what_the_media_folder_gives_fits_into_a_frame_with_the_rest(count: int) -> None:
    image = {"type": "image", "path": "a.png"}
    text = {"type": "plain", "text": "长" * 4500}
    _, [(segments, _)] = await send(text, *[image] * count, shelf=Heavy(MAX_BASE64 // count))
    params = {"group_id": 4242, "message": write_segments(map(as_sent, segments))}
    assert len(write_call("send_group_msg", params, "boot-1")) < MAX_FRAME


class Slow(Shelf):
    """A second url never comes."""

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        if self.asked:
            await asyncio.Event().wait()
        return await super().attach(kind, path=path, url=url, name=name)


async def test_media_that_do_not_come_in_time_leave_nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("tools.send_message"), "FETCHING", 0.05)
    mouth = Mouth()
    link = {"type": "image", "url": "https://example.com/a.png"}
    with pytest.raises(InvalidArguments) as caught:
        await send(link, link, mouth=mouth, shelf=Slow())
    assert caught.value.fields == (
        "messages: its media could not be fetched in 0.05 s, nothing was sent; send fewer or smaller ones",
    )
    assert mouth.said == []
    assert send_message.timeout / 2 > FETCHING, "what is left is for sending"


@each_case("kind", MEDIA_KINDS)
async def test_a_medium_that_cannot_be_sent_stops_the_whole_message(kind: str) -> None:
    mouth = Mouth()
    with pytest.raises(InvalidArguments) as caught:
        await send({"type": "plain", "text": "看"}, {"type": kind, "path": "missing"}, mouth=mouth)
    assert caught.value.fields == ("messages.1: there is no file missing; it holds: cat.png",)
    assert mouth.said == []


# --- what became of it ----------------------------------------------------------------------------


@each_case(
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
    with pytest.raises(ToolFailed, match="message 1 and what follows it was not delivered: '禁言中'"):
        tell((Refused("禁言中"),))
    with pytest.raises(ToolFailed, match=r"message 3 .* \(the 2 before it arrived\): 'x'"):
        tell((Confirmed("1"), Confirmed("2"), Refused("x")))


def test_a_refusal_that_was_our_own_is_not_said_to_be_that_of_qq() -> None:
    with pytest.raises(ToolFailed) as caught:
        tell((Refused("the frame has 57 MiB, over 50"),))
    assert "QQ" not in str(caught.value)


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
    assert set(schema["properties"]) == {"messages", "session", "last"}


def test_it_needs_a_mouth_and_a_shelf_and_may_have_been_done_when_cut_off() -> None:
    assert send_message.needs == (Speaker, Media)
    assert send_message.may_have_happened


async def test_without_a_speaker_nothing_can_be_said() -> None:
    arguments = send_message.check({"messages": [{"type": "plain", "text": "hi"}]})
    with pytest.raises(ToolUnavailable):
        await run_body(send_message, tool_context({Media: Shelf()}), arguments)


@each_case(
    ("more", "ends"),
    [
        ({}, False),
        ({"last": None}, False),
        ({"last": True}, True),
        ({"last": True, "session": "10001:group:5"}, False),
    ],
)
async def test_the_last_message_ends_the_run_where_its_asker_can_read_it(more: dict[str, Any], ends: bool) -> None:
    raw = {"messages": [{"type": "plain", "text": "完"}], **more}
    assert (await result_of(raw, Mouth(Confirmed("1")))).terminate is ends
