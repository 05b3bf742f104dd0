"""Messages on the wire and off it."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.onebot.fields import Fields
from adapters.onebot.segments import holds_url, read_message, split_cq, unescape, write_segments
from bot.core.events import account_of, masked
from bot.core.segments import (
    Card,
    Contact,
    Dice,
    File,
    Forward,
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    Picture,
    Poke,
    Record,
    Rps,
    Segment,
    SendSegment,
    Sticker,
    Transfer,
    Unsupported,
    Video,
)
from frostagent.types.speech import Attachment, Face, MediaKind, MentionAll, Quote, Text
from tests.adapters.onebot.test_fields import ANY_JSON
from tests.cases import each_case

CLEAN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
QQ = st.integers(1, 10**12)
SAID = st.one_of(
    st.builds(Text, CLEAN), st.builds(Mention, QQ), st.just(MentionAll()), st.builds(Face, st.integers(0, 500).map(str))
)


@given(st.lists(SAID), st.none() | st.builds(Quote, st.integers().filter(bool).map(str)))
def test_what_is_written_is_read_as_it_was(said: list[SendSegment], quote: Quote | None) -> None:
    whole = (quote, *said) if quote else tuple(said)
    assert read_message(write_segments(whole)) == whole
    assert read_message(json.dumps(write_segments(whole))) == whole or not whole


@given(ANY_JSON | st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "at", "json"]), "data": ANY_JSON})))
def test_nothing_makes_reading_raise(message: object) -> None:
    assert isinstance(read_message(message), tuple)


def test_a_quote_is_written_first_wherever_it_stood() -> None:
    assert write_segments((Text("好的"), Quote("-5"))) == [
        {"type": "reply", "data": {"id": "-5"}},
        {"type": "text", "data": {"text": "好的"}},
    ]


def test_text_is_never_written_as_code() -> None:
    said = "[CQ:at,qq=all][CQ:image,file=file:///etc/passwd]"
    assert write_segments((Text(said),)) == [{"type": "text", "data": {"text": said}}]


def test_empty_and_impossible_text_does_not_reach_the_wire() -> None:
    assert write_segments((Text(""), Text("\0"), Text("a\ud800"))) == [{"type": "text", "data": {"text": "a�"}}]


@each_case("nobody", [Mention(0), Mention(-5), Mention(masked(7)), Quote("0"), Quote(""), Quote("-00"), Quote(" ")])
def test_nobody_and_nothing_are_never_written(nobody: Mention | Quote) -> None:
    """`at` with 0 is everybody to Lagrange and go-cqhttp."""
    assert write_segments((nobody, Text("hi"))) == [{"type": "text", "data": {"text": "hi"}}]
    assert write_segments((nobody,)) == []


@given(st.lists(st.builds(Mention, st.integers())))
def test_only_who_has_a_number_is_ever_mentioned(mentions: list[Mention]) -> None:
    written = [part["data"]["qq"] for part in write_segments(mentions)]
    accounts = [one.user_id for one in mentions if one.user_id > 0 and account_of(one.user_id) == one.user_id]
    assert written == list(map(str, accounts))


def test_a_card_with_a_number_nobody_can_read_is_read() -> None:
    (card,) = read_message([{"type": "xml", "data": {"data": f'<msg brief="&#{"9" * 5000};"/>'}}])
    assert isinstance(card, Card)


@each_case("kind", ["image", "record", "video"])
def test_a_medium_is_written_with_its_source(kind: MediaKind) -> None:
    assert write_segments((Attachment(kind, "base64://aGk=", "x.png"),)) == [
        {"type": kind, "data": {"file": "base64://aGk="}}
    ]


def test_a_file_is_written_with_its_name() -> None:
    written = write_segments((Attachment("file", "file:///shared/report.pdf", "报告.pdf"), MentionAll(), Mention(123)))
    assert written == [
        {"type": "file", "data": {"file": "file:///shared/report.pdf", "name": "报告.pdf"}},
        {"type": "at", "data": {"qq": "all"}},
        {"type": "at", "data": {"qq": "123"}},
    ]


def test_the_name_of_a_file_is_written_without_tricks() -> None:
    for name, clean in (("in\u202efdp.exe", "infdp.exe"), ("../a\\b\n.txt", "_a_b .txt"), ("", "file"), ("\0", "file")):
        [part] = write_segments((Attachment("file", "base64://aGk=", name),))
        assert part["data"]["name"] == clean


@each_case("kind", ["image", "record", "video", "file"])
def test_a_medium_that_a_server_would_have_to_fetch_is_known(kind: MediaKind) -> None:
    for source in (
        "http://a.test/",
        "HTTPS://a.test/",
        " http://a.test/",
        "\0https://a.test/",
        "ftp://a.test/",
        "http:a",
    ):
        assert holds_url((Text("look"), Attachment(kind, source))), source
    for source in ("base64://aHR0cDovLw==", "file:///http://a", "/http/a.png", "https.png"):
        assert not holds_url((Text("http://a.test/"), Mention(1), Attachment(kind, source))), source


PROMPT = json.dumps({"app": "x", "prompt": "[分享]晴天", "meta": {"music": {"title": "晴天", "desc": "歌手"}}})
VIDEO = {"title": "哔哩", "desc": "视频", "url": "m.q.qq.com", "qqdocurl": "b23.tv/x?share=1"}
LINKED = json.dumps({"meta": {"a": {"url": "x"}, "b": VIDEO}}, ensure_ascii=False)
PAGE = (
    '<msg brief="页" url="https://a.example/?a=1&amp;b=2"><item><title>一页</title>'
    "<summary>说 明</summary></item></msg>"
)
TITLE = json.dumps({"app": "x", "meta": {"a": None, "detail_1": {"title": "", "desc": "一个视频"}}})

RECEIVED: list[tuple[str, dict[str, Any] | None, Segment | None]] = [
    ("text", {"text": "hi"}, Text("hi")),
    ("text", {"text": 12345}, Text("12345")),
    ("text", {"text": ""}, None),
    ("text", None, None),
    ("at", {"qq": "123", "name": "@小明"}, Mention(123, "小明")),
    ("at", {"qq": 123}, Mention(123)),
    ("at", {"qq": "all"}, MentionAll()),
    ("at", {"qq": None}, Unsupported("at", '{"qq":null}')),
    ("reply", {"id": -5}, Quote("-5")),
    ("reply", {}, Unsupported("reply", "{}")),
    ("face", {"id": "311", "raw": {"faceText": "[打call]"}, "chainCount": None}, Face("311", "[打call]")),
    ("face", {"id": 14, "large": False}, Face("14")),
    (
        "image",
        {"summary": "[动画表情]", "file": "A.jpg", "sub_type": 1, "url": "https://x/1", "file_size": "466"},
        Picture("A.jpg", "https://x/1", "[动画表情]", 466, sticker=True),
    ),
    ("image", {"file": "A.png", "subType": 0, "url": ""}, Picture("A.png")),
    (
        "image",
        {"file": "https://x/1", "filename": "A.jpg", "subType": 1},
        Picture("A.jpg", "https://x/1", sticker=True),
    ),
    (
        "image",
        {"emoji_id": "3a", "emoji_package_id": 24, "key": "k", "summary": "[摸头]", "url": "https://x/2", "file": "3a"},
        Sticker("3a", "24", "k", "[摸头]", "https://x/2"),
    ),
    ("mface", {"emoji_id": "3a", "emoji_package_id": "24", "key": "k"}, Sticker("3a", "24", "k")),
    ("record", {"file": "v.amr", "path": "/q/v.amr", "url": "", "file_size": "9"}, Record("v.amr", "", "/q/v.amr", 9)),
    ("record", {"file": "https://x/v.silk"}, Record("https://x/v.silk", "https://x/v.silk")),
    ("video", {"file": "v.mp4", "url": "https://x/v", "file_size": -1}, Video("v.mp4", "https://x/v")),
    ("file", {"file": "a.txt", "file_id": "/b", "file_size": "3"}, File("a.txt", "/b", "", 3)),
    ("file", {"name": "r.pdf", "url": "https://x/r"}, File("r.pdf", "", "https://x/r")),
    ("file", {"file_name": "r", "file_hash": "h"}, File("r", "h", hash="h")),
    (
        "file",
        {"file_name": "r", "file_id": "/i", "file_hash": "h"},
        File("r", "/i", hash="h"),
    ),
    ("forward", {"id": "7436377759204399490"}, Forward("7436377759204399490")),
    ("forward", {"id": "1", "content": [{"a": 1}]}, Forward("1", '[{"a":1}]')),
    ("forward", {"id": "1", "content": "[object Object]"}, Forward("1")),
    ("json", {"data": PROMPT}, Card("json", PROMPT, "[分享]晴天", "晴天", "歌手")),
    ("json", {"data": TITLE}, Card("json", TITLE, "一个视频", "", "一个视频")),
    ("json", {"data": {"desc": "音乐"}}, Card("json", '{"desc":"音乐"}', "音乐")),
    ("json", {"data": ""}, Card("json")),
    ("json", {"data": "{"}, Card("json", "{")),
    ("xml", {"data": '<msg brief="[a &amp; b]"/>'}, Card("xml", '<msg brief="[a &amp; b]"/>', "[a & b]")),
    ("xml", {"data": "<msg/>"}, Card("xml", "<msg/>")),
    ("miniapp", {"data": PROMPT}, Card("miniapp", PROMPT, "[分享]晴天", "晴天", "歌手")),
    ("json", {"data": LINKED}, Card("json", LINKED, "哔哩", "哔哩", "视频", "https://b23.tv/x?share=1")),
    (
        "xml",
        {"data": PAGE},
        Card("xml", PAGE, "页", "一页", "说 明", "https://a.example/?a=1&b=2"),
    ),
    ("markdown", {"content": "# 标题"}, Markdown("# 标题")),
    (
        "keyboard",
        {"rows": [{"buttons": [{"render_data": {"label": "今日"}}, {}, None]}, None, {"buttons": 1}]},
        Keyboard(("今日",)),
    ),
    ("dice", {"result": 3}, Dice("3")),
    ("rps", {}, Rps()),
    ("poke", {"type": "1", "id": "-1"}, Poke("1", "-1")),
    ("shake", None, Poke("shake")),
    ("contact", {"type": "group", "id": 4242}, Contact("group", "4242")),
    ("location", {"lat": 39.9, "lon": "116.4", "title": "t"}, Location("t", "", "39.9", "116.4")),
    ("share", {"url": "https://x", "title": "t"}, Link("share", "t", "https://x")),
    ("music", {"type": "163", "id": 28949129}, Link("music", content="163 28949129")),
    ("onlinefile", {"msgId": "1", "fileName": "a"}, Transfer("onlinefile", "a", "1")),
    ("flashtransfer", {"fileSetId": "d3"}, Transfer("flashtransfer", "", "d3")),
    ("flash_file", {"title": "t", "file_set_id": "d4"}, Transfer("flash_file", "t", "d4")),
    ("future_segment", {"k": {"n": [1, None]}}, Unsupported("future_segment", '{"k":{"n":[1,null]}}')),
]


@each_case(("kind", "data", "expected"), RECEIVED)
def test_every_kind_of_segment_is_read(kind: str, data: object, expected: Segment | None) -> None:
    assert read_message([{"type": kind, "data": data}]) == (() if expected is None else (expected,))


LIST = [{"type": "at", "data": {"qq": "1"}}, {"type": "text", "data": {"text": " hi"}}]


@each_case("message", [LIST, json.dumps(LIST), "[CQ:at,qq=1] hi", [LIST[0], " hi"], [{}, None, 5, *LIST, {"data": {}}]])
def test_every_form_of_a_message_is_read(message: object) -> None:
    assert read_message(message) == (Mention(1), Text(" hi"))


def test_one_object_is_a_message_too() -> None:
    assert read_message(LIST[1]) == (Text(" hi"),)


@each_case("message", [None, "", [], {}, 5, True])
def test_what_is_no_message_is_empty(message: object) -> None:
    assert read_message(message) == ()


@each_case("said", ['{"type":"at","data":{"qq":"all"}}', "[1, 2]", '["a"]', "[]", "[not json", "[{}]"])
def test_what_a_person_typed_is_never_taken_for_segments(said: str) -> None:
    assert read_message(said) == (Text(said),)


KEYS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
NAME = re.compile(r"[\w.-]+")
MANY = 2_000_000


def escape(text: str) -> str:
    """What the standard asks of a server, `&` first."""
    return text.replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")


def code(kind: str, data: dict[str, str]) -> str:
    values = "".join(f",{key}={escape(value).replace(',', '&#44;')}" for key, value in data.items())
    return f"[CQ:{kind}{values}]"


def plain(text: str) -> Fields:
    return {"type": "text", "data": {"text": text}}


@given(st.text())
def test_escaped_text_is_read_as_it_was(text: str) -> None:
    assert unescape(escape(text)) == text
    assert list(split_cq(escape(text))) == ([plain(text)] if text else [])


@given(st.lists(st.text(min_size=1) | st.tuples(KEYS, st.dictionaries(KEYS, st.text(), max_size=4)), max_size=6))
def test_every_written_code_is_read_as_it_was(parts: list[str | tuple[str, dict[str, str]]]) -> None:
    written = ""
    expected: list[Fields] = []
    for part in parts:
        if isinstance(part, tuple):
            written += code(*part)
            expected.append({"type": part[0], "data": part[1]})
        elif expected and expected[-1]["type"] == "text" and written[-1:] != "]":
            written += escape(part)
            expected[-1] = plain(expected[-1]["data"]["text"] + part)
        else:
            written += escape(part)
            expected.append(plain(part))
    assert list(split_cq(written)) == expected


@given(st.text("[]CQ:at,=&#19;ab"))
def test_nothing_makes_it_raise(text: str) -> None:
    assert all(part["type"] for part in split_cq(text))


def by_hand(text: str) -> list[Fields]:
    """What a code is, said otherwise: a bracket, `CQ:`, a name, and no further bracket before its end."""
    parts: list[Fields] = []
    said = ""
    while text:
        inside, end, rest = text[1:].partition("]")
        name, _, parameters = inside.removeprefix("CQ:").partition(",")
        whole = text.startswith("[CQ:") and end and "[" not in inside and NAME.fullmatch(name)
        if not whole:
            said, text = said + text[0], text[1:]
            continue
        parts += [plain(unescape(said))] if said else []
        pairs = (pair.partition("=") for pair in parameters.split(",") if pair)
        parts.append({"type": name, "data": {key: value for key, _, value in pairs}})
        said, text = "", rest
    return parts + ([plain(unescape(said))] if said else [])


PIECES = ["[", "CQ:", "]", "a", ",", "=", "[CQ:b", "[CQ:at,qq=123 没有结束 ", "[CQ:c,d=e]", "[CQ:face,id=1]", " "]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_a_code_is_read_wherever_it_stands_and_all_else_is_text(text: str) -> None:
    assert list(split_cq(text)) == by_hand(text)


@given(st.lists(st.text("[]CQ:at,= 没a", max_size=9) | st.just("[CQ:face,id=1]"), max_size=9))
def test_no_visible_text_is_ever_lost(pieces: list[str]) -> None:
    written = "".join(pieces)
    parts = list(split_cq(written))
    seen = "".join(part["data"]["text"] if part["type"] == "text" else "\0" for part in parts)
    assert re.sub(r"\[CQ:[\w.-]+(,[^\[\]]*)?\]", "\0", written) == seen


def test_the_text_of_an_unfinished_code_stays_and_the_face_after_it_is_read() -> None:
    assert list(split_cq("[CQ:at,qq=123 没有结束 [CQ: [CQ:face,id=1]x]")) == [
        plain("[CQ:at,qq=123 没有结束 [CQ: "),
        {"type": "face", "data": {"id": "1"}},
        plain("x]"),
    ]


@each_case("piece", ["[CQ:a,", "[CQ:", "[CQ:a", "[", "[CQ:" + "a" * 60, "[CQ:a,x=1,"])
def test_megabytes_of_unfinished_codes_stay_text_and_hold_nobody_up(piece: str) -> None:
    """A quadratic reader takes hours for these, and the test its time limit."""
    text = piece * (MANY // len(piece))
    assert list(split_cq(text)) == [plain(text)]


def test_megabytes_in_one_name_or_value_hold_nobody_up() -> None:
    name, value = "a" * MANY, "[CQ:" * (MANY // 4)
    assert list(split_cq(f"[CQ:{name}")) == [plain(f"[CQ:{name}")]
    assert list(split_cq(f"[CQ:at,name={value}]")) == [plain(f"[CQ:at,name={value}]")]
    assert list(split_cq(f"[CQ:at,name={name}]")) == [{"type": "at", "data": {"name": name}}]


def test_ampersands_are_unescaped_last() -> None:
    assert unescape("&amp;#91;不是CQ码&amp;#93; &#91;也不是&#93; a,b") == "&#91;不是CQ码&#93; [也不是] a,b"


def test_a_value_is_split_from_its_name_at_the_first_equals_sign() -> None:
    [part] = split_cq("[CQ:image,file=a.image,url=https://x/?a=1&amp;b=2]")
    assert part["data"] == {"file": "a.image", "url": "https://x/?a=1&b=2"}


@each_case("text", ["[CQ:at,qq=1", "[CQ:", "CQ:at,qq=1]", "[CQ:,qq=1]", "[cq:at,qq=1]"])
def test_what_is_no_whole_code_stays_text(text: str) -> None:
    assert list(split_cq(text)) == [plain(text)]


def test_a_code_after_an_unfinished_one_is_found() -> None:
    assert list(split_cq("[CQ:[CQ:shake]!")) == [plain("[CQ:"), {"type": "shake", "data": {}}, plain("!")]


def test_a_parameter_may_have_no_value() -> None:
    assert list(split_cq("[CQ:json,data=,x]")) == [{"type": "json", "data": {"data": "", "x": ""}}]
