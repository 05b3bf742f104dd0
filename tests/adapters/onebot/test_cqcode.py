"""The old string form."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.onebot.cqcode import split_cq, unescape
from adapters.onebot.fields import Fields

KEYS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
WHOLE_CODE = re.compile(r"\[CQ:([\w.-]+)(?:,([^\]]*))?\]")  # what a code is; matching it takes quadratic time
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


@given(st.lists(st.sampled_from(["[", "CQ:", "]", "a", ",", "=", "[CQ:b", "[CQ:c,d=e]", " "])).map("".join))
def test_a_code_is_what_the_pattern_of_one_says(text: str) -> None:
    expected: list[Fields] = []
    end = 0
    for found in WHOLE_CODE.finditer(text):
        expected += [plain(unescape(before))] if (before := text[end : found.start()]) else []
        pairs = (pair.partition("=") for pair in (found[2] or "").split(",") if pair)
        expected.append({"type": found[1], "data": {key: value for key, _, value in pairs}})
        end = found.end()
    assert list(split_cq(text)) == expected + ([plain(rest)] if (rest := text[end:]) else [])


@pytest.mark.parametrize("piece", ["[CQ:a,", "[CQ:", "[CQ:a", "[", "[CQ:" + "a" * 60, "[CQ:a,x=1,"])
def test_megabytes_of_unfinished_codes_stay_text_and_hold_nobody_up(piece: str) -> None:
    """A quadratic reader takes hours for these, and the test its time limit."""
    text = piece * (MANY // len(piece))
    assert list(split_cq(text)) == [plain(text)]


def test_megabytes_in_one_name_or_value_hold_nobody_up() -> None:
    name, value = "a" * MANY, "[CQ:" * (MANY // 4)
    assert list(split_cq(f"[CQ:{name}")) == [plain(f"[CQ:{name}")]
    assert list(split_cq(f"[CQ:at,name={value}]")) == [{"type": "at", "data": {"name": value}}]


def test_ampersands_are_unescaped_last() -> None:
    assert unescape("&amp;#91;不是CQ码&amp;#93; &#91;也不是&#93; a,b") == "&#91;不是CQ码&#93; [也不是] a,b"


def test_a_value_is_split_from_its_name_at_the_first_equals_sign() -> None:
    [part] = split_cq("[CQ:image,file=a.image,url=https://x/?a=1&amp;b=2]")
    assert part["data"] == {"file": "a.image", "url": "https://x/?a=1&b=2"}


@pytest.mark.parametrize("text", ["[CQ:at,qq=1", "[CQ:", "CQ:at,qq=1]", "[CQ:,qq=1]", "[cq:at,qq=1]"])
def test_what_is_no_whole_code_stays_text(text: str) -> None:
    assert list(split_cq(text)) == [plain(text)]


def test_a_code_after_an_unfinished_one_is_found() -> None:
    assert list(split_cq("[CQ:[CQ:shake]!")) == [plain("[CQ:"), {"type": "shake", "data": {}}, plain("!")]


def test_a_parameter_may_have_no_value() -> None:
    assert list(split_cq("[CQ:json,data=,x]")) == [{"type": "json", "data": {"data": "", "x": ""}}]
