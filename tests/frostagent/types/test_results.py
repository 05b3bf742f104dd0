from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

from frostagent.types.messages import Usage
from frostagent.types.results import LARGEST_PICTURE, NO_OUTPUT, Image, ToolResult, render_result, shorten
from frostagent.types.speech import Text
from tests.cases import each_case


class Point(BaseModel):
    x: int


@each_case(
    ("value", "text"),
    [
        (None, "(no output)"),
        ("", "(no output)"),
        ("北京", "北京"),
        ({"城市": "北京"}, '{"城市": "北京"}'),
        ([1, "二"], '[1, "二"]'),
        (Point(x=1), '{"x":1}'),
        (3.5, "3.5"),
    ],
)
def test_whatever_a_tool_returns_becomes_text(value: object, text: str) -> None:
    assert render_result(value) == text


def test_a_long_result_keeps_head_and_tail_and_says_what_was_cut() -> None:
    text = shorten("a" * 100 + "z" * 100, 40)
    assert text.startswith("a" * 30)
    assert text.endswith("z" * 10)
    assert "[... 160 characters cut ...]" in text


class Colour(StrEnum):
    RED = "red"


@dataclass
class Day:
    when: date
    colours: tuple[Colour, ...] = (Colour.RED,)


def test_data_holds_whatever_can_be_said_in_json() -> None:
    day = Day(date(2026, 11, 22))
    assert render_result(day) == '{"when": "2026-11-22", "colours": ["red"]}'
    assert render_result({"days": [day], "point": Point(x=1)}) == (
        '{"days": [{"when": "2026-11-22", "colours": ["red"]}], "point": {"x": 1}}'
    )
    assert render_result(" \n") == NO_OUTPUT


def test_what_a_tool_returns_is_a_result_and_a_result_stays_one() -> None:
    result = ToolResult("hi", details={"ms": 3}, terminate=True)
    assert ToolResult.of(result) is result
    assert ToolResult.of({"a": "北"}) == ToolResult('{"a": "北"}')
    assert ToolResult.of(None) == ToolResult(NO_OUTPUT)


def test_a_picture_is_a_data_url_and_never_a_link() -> None:
    assert Image.of(b"\x89PNG").url == "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
    with pytest.raises(ValueError, match="data url"):
        Image("https://example.com/cat.png")


@each_case("limit", [1, 2, 3, 4, 50])
def test_even_a_tiny_limit_keeps_no_more_than_it_says(limit: int) -> None:
    assert shorten("x" * 100, limit).count("x") == limit


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
SHOWN = Image.of(PNG)
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8 \xff"


@dataclass
class Album:
    name: str
    picture: object


class Frame(BaseModel):
    picture: bytes
    about: object = None


@each_case(
    ("value", "text", "pictures"),
    [
        (PNG, "[picture 1]", 1),
        (bytearray(b"\xff\xd8\xff\xe0"), "[picture 1]", 1),
        (memoryview(b"GIF89a\xff"), "[picture 1]", 1),
        (WEBP, "[picture 1]", 1),
        (b"RIFF\x00\x00\x00\x00WAVE\xff", "(13 bytes of binary data)", 0),
        (b"just words", "just words", 0),
        (b" \n", "(no output)", 0),
        (SHOWN, "[picture 1]", 1),
        ([SHOWN, "a cat", PNG], "[picture 1]\na cat\n[picture 2]", 2),
        (("a cat", SHOWN), "a cat\n[picture 1]", 1),
        (
            {"cat": SHOWN, "dogs": [PNG, b"\x00\xff"]},
            '{"cat": "[picture 1]", "dogs": ["[picture 2]", "(2 bytes of binary data)"]}',
            2,
        ),
        (Album("cats", PNG), '{"name": "cats", "picture": "[picture 1]"}', 1),
        (Album("cats", SHOWN), '{"name": "cats", "picture": {"url": "[picture 1]"}}', 1),
        (Usage(1), '{"prompt": 1, "completion": 0, "cached": 0, "reasoning": 0, "cost": null, "reserved": 0}', 0),
        ([Album("cats", Text("a"))], '[{"name": "cats", "picture": {"type": "text", "text": "a"}}]', 0),
        (Frame(picture=PNG), '{"picture": "[picture 1]", "about": null}', 1),
        (
            {"frame": Frame(picture=PNG, about=Album("a", PNG))},
            '{"frame": {"picture": "[picture 1]", "about": {"name": "a", "picture": "[picture 2]"}}}',
            2,
        ),
        (f"see ![cat]({SHOWN.url}), it sleeps", "see ![cat]([picture 1]), it sleeps", 1),
        (SHOWN.url.replace("image/png", "IMAGE/PNG"), "[picture 1]", 1),
        ("data:image/svg+xml;base64,PHN2Zz4=", "(a picture, svg+xml, 5 bytes: it cannot be shown)", 0),
        ("data:image/png, they said", "data:image/png, they said", 0),
        ("data:text/plain;base64,aGk=", "data:text/plain;base64,aGk=", 0),
        (f"data:image/png;base64,{base64.encodebytes(PNG).decode()}and words", "[picture 1]\nand words", 1),
    ],
)
def test_a_picture_is_shown_and_never_text(value: object, text: str, pictures: int) -> None:
    result = ToolResult.of(value)
    assert result.text == result.content == text
    assert len(result.images) == pictures
    if SHOWN.url in {image.url for image in result.images}:
        assert base64.b64encode(PNG).decode()[:40] not in result.content


def test_the_pictures_of_a_result_come_before_those_in_its_words() -> None:
    other = Image.of(b"other")
    assert ToolResult.of(ToolResult(f"see {SHOWN.url}", images=(other,))) == ToolResult(
        "see [picture 2]", (other, SHOWN)
    )
    anything: Any = {"a": SHOWN}
    assert ToolResult.of(ToolResult(anything)) == ToolResult('{"a": "[picture 1]"}', (SHOWN,))


def test_a_picture_that_nobody_could_take_is_named() -> None:
    result = ToolResult.of(PNG + bytes(LARGEST_PICTURE))
    assert result == ToolResult(f"(a picture, png, {len(PNG) + LARGEST_PICTURE} bytes: it cannot be shown)")


def test_details_may_be_any_json_and_a_code_is_nobodys_to_claim() -> None:
    everything: list[Any] = [[1, "a"], "words", 3.5, None, True, {"a": [{}]}]
    for details in everything:
        result = ToolResult("hi", details=details)
        assert ToolResult.of(result) is result
    assert ToolResult.of(ToolResult("hi", is_error=True, code="TOOL_CANCELLED")).code == ""
    wrong: Any = ("data:image/png;base64,AA==",)
    with pytest.raises(TypeError, match="each an Image"):
        ToolResult.of(ToolResult("hi", images=wrong))
