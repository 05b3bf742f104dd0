"""What people share, and how the bot opens it."""

from __future__ import annotations

import base64
import json

from adapters.simulator import shared_media
from adapters.simulator.shared_media import Node
from adapters.simulator.wire import text
from adapters.simulator.world import World
from tests.adapters.simulator.test_actions import refused, told


def test_a_picture_that_was_sent_can_be_asked_for(world: World) -> None:
    picture = {"type": "image", "data": {"file": "base64://aGVsbG8="}}
    message_id = told(world, "send_private_msg", user_id=20001, message=[picture])["message_id"]
    (shown,) = told(world, "get_msg", message_id=message_id)["message"]
    found = told(world, "get_image", file=shown["data"]["file"])
    assert (found["file_name"], found["file_size"]) == (shown["data"]["file"], "5")
    assert "base64" not in found
    assert told(world, "get_file", file=shown["data"]["file"]) == found
    assert refused(world, "get_image", file="other.png") == (1200, "file not found")
    assert refused(world, "get_image")[0] == 1400


def test_a_file_is_asked_for_by_its_id(world: World) -> None:
    segment = {"type": "file", "data": {"file": "base64://aGVsbG8=", "name": "hello.py"}}
    stored = world.messages.find(told(world, "send_group_msg", group_id=4242, message=[segment])["message_id"])
    (kept,) = stored.segments
    assert told(world, "get_file", file_id=kept["data"]["file_id"])["file_name"] == "hello.py"


def test_a_shared_file_and_a_voice_come_with_their_content(world: World) -> None:
    note = shared_media.file(world, "作业.txt", "第一题".encode())
    world.post([note], author=20001, group_id=4242)
    world.post([shared_media.voice(world, "v.amr", b"RIFF")], author=20001, group_id=4242)
    found = told(world, "get_file", file_id=note["data"]["file_id"])
    assert base64.b64decode(found["base64"]).decode() == "第一题"
    linked = told(world, "get_group_file_url", group_id=4242, file_id=note["data"]["file_id"])
    assert linked["url"].endswith("/作业.txt")
    assert linked["base64"] == found["base64"]
    assert base64.b64decode(told(world, "get_record", file="v.amr", out_format="wav")["base64"]) == b"RIFF"


def test_a_forward_inside_another_has_its_messages_inline_and_opens_by_no_id(world: World) -> None:
    inner = [Node(20002, "user2", (text("在里面"),))]
    segment = shared_media.forward(world, [Node(20001, "小明", (text("外面"),)), Node(20001, "小明", inner)])
    outer, nested = told(world, "get_forward_msg", id=segment["data"]["id"])["messages"]
    assert (outer["sender"]["nickname"], outer["raw_message"]) == ("小明", "外面")
    (shown,) = nested["message"]
    assert [one["raw_message"] for one in shown["data"]["content"]] == ["在里面"]
    assert refused(world, "get_forward_msg", id=shown["data"]["id"]) == (1200, shared_media.GONE)


def test_a_card_says_what_it_shares(world: World) -> None:
    told_of = json.loads(shared_media.card("香山", "红叶", "https://example.com")["data"]["data"])
    assert told_of["meta"]["news"] == {
        "title": "香山",
        "desc": "红叶",
        "jumpUrl": "https://example.com",
    }


def test_a_picture_lies_where_pictures_lie() -> None:
    assert shared_media.picture("a.png")["data"]["url"] == f"https://{shared_media.HOST}/a.png"
    assert shared_media.picture("a.png", sticker=True)["data"]["sub_type"] == 1
