"""What the sources have in common."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from bot.domain.ports import WebResponse
from tests.adapters.fetching.replay import Replay
from tests.cases import each_case
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import A_DAY, SourceFailed, WeatherKeys, WeatherQuestion, Wire, localise, read, tidy


class Body(Wire):
    figure: float


def answer(body: bytes, status: int = 200) -> WebResponse:
    return WebResponse(status, body, "https://a.test")


def reason(body: Any) -> str:
    return str(body["why"])


def test_a_body_is_read_as_its_kind() -> None:
    assert read("A", Body, answer(b'{"figure": "1.5", "more": 1}')).figure == 1.5


@each_case(
    ("status", "rest"), [(500, 60), (502, 60), (429, 60), (400, 0), (404, 0), (401, A_DAY), (403, A_DAY), (204, 60)]
)
def test_a_status_says_how_long_to_leave_a_source_alone(status: int, rest: float) -> None:
    with pytest.raises(SourceFailed, match=f"A answered {status}: because") as caught:
        read("A", Body, answer(b'{"why": "because"}', status), reason)
    assert caught.value.rest == rest


@each_case("body", [b"", b"<html>", b"[]", b"null", b'{"figure": NaN}', b'{"why": []}', b"[" * 10000])
def test_garbage_is_told_as_such(body: bytes) -> None:
    with pytest.raises(SourceFailed, match="A sent an answer that cannot be read"):
        read("A", Body, answer(body), reason)


async def test_a_source_that_cannot_be_reached_is_one_that_failed(server: Replay, web: HttpxWeb) -> None:
    question = WeatherQuestion(
        place=WeatherPlace(id=0, name="x", latitude=0, longitude=0), web=web, keys=WeatherKeys(), now=0
    )
    with pytest.raises(SourceFailed, match="A: ") as caught:
        await question.get("A", "http://127.0.0.1:9/", kind=Body, params={})
    assert caught.value.rest > 0


def test_times_become_local() -> None:
    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    assert localise(noon, "Asia/Shanghai").isoformat() == "2026-07-01T20:00:00"
    for zone in ("", "Nowhere/Land", "../etc", "Asia"):
        assert localise(noon, zone).hour == 12


def test_a_vendors_words_become_one_short_line() -> None:
    assert tidy(" a\n\x00b  c ") == "a b c"
    assert len(tidy("x" * 500)) == 120
