"""MET Norway's answers, and its terms."""

from __future__ import annotations

from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from tests.adapters.fetching.replay import Replay
from tests.tools.get_weather.bodies import MET, met, met_step
from tools.get_weather.met_norway import LONGEST, fetch_weather
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import FRESH, Fetched, SourceFailed, WeatherKeys, WeatherQuestion

NOW = 1_000_000.0  # 1970-01-12T13:46:40Z
OSLO = WeatherPlace(id=0, name="Oslo", latitude=59.91273, longitude=10.74609, zone="Europe/Oslo")


async def fetch(
    web: HttpxWeb, *, place: WeatherPlace = OSLO, now: float = NOW, earlier: Fetched | None = None
) -> Fetched:
    return await fetch_weather(WeatherQuestion(place=place, web=web, keys=WeatherKeys(), now=now, earlier=earlier))


async def test_now_is_the_last_step_not_after_now(server: Replay, web: HttpxWeb) -> None:
    server.tell(MET, met(), lat="59.91", lon="10.75")
    now = (await fetch(web)).weather.now
    assert (now.temperature, now.code, now.wind_speed, now.wind_from) == (3.1, 0, 5.8, 90)
    assert now.time.isoformat() == "1970-01-12T14:00:00"  # an hour ahead of Greenwich


async def test_who_asks_is_said(server: Replay, web: HttpxWeb) -> None:
    server.tell(MET, met())
    await fetch(web)
    assert server.asked[0].headers["User-Agent"] == "FrostAgent/test (+tests)"


async def test_days_are_made_of_the_hours_of_their_own_date(server: Replay, web: HttpxWeb) -> None:
    server.tell(MET, met())
    weather = (await fetch(web)).weather
    assert [(str(day.date), day.low, day.high, day.code) for day in weather.days] == [
        ("1970-01-12", None, None, 0),  # its morning is over, and not in the forecast
        ("1970-01-13", -6.5, -4.0, 95),
    ]
    assert [day.rain for day in weather.days] == [None, 1.0]
    assert [(hour.time.hour, hour.code, hour.rain) for hour in weather.hours] == [
        (14, 0, 0),
        (15, 97, 3.1),
        (16, 71, 0.4),
    ]


async def test_a_place_elsewhere_has_other_days(server: Replay, web: HttpxWeb) -> None:
    server.tell(MET, met())
    weather = (await fetch(web, place=replace(OSLO, zone="Pacific/Auckland"))).weather
    assert [str(day.date) for day in weather.days] == ["1970-01-13"]


async def test_it_is_new_until_it_expires(server: Replay, web: HttpxWeb) -> None:
    for after, fresh in ((1800, 1800), (30, FRESH), (-5, FRESH), (10**6, LONGEST)):
        server.tell(MET, met(), headers={"Expires": formatdate(NOW + after, usegmt=True)}, lat=f"{after % 90:.2f}")
        place = replace(OSLO, latitude=float(after % 90))
        assert (await fetch(web, place=place)).fresh == fresh
    server.tell(MET, met(), headers={"Expires": "soon"}, lat="1.00")
    assert (await fetch(web, place=replace(OSLO, latitude=1.0))).fresh == FRESH


async def test_it_is_asked_again_whether_it_changed(server: Replay, web: HttpxWeb) -> None:
    modified = formatdate(NOW - 60, usegmt=True)
    server.tell(MET, met(), headers={"Last-Modified": modified})
    first = await fetch(web)
    server.tell(MET, b"", status=304, headers={"Expires": formatdate(NOW + 5000, usegmt=True)})
    second = await fetch(web, now=NOW + 1200, earlier=first)
    assert server.asked[1].headers["If-Modified-Since"] == modified
    assert (second.fresh, second.modified) == (3800, modified)


async def test_now_goes_on_with_the_time_though_nothing_changed(server: Replay, web: HttpxWeb) -> None:
    server.tell(MET, met(), headers={"Last-Modified": formatdate(NOW - 60, usegmt=True)})
    first = await fetch(web)
    server.tell(MET, b"", status=304)
    second = await fetch(web, now=NOW + 3600, earlier=first)
    for told in (first, second):
        assert told.at(NOW).now.temperature == 3.1
        assert told.at(NOW + 3600).now.temperature == 2.5
        tomorrow = told.at(NOW + 15 * 3600)
        assert (tomorrow.now.temperature, str(tomorrow.days[0].date)) == (-4.0, "1970-01-13")


@pytest.mark.parametrize("hours", [23, 11])
async def test_a_whole_day_has_its_low_and_high(server: Replay, web: HttpxWeb, hours: int) -> None:
    steps = [met_step(f"1970-01-12T{hour:02}:00:00Z", hour, one="cloudy") for hour in range(24 - 1 - hours, 24)]
    server.tell(MET, met(*steps))
    (day, _) = (await fetch(web, now=950_400.0 + (23 - hours) * 3600)).weather.days
    assert (day.low, day.high) == ((0.0, 22.0) if hours == 23 else (None, None))


async def test_an_answer_that_does_not_say_when_it_changed_is_asked_for_whole(server: Replay, web: HttpxWeb) -> None:
    server.tell(MET, met())
    first = await fetch(web)
    server.tell(MET, met(met_step("1970-01-12T13:00:00Z", 9.0)), lon="20.00")
    second = await fetch(web, place=replace(OSLO, longitude=20.0), earlier=first)
    assert "If-Modified-Since" not in server.asked[1].headers
    assert second.weather.now.temperature == 9.0


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, ""), (200, {}), (200, "<html>"), (200, {"properties": {"timeseries": []}}),
        (200, {"properties": {"timeseries": [{"time": "1970-01-12T13:00:00Z", "data": {"instant": {}}}]}}),
        (200, met(met_step("1970-01-12T13:00:00", 1.0))),
        (403, "Forbidden: no User-Agent"), (429, ""), (500, "oops"), (304, ""), (422, "lat"),
    ],
)  # fmt: skip
async def test_anything_else_is_a_failure(server: Replay, web: HttpxWeb, status: int, body: Any) -> None:
    server.tell(MET, body, status=status)
    with pytest.raises(SourceFailed, match="MET Norway"):
        await fetch(web)


async def test_the_recorded_answer_is_read(server: Replay, web: HttpxWeb) -> None:
    server.tell_sample(MET, "metno_compact")
    now = 1_791_384_300.0  # 2026-10-07T14:45Z
    weather = (await fetch(web, place=replace(OSLO, zone="Europe/Bratislava"), now=now)).weather
    assert (weather.now.temperature, weather.now.code) == (23.1, 0)
    assert [(day.low, day.high) for day in weather.days] == [
        (None, None),
        (None, None),
    ]  # the sample has afternoons only
