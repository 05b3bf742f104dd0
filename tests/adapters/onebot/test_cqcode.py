"""The old string form."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from adapters.onebot.fields import Fields
from adapters.onebot.segments import split_cq, unescape
from tests.cases import each_case

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
