"""Which messages of the bot the server takes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import outgoing
from adapters.simulator.wire import CallRefused, Json, mention, text
from tests.cases import each_case

PICTURE = base64.b64encode(b"\x89PNG not really").decode()


def accept(*segments: Json, in_group: bool = True) -> list[Json]:
    return outgoing.accept(list(segments), in_group=in_group, is_known=lambda message_id: message_id == 12)


def medium(kind: str, file: str, **more: Any) -> Json:
    return {"type": kind, "data": {"file": file, **more}}


def test_every_form_of_a_message_is_read() -> None:
    assert outgoing.read_segments("[CQ:at,qq=1]x") == [mention(1), text("x")]
    assert outgoing.read_segments("[CQ:at,qq=1]x", auto_escape=True) == [text("[CQ:at,qq=1]x")]
    assert outgoing.read_segments("", auto_escape=True) == []
    assert outgoing.read_segments(text("x")) == [text("x")]
    assert outgoing.read_segments([text("x")]) == [text("x")]


@each_case("message", [None, 7, [7], [{}], [{"type": "text"}], [{"type": 1, "data": {}}]])
def test_anything_else_is_a_bad_parameter(message: Any) -> None:
    with pytest.raises(CallRefused) as caught:
        outgoing.read_segments(message)
    assert caught.value.retcode == 1400


def test_a_known_quote_stays_and_an_unknown_one_is_dropped() -> None:
    known, unknown = ({"type": "reply", "data": {"id": number}} for number in ("12", "13"))
    assert accept(known, text("x")) == [known, text("x")]
    assert accept(unknown, text("x")) == [text("x")]


def test_mentions_are_dropped_in_private() -> None:
    assert accept(mention(1), text("x")) == [mention(1), text("x")]
    assert accept(mention(1), text("x"), in_group=False) == [text("x")]


@each_case(
    "segments",
    [[], [text("")], [{"type": "reply", "data": {"id": "12"}}], [{"type": "poke", "data": {"id": "1"}}]],
)
def test_a_message_of_which_nothing_is_left_is_refused(segments: list[Json]) -> None:
    with pytest.raises(CallRefused, match=outgoing.EMPTY):
        accept(*segments)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(CallRefused, match="未知的消息类型：hologram"):
        accept({"type": "hologram", "data": {}})


def test_forwarded_messages_do_not_mix_with_words() -> None:
    with pytest.raises(CallRefused, match=outgoing.MIXED):
        accept(text("x"), {"type": "node", "data": {}})


def test_a_picture_becomes_a_name_and_a_size() -> None:
    (picture,) = accept(medium("image", f"base64://{PICTURE}"))
    assert picture["data"]["file_size"] == "15"
    assert picture["data"]["file"].endswith(".png")
    assert PICTURE not in str(picture)


def test_a_received_picture_has_the_recorded_fields(recorded: Callable[[str], Json]) -> None:
    (real,) = recorded("message_media__nc_group_image")["message"]
    (picture,) = accept(medium("image", f"base64://{PICTURE}"))
    assert picture["data"].keys() == real["data"].keys()


def test_a_received_file_has_the_recorded_fields(recorded: Callable[[str], Json]) -> None:
    (real,) = recorded("message_media__nc_group_file")["message"]
    (file,) = accept(medium("file", f"base64://{PICTURE}", name="a.txt"))
    assert file["data"].keys() == real["data"].keys()
    assert file["data"]["file"] == "a.txt"


def test_media_come_from_files_addresses_and_data_urls(tmp_path: Path) -> None:
    path = tmp_path / "a b.amr"
    path.write_bytes(b"silk")
    for uri in (path.as_uri(), str(path)):
        assert outgoing.fetch(uri) == b"silk"
    assert outgoing.fetch(f"data:image/png;base64,{PICTURE}") == base64.b64decode(PICTURE)
    assert outgoing.fetch("https://example.invalid/a.png") is None
    (record,) = accept(medium("record", "", url="http://example.invalid/a.amr"))
    assert record["data"]["url"] == "http://example.invalid/a.amr"


@each_case(
    "uri", ["", "a.png", "file:///nowhere/a.png", "base64://***", "base64://", "http://", "/nowhere/a.png", "data:x"]
)
def test_a_medium_that_cannot_be_had_is_refused(uri: str) -> None:
    with pytest.raises(CallRefused, match="识别URL失败, uri= ") as caught:
        accept(medium("image", uri))
    assert caught.value.retcode == 1200
