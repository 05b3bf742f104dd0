"""Lines typed and lines printed."""

from __future__ import annotations

import base64

from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.console import SpokenLine, parse_line, parse_mentions, render, render_gesture
from adapters.simulator.wire import Json, mention, text
from tests.cases import each_case

PEOPLE = {"Frost": 10001, "user1": 20001, "user2": 20002, "小明": 20003, "小明同学": 20004, "a.b": 20005}
NAMES = {number: name for name, number in PEOPLE.items()}
BOT = mention(10001)


@each_case(
    ("line", "speaker", "segments"),
    [
        ("hi", "", [text("hi")]),
        ("@bot hi", "", [BOT, text(" hi")]),
        ("@bot", "", [BOT, text(" ")]),
        ("user2: hi", "user2", [text("hi")]),
        ("user2: @bot hi", "user2", [BOT, text(" hi")]),
        ("小红: 在吗", "小红", [text("在吗")]),
        ("user2: a: b", "user2", [text("a: b")]),
        ("user2: ", "user2", []),
        ("", "", []),
        ("   ", "", []),
        ("http://example.invalid/a b", "", [text("http://example.invalid/a b")]),
        ("http: not a link", "http", [text("not a link")]),
        ("12:30: lunch", "", [text("12:30: lunch")]),
        ("two words: hi", "", [text("two words: hi")]),
        ("bot: hi", "", [text("bot: hi")]),
        ("Frost: hi", "", [text("Frost: hi")]),
        ("@bot: hi", "", [BOT, text(": hi")]),
        ("/help: me", "", [text("/help: me")]),
        ("n" * 25 + ": hi", "", [text("n" * 25 + ": hi")]),
        ("user2: hi\r\n", "user2", [text("hi")]),
    ],
)
def test_a_line_is_spoken_by_whom_it_names(line: str, speaker: str, segments: list[Json]) -> None:
    assert parse_line(line, PEOPLE, 10001) == SpokenLine(speaker, segments)


@each_case(
    ("line", "segments"),
    [
        ("hi @user2 and @Bot!", [text("hi "), mention(20002), text(" and "), BOT, text("!")]),
        ("@Frost你好", [BOT, text("你好")]),
        ("@frost hi", [BOT, text(" hi")]),
        ("你好@小明同学", [text("你好"), mention(20004), text(" ")]),
        ("@小明同事", [mention(20003), text("同事")]),
        ("@bottle a@bot.net @nobody", [text("@bottle a@bot.net @nobody")]),
        ("@axb @a.b x", [text("@axb "), mention(20005), text(" x")]),
        ("@all @全体成员", [mention("all"), text(" "), mention("all"), text(" ")]),
        ("@USER1 hı", [mention(20001), text(" hı")]),
    ],
)
def test_names_of_those_present_become_mentions(line: str, segments: list[Json]) -> None:
    assert parse_mentions(line, PEOPLE, 10001) == segments


def printed(*segments: Json, group_id: int | None = 4242, user_id: int | None = None) -> str:
    return render(SentMessage(1, segments, group_id, user_id), NAMES, home=4242)


def medium(kind: str, source: str, **more: str) -> Json:
    return {"type": kind, "data": {"file": source, **more}}


PICTURE = "base64://" + base64.b64encode(bytes(12_345)).decode()


@each_case(
    ("segments", "lines"),
    [
        ([text("hi")], "bot: hi"),
        ([text("a\nb\r\n\n c\n")], "bot: a\n  b\n  \n   c"),
        ([mention(20002), text(" hi")], "bot: [@user2] hi"),
        ([mention("all"), text("hi")], "bot: [@all] hi"),
        ([mention(5), text("hi")], "bot: [@5] hi"),
        ([{"type": "reply", "data": {"id": "12"}}, text("yes")], "bot: [reply to 12] yes"),
        ([text("look"), medium("image", PICTURE)], "bot: look [image 12.3 kB]"),
        ([medium("image", PICTURE, name="demo.png")], "bot: [image demo.png 12.3 kB]"),
        ([medium("image", "data:image/png;base64,AAAA")], "bot: [image 3 bytes]"),
        ([medium("record", "file:///media/a.amr"), text("x")], "bot: [record a.amr] x"),
        ([medium("video", "https://example.invalid/a.mp4")], "bot: [video https://example.invalid/a.mp4]"),
        ([medium("file", "base64://A")], "bot: [file]"),
        ([{"type": "face", "data": {"id": "14"}}], "bot: [face 14]"),
        ([{"type": "json", "data": {}}], "bot: [json]"),
        ([text("\x1b[31mred\x07")], "bot: [31mred"),
    ],
)
def test_a_message_is_printed_line_by_line(segments: list[Json], lines: str) -> None:
    assert printed(*segments) == lines


def test_a_message_to_elsewhere_says_where_it_went() -> None:
    assert printed(text("hi"), group_id=None, user_id=20002) == "bot: [to user2] hi"
    assert printed(text("hi"), group_id=4343) == "bot: [to group 4343] hi"


@each_case(
    ("gesture", "shown"),
    [
        (Gesture("reaction", 20001, 4242, 5, "76"), "bot: [reacts to 小明 with 76]"),
        (Gesture("reaction", 20001, 4242, 5, "76", taken_back=True), "bot: [takes back 小明 with 76]"),
        (Gesture("poke", 7), "bot: [pokes 7]"),
        (Gesture("typing", 20001), "bot: [is typing to 小明]"),
    ],
)
def test_gestures_are_shown(gesture: Gesture, shown: str) -> None:
    assert render_gesture(gesture, {20001: "小明"}) == shown


def test_a_merged_forward_is_shown_with_its_messages() -> None:
    nodes = tuple(
        {"type": "node", "data": {"user_id": "10001", "nickname": "bot", "content": content}}
        for content in ([text("one\ntwo")], "three")
    )
    shown = render(SentMessage(1, nodes, 4242), {}, home=4242)
    assert shown.splitlines() == ["bot: [forward of 2]", "  [bot] one", "  two", "  [bot] three"]
