"""Small drawings of the weather, made of circles and lines: no pictures of others, no licence.
Needs Pillow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from PIL import ImageDraw

SUN = "#F6A821"
RAIN = "#4A90D9"
BOLT = "#F2B824"


@dataclass(frozen=True, slots=True)
class Brush:
    """Where to draw: the middle of the icon and its size in pixels; `cloud`, `snow` and `mist` are
    the theme's.
    """

    draw: ImageDraw.ImageDraw
    x: float
    y: float
    size: float
    cloud: str
    snow: str
    mist: str

    def circle(self, x: float, y: float, radius: float, colour: str) -> None:
        """In parts of the size, from the middle."""
        cx, cy, r = self.x + x * self.size, self.y + y * self.size, radius * self.size
        self.draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=colour)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 0.06
    ) -> None:
        """With round ends."""
        points = [(self.x + x * self.size, self.y + y * self.size) for x, y in ((x1, y1), (x2, y2))]
        self.draw.line(points, fill=colour, width=max(1, round(width * self.size)))
        for x, y in ((x1, y1), (x2, y2)):
            self.circle(x, y, width / 2, colour)


def draw_icon(code: int | None, brush: Brush) -> None:
    """The icon of a WMO weather code; a dash for one nobody knows."""
    ICONS.get(kind_of(code), _unknown)(brush)


def kind_of(code: int | None) -> str:
    """Which drawing stands for a code."""
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
