from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import pytest
from pydantic import BaseModel

from bot.domain.result import NO_OUTPUT, Image, ToolResult, render_result, shorten


class Point(BaseModel):
    x: int


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 50])
def test_even_a_tiny_limit_keeps_no_more_than_it_says(limit: int) -> None:
    assert shorten("x" * 100, limit).count("x") == limit
