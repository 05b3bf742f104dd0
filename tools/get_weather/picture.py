"""Draws a forecast as a chart, light by day and dark by night. Needs Pillow. Reads only the font,
from the package pylopdf-fonts-zh-cn (Noto Sans SC, SIL Open Font License).

Everything is drawn at twice its size and scaled down, because Pillow does not smooth lines.
"""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from PIL import Image, ImageDraw, ImageFont
from pylopdf_fonts_zh_cn import sans_path

from tools.get_weather.places import Language
from tools.get_weather.report import (
    NAMED_DAYS,
    SHORT_WEEKDAYS,
    Units,
    say_age,
    say_condition,
    say_degrees,
)
from tools.get_weather.weather import Day, Weather

SUN = "#F6A821"
RAIN = "#4A90D9"
BOLT = "#F2B824"


@dataclass(frozen=True, slots=True)
class Brush:
    """An icon's centre and size in pixels, with the theme's colours."""

    draw: ImageDraw.ImageDraw
    x: float
    y: float
    size: float
    cloud: str
    snow: str
    mist: str

    def circle(self, x: float, y: float, radius: float, colour: str) -> None:
        """Coordinates are in units of the size, from the centre."""
        cx, cy, r = self.x + x * self.size, self.y + y * self.size, radius * self.size
        self.draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=colour)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 0.06
    ) -> None:
        """A line with round ends."""
        points = [(self.x + x * self.size, self.y + y * self.size) for x, y in ((x1, y1), (x2, y2))]
        self.draw.line(points, fill=colour, width=max(1, round(width * self.size)))
        for x, y in ((x1, y1), (x2, y2)):
            self.circle(x, y, width / 2, colour)


def draw_icon(code: int | None, brush: Brush) -> None:
    """The icon of a WMO weather code; a dash for an unknown one."""
    ICONS.get(kind_of(code), _unknown)(brush)


def kind_of(code: int | None) -> str:
    """The name of the drawing for a code."""
    return KINDS.get(-1 if code is None else code, "unknown")


def _sun(brush: Brush, x: float = 0.0, y: float = 0.0, radius: float = 0.2) -> None:
    brush.circle(x, y, radius, SUN)
    for step in range(8):
        dx, dy = math.cos(step * math.pi / 4), math.sin(step * math.pi / 4)
        inner, outer = radius + 0.09, radius + 0.19
        brush.line(x + dx * inner, y + dy * inner, x + dx * outer, y + dy * outer, SUN, 0.055)


def _cloud(brush: Brush, x: float = 0.0, y: float = 0.0) -> None:
    for dx, dy, radius in (
        (-0.24, 0.06, 0.15),
        (-0.06, -0.07, 0.2),
        (0.15, -0.01, 0.17),
        (0.27, 0.08, 0.13),
    ):
        brush.circle(x + dx, y + dy, radius, brush.cloud)
    brush.line(x - 0.24, y + 0.11, x + 0.28, y + 0.11, brush.cloud, 0.2)


def _fair(brush: Brush) -> None:
    _sun(brush, 0.13, -0.1, 0.15)
    _cloud(brush, -0.06, 0.12)


def _drops(brush: Brush, count: int) -> None:
    _cloud(brush, 0, -0.12)
    for number in range(count):
        x = (number - (count - 1) / 2) * 0.2
        brush.line(x + 0.04, 0.18, x - 0.04, 0.36, RAIN)


def _flake(brush: Brush, x: float, y: float, radius: float = 0.085) -> None:
    for step in range(3):
        dx, dy = radius * math.cos(step * math.pi / 3), radius * math.sin(step * math.pi / 3)
        brush.line(x - dx, y - dy, x + dx, y + dy, brush.snow, 0.04)


def _snow(brush: Brush, count: int) -> None:
    _cloud(brush, 0, -0.12)
    for number in range(count):
        _flake(brush, (number - (count - 1) / 2) * 0.22, 0.22 + 0.1 * (number % 2))


def _sleet(brush: Brush) -> None:
    _cloud(brush, 0, -0.12)
    brush.line(-0.12, 0.18, -0.2, 0.36, RAIN)
    _flake(brush, 0.16, 0.27)


def _thunder(brush: Brush) -> None:
    _cloud(brush, 0, -0.12)
    brush.line(-0.18, 0.18, -0.26, 0.36, RAIN)
    shape = (
        (0.1, 0.02),
        (-0.07, 0.25),
        (0.04, 0.25),
        (-0.03, 0.46),
        (0.2, 0.17),
        (0.08, 0.17),
        (0.17, 0.02),
    )
    brush.draw.polygon(
        [(brush.x + x * brush.size, brush.y + y * brush.size) for x, y in shape], fill=BOLT
    )


def _mist(brush: Brush) -> None:
    for number, (left, right) in enumerate(((-0.2, 0.3), (-0.34, 0.2), (-0.26, 0.34), (-0.3, 0.1))):
        y = -0.24 + number * 0.16
        brush.line(left, y, right, y, brush.mist, 0.065)


def _unknown(brush: Brush) -> None:
    brush.line(-0.12, 0, 0.12, 0, brush.mist)


ICONS: Mapping[str, Callable[[Brush], None]] = MappingProxyType({
    "sun": _sun,
    "fair": _fair,
    "cloud": _cloud,
    "light rain": lambda brush: _drops(brush, 2),
    "rain": lambda brush: _drops(brush, 3),
    "heavy rain": lambda brush: _drops(brush, 4),
    "light snow": lambda brush: _snow(brush, 2),
    "snow": lambda brush: _snow(brush, 3),
    "sleet": _sleet,
    "thunder": _thunder,
    "mist": _mist,
})  # fmt: skip

KINDS: Mapping[int, str] = MappingProxyType(
    {0: "sun", 1: "fair", 2: "fair", 3: "cloud"}
    | dict.fromkeys((5, 6, 33, 45, 48), "mist")
    | dict.fromkeys((51, 53, 61, 80), "light rain")
    | dict.fromkeys((55, 63, 81), "rain")
    | dict.fromkeys((65, 82), "heavy rain")
    | dict.fromkeys((56, 57, 66, 67, 68), "sleet")
    | dict.fromkeys((71, 77, 85), "light snow")
    | dict.fromkeys((73, 75, 86), "snow")
    | dict.fromkeys((95, 96, 97, 99), "thunder")
)


SCALE = 2
COLUMN = 128
EDGE = 32
NARROWEST = 4 * COLUMN  # room for a title
HEIGHT = 560
CHART = (296, 420)  # top and bottom of the curves, from the warmest to the coldest
MORNING, EVENING = 6, 19


@dataclass(frozen=True, slots=True)
class Theme:
    back: str
    panel: str
    text: str
    muted: str
    high: str
    low: str
    rain: str
    today: str
    cloud: str
    snow: str
    mist: str


LIGHT = Theme(
    back="#EDF2F8", panel="#FFFFFF", text="#1F2A37", muted="#66758A", high="#E4692F", low="#2F7CC4",
    rain="#3A86D0",
    today="#F1F6FC", cloud="#AEBDCE", snow="#6FA8DC", mist="#9FAEBF",
)  # fmt: skip
DARK = Theme(
    back="#10151E", panel="#1A2230", text="#EAF0F7", muted="#95A5BA", high="#FF9A62", low="#6CB4F5",
    rain="#7BBBF7",
    today="#232E40", cloud="#8C9DB3", snow="#CFE4FA", mist="#8193A8",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Canvas:
    """A picture in progress. Coordinates are those of the finished picture."""

    draw: ImageDraw.ImageDraw
    theme: Theme

    def write(
        self, x: float, y: float, text: str, size: int, colour: str, anchor: str = "mm"
    ) -> None:
        self.draw.text((x * SCALE, y * SCALE), text, font=_font(size), fill=colour, anchor=anchor)

    def panel(
        self, left: float, top: float, right: float, bottom: float, colour: str, radius: int = 18
    ) -> None:
        box = (left * SCALE, top * SCALE, right * SCALE, bottom * SCALE)
        self.draw.rounded_rectangle(box, radius * SCALE, fill=colour)

    def curve(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """A line with a dot at each point."""
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self.draw.line(scaled, fill=colour, width=3 * SCALE, joint="curve")
        for x, y in scaled:
            radius = 5.0 * SCALE
            self.draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
            radius = 2.5 * SCALE
            self.draw.ellipse(
                (x - radius, y - radius, x + radius, y + radius), fill=self.theme.panel
            )

    def fit(self, text: str, width: float, sizes: Sequence[int]) -> tuple[str, int]:
        """The largest size in which the text fits; the smallest one may cut its middle."""
        for size in sizes:
            if _width(text, size) <= width:
                return text, size
        size, kept = sizes[-1], len(text)
        while kept > 2 and _width(_shorten(text, kept), size) > width:
            kept -= 1
        return _shorten(text, kept), size


def draw_forecast(
    *,
    title: str,
    weather: Weather,
    units: Units,
    days: int,
    language: Language,
    now_there: dt.datetime,
    age: float = 0.0,
) -> bytes:
    """A PNG of at most seven days. Unknown values are left out. `now_there` is the local time at
    the place, and decides what is today; `age` in seconds is shown from an hour on.
    """
    shown = [day for day in weather.days if day.date >= now_there.date()][:days]
    width = max(NARROWEST, len(shown) * COLUMN) + 2 * EDGE
    theme = LIGHT if MORNING <= now_there.hour < EVENING else DARK
    image = Image.new("RGB", (width * SCALE, HEIGHT * SCALE), theme.back)
    canvas = Canvas(ImageDraw.Draw(image), theme)
    _draw_head(canvas, width, title, weather, units, language)
    canvas.panel(EDGE / 2, 124, width - EDGE / 2, HEIGHT - 44, theme.panel)
    column = (width - 2 * EDGE) / max(1, len(shown))
    middles = [EDGE + column * (index + 0.5) for index in range(len(shown))]
    for x, day in zip(middles, shown, strict=True):
        _draw_day(canvas, x, column, day, now_there.date(), language)
    _draw_curves(canvas, middles, shown, units)
    _draw_foot(canvas, width, weather, age, language)
    finished = image.reduce(SCALE)
    # A quarter of the bytes, without a visible difference.
    finished = finished.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    finished.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _draw_head(
    canvas: Canvas, width: float, title: str, weather: Weather, units: Units, language: Language
) -> None:
    theme, now = canvas.theme, weather.now
    degrees = say_degrees(now.temperature, units)
    condition = say_condition(now.code, now.text, language)
    room = width - 3 * EDGE - max(_width(degrees, 44), _width(condition, 20))
    text, size = canvas.fit(title, room, (34, 30, 26, 22))
    if "…" in text and " (" in title:  # the English title repeats the Chinese one
        text, size = canvas.fit(title.partition(" (")[0], room, (34, 30, 26, 22))
    canvas.write(EDGE, 50, text, size, theme.text, "lm")
    canvas.write(EDGE, 94, f"{now.time:%Y-%m-%d %H:%M}", 18, theme.muted, "lm")
    canvas.write(width - EDGE, 48, degrees, 44, theme.text, "rm")
    canvas.write(width - EDGE, 94, condition, 20, theme.muted, "rm")


def _draw_day(
    canvas: Canvas, x: float, column: float, day: Day, today: dt.date, language: Language
) -> None:
    theme = canvas.theme
    away = (day.date - today).days
    if away == 0:
        canvas.panel(x - column / 2 + 4, 134, x + column / 2 - 4, HEIGHT - 54, theme.today, 14)
    weekday = SHORT_WEEKDAYS[language][day.date.weekday()]
    name = (
        NAMED_DAYS[language][away]
        if away < (len(NAMED_DAYS["zh"]) if language == "zh" else 2)
        else weekday
    )
    canvas.write(x, 158, name.capitalize(), 22, theme.text)
    canvas.write(x, 184, f"{day.date:%m-%d}", 16, theme.muted)
    brush = Brush(
        canvas.draw, x * SCALE, 226 * SCALE, 62 * SCALE, theme.cloud, theme.snow, theme.mist
    )
    draw_icon(day.code, brush)
    condition = say_condition(day.code, day.text, language).partition(" with ")[0].capitalize()
    text, size = canvas.fit(condition, column - 14, (18, 16, 14, 12))
    canvas.write(x, 268, text, size, theme.text)
    if day.rain_chance is not None:
        _draw_rain(canvas, x, f"{day.rain_chance:.0f}%")
    elif day.rain is not None:
        _draw_rain(canvas, x, f"{day.rain:.1f} mm")


def _draw_rain(canvas: Canvas, x: float, text: str) -> None:
    """A drop and a number, centred together."""
    colour, y = canvas.theme.rain, 482
    left = x - (_width(text, 18) + 16) / 2
    points = ((left + 5, y - 10), (left + 0.6, y + 1), (left + 9.4, y + 1))
    canvas.draw.polygon([(px * SCALE, py * SCALE) for px, py in points], fill=colour)
    canvas.draw.ellipse(tuple(v * SCALE for v in (left, y - 3.5, left + 10, y + 6.5)), fill=colour)
    canvas.write(left + 16, y, text, 18, colour, "lm")


def _draw_curves(
    canvas: Canvas, middles: Sequence[float], days: Sequence[Day], units: Units
) -> None:
    figures = [figure for day in days for figure in (day.low, day.high) if figure is not None]
    if not figures:
        return
    coldest, warmest = min(figures), max(figures)
    top, bottom = CHART
    span = max(warmest - coldest, 4.0)  # so that a week without changes looks flat

    def height(celsius: float) -> float:
        return top + 24 + (warmest - celsius) / span * (bottom - top - 24)

    for colour, offset, values in (
        (canvas.theme.high, -18, [day.high for day in days]),
        (canvas.theme.low, 18, [day.low for day in days]),
    ):
        known = [(x, value) for x, value in zip(middles, values, strict=True) if value is not None]
        canvas.curve([(x, height(value)) for x, value in known], colour)
        for x, value in known:
            canvas.write(
                x,
                height(value) + offset,
                say_degrees(value, units, sign=False),
                18,
                canvas.theme.text,
            )


def _draw_foot(
    canvas: Canvas, width: float, weather: Weather, age: float, language: Language
) -> None:
    text = weather.credit
    if age >= 3600:
        text += (
            f"（{say_age(age, language)}前）"
            if language == "zh"
            else f" ({say_age(age, language)} ago)"
        )
    text, size = canvas.fit(text, width - 2 * EDGE, (14, 12))
    canvas.write(width / 2, HEIGHT - 22, text, size, canvas.theme.muted)


def _shorten(text: str, kept: int) -> str:
    """Keep the beginning and end of a path, which say most."""
    if kept >= len(text):
        return text
    head = kept // 2
    return f"{text[:head]}…{text[len(text) - (kept - head) :]}"


def _width(text: str, size: int) -> float:
    return _font(size).getlength(text) / SCALE


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(sans_path(), size * SCALE)
