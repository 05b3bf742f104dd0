"""The chart: that it is drawn whatever the figures are, and sent. What it looks like was checked by eye."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from PIL import Image, ImageDraw

from bot.core.segments import SendSegment
from frostagent.types.errors import ToolDenied
from frostagent.types.speech import Attachment, Confirmed, Queued, Receipt, Refused, Unknown
from tests.adapters.fetching.replay import Replay
from tests.cases import each_case
from tests.tools.get_weather.bodies import FORECAST, forecast
from tools.get_weather.picture import DARK, HEIGHT, ICONS, KINDS, LIGHT, Brush, Theme, draw_forecast, draw_icon, kind_of
from tools.get_weather.places import Language
from tools.get_weather.report import Units
from tools.get_weather.weather import CODES, Day, Now, Weather

GetWeather = Callable[..., Awaitable[str]]

BEIJING_HERE = "北京市 (39.90, 116.41)"
TODAY = dt.date(2026, 11, 21)
LONG = "新疆维吾尔自治区克孜勒苏柯尔克孜自治州阿图什市" * 3


def week(*days: Day, hour: int = 12, text: str = "") -> Weather:
    time = dt.datetime.combine(TODAY, dt.time(hour))
    now = Now(time=time, code=71, text=text, temperature=-12.34)
    return Weather(now=now, days=days, zone="Asia/Shanghai", credit="somebody")


def day(away: int, low: float | None = -30.0, high: float | None = 5.0, code: int | None = 3) -> Day:
    return Day(date=TODAY + dt.timedelta(days=away), code=code, low=low, high=high, rain_chance=40)


def draw(
    weather: Weather,
    *,
    title: str = "北京市",
    days: int = 7,
    language: Language = "zh",
    units: Units = "metric",
    age: float = 0,
) -> Image.Image:
    now_there = weather.now.time + dt.timedelta(seconds=age)
    png = draw_forecast(
        title=title, weather=weather, units=units, days=days, language=language, now_there=now_there, age=age
    )
    assert len(png) < 100_000
    return Image.open(io.BytesIO(png)).convert("RGB")


def colour(text: str) -> tuple[int, ...]:
    return tuple(int(text[index : index + 2], 16) for index in (1, 3, 5))


def is_near(pixel: object, wanted: str) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(one - other) <= 8 for one, other in zip(pixel, colour(wanted), strict=True))


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_it_is_as_wide_as_its_days(count: int) -> None:
    picture = draw(week(*map(day, range(7))), days=count)
    assert picture.format is None or picture.format == "PNG"
    assert picture.size == (max(4, count) * 128 + 64, HEIGHT)


@each_case(("hour", "theme"), [(5, DARK), (6, LIGHT), (18, LIGHT), (19, DARK), (23, DARK)])
def test_it_is_light_by_day_and_dark_by_night(hour: int, theme: Theme) -> None:
    picture = draw(week(day(0), day(1), hour=hour))
    assert is_near(picture.getpixel((2, 2)), theme.back)


def test_the_hour_that_counts_is_now_and_not_that_of_the_observation() -> None:
    assert is_near(draw(week(day(0), hour=17), age=3 * 3600).getpixel((2, 2)), DARK.back)


@pytest.mark.parametrize("title", ["北京市", LONG, "Nanjing, Jiangsu, China (江苏省南京市)", "", "a" * 200])
@pytest.mark.parametrize(("language", "units"), [("zh", "metric"), ("en", "imperial")])
def test_any_title_fits(title: str, language: Language, units: Units) -> None:
    picture = draw(week(day(0), day(1)), title=title, language=language, units=units)
    right = picture.crop((picture.width - 12, 0, picture.width, 110))
    assert len(right.getcolors(100_000) or []) == 1  # nothing is written over the edge


def test_figures_that_are_missing_are_left_out() -> None:
    draw(week(day(0, None, None, None), day(1, None, 3), day(2, 2, None)))
    draw(week())
    draw(week(Day(date=TODAY), Day(date=TODAY + dt.timedelta(days=1), rain=1.25)))


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-40, -39.5), (-60, 60), (20, 20)])
def test_extremes_stay_inside(low: float, high: float) -> None:
    picture = draw(week(*(day(away, low, high) for away in range(7))))
    below = picture.crop((0, HEIGHT - 40, picture.width, HEIGHT - 36))
    assert len(below.getcolors(100_000) or []) == 1


def test_long_words_of_a_source_are_made_to_fit() -> None:
    draw(week(Day(date=TODAY, code=96, text="雷阵雨伴有冰雹转特大暴雨转雨夹雪"), day(1), text="大暴雨到特大暴雨"))


def test_days_that_are_over_are_not_drawn() -> None:
    picture = draw(week(day(-1), day(0), day(1), day(2), day(3)), days=7)
    assert picture.width == 4 * 128 + 64


# --- sending it ------------------------------------------------------------------------------------


class Mouth:
    """A speaker that remembers what it said, and answers as it is told."""

    def __init__(self, *receipts: Receipt, denies: bool = False) -> None:
        self.receipts = receipts
        self.denies = denies
        self.said: list[tuple[SendSegment, ...]] = []

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        assert session == ""
        if self.denies:
            raise ToolDenied("muted")
        self.said.append(segments)
        return self.receipts


async def test_a_picture_is_sent_where_it_is_wanted(server: Replay, ask: GetWeather) -> None:
    server.tell(FORECAST, forecast())
    mouth = Mouth(Confirmed("9001"))
    answer = await ask(speaker=mouth, city="北京", picture=True)
    assert answer.endswith("(A picture of this forecast has been sent to the chat; do not send it again.)")
    [(attachment,)] = mouth.said
    assert isinstance(attachment, Attachment)
    assert (attachment.kind, attachment.name) == ("image", "weather.png")
    scheme, _, data = attachment.source.partition("://")
    assert scheme == "base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).format == "PNG"


@pytest.mark.parametrize("more", [{}, {"picture": True, "days": 1}, {"picture": True, "day": "tomorrow"}])
async def test_no_picture_of_one_day_or_unasked(server: Replay, ask: GetWeather, more: dict[str, Any]) -> None:
    server.tell(FORECAST, forecast())
    mouth = Mouth(Confirmed("9001"))
    answer = await ask(speaker=mouth, city="北京", **more)
    assert mouth.said == []
    assert "picture" not in answer


@pytest.mark.parametrize(
    ("mouth", "told"),
    [
        (Mouth(Unknown("timed out")), "may arrive later"),
        (Mouth(Queued("away")), "may arrive later"),
        (Mouth(Refused("muted")), "was not delivered"),
        (Mouth(), "was not delivered"),
        (Mouth(denies=True), "was not sent: muted"),
        (None, "No picture could be sent from here"),
    ],
)
async def test_a_picture_that_does_not_arrive_takes_nothing_from_the_answer(
    server: Replay, ask: GetWeather, mouth: Mouth | None, told: str
) -> None:
    server.tell(FORECAST, forecast())
    answer = await ask(speaker=mouth, city="北京", picture=True)
    assert BEIJING_HERE in answer
    assert told in answer


async def test_the_loop_goes_on_while_a_picture_is_drawn(server: Replay, ask: GetWeather) -> None:
    """Drawing is work for a thread: the loop turns meanwhile."""
    server.tell(FORECAST, forecast())
    await ask(speaker=Mouth(Confirmed("1")), city="北京", picture=True)  # what is loaded once is loaded
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        await ask(speaker=Mouth(Confirmed("1")), city="北京", picture=True)
        ticking.cancel()
    assert turns > 20


def test_every_code_has_a_drawing() -> None:
    assert {kind_of(code) for code in CODES} == set(ICONS)
    assert set(KINDS) == set(CODES)
    assert kind_of(None) == kind_of(42) == "unknown"


@each_case("code", [*CODES, None])
def test_a_drawing_stays_inside_its_square(code: int | None) -> None:
    image = Image.new("RGB", (120, 120), "#000000")
    brush = Brush(ImageDraw.Draw(image), 60, 60, 100, cloud="#AAAAAA", snow="#FFFFFF", mist="#888888")
    draw_icon(code, brush)
    box = image.getbbox()
    assert box is not None
    assert box[0] >= 10 <= box[1]
    assert box[2] <= 110 >= box[3]
