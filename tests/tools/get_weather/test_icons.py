"""The small drawings."""

from __future__ import annotations

from PIL import Image, ImageDraw

from tests.cases import each_case
from tools.get_weather.picture import ICONS, KINDS, Brush, draw_icon, kind_of
from tools.get_weather.weather import CODES


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
