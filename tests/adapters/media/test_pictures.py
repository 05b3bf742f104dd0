from __future__ import annotations

import base64
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ExifTags, Image

from adapters.media.pictures import AREA, LONGEST, MAX_PIXELS, kind_of, write_data_url
from bot.domain.errors import MediaError

BEGINNING = "data:image/jpeg;base64,"
RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)


def encoded(picture: Image.Image, kind: str, **options: object) -> bytes:
    written = io.BytesIO()
    picture.save(written, kind, **options)
    return written.getvalue()


def seen(data: bytes) -> Image.Image:
    """The picture that a model would see."""
    url = write_data_url(data)
    assert url.startswith(BEGINNING)
    picture = Image.open(io.BytesIO(base64.b64decode(url.removeprefix(BEGINNING))), formats=("JPEG",))
    picture.load()
    return picture


def is_about(picture: Image.Image, place: tuple[int, int], colour: tuple[int, int, int]) -> bool:
    dot = picture.getpixel(place)
    assert isinstance(dot, tuple)
    return all(abs(one - other) < 20 for one, other in zip(dot, colour, strict=True))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP"])
def test_each_kind_that_qq_sends_is_known_by_its_first_bytes_and_becomes_a_jpeg(kind: str) -> None:
    data = encoded(Image.new("RGB", (64, 48), RED), kind)
    assert kind_of(data) == kind
    picture = seen(data)
    assert picture.size == (64, 48)
    assert is_about(picture, (30, 20), RED)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "CMYK", "YCbCr"])
def test_any_way_to_write_colours_can_be_read(mode: str) -> None:
    kind = "JPEG" if mode in {"CMYK", "YCbCr"} else "PNG"
    assert seen(encoded(Image.new(mode, (20, 20)), kind)).mode == "RGB"


def test_of_pictures_that_move_the_first_is_shown() -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in (RED, BLUE)]
    for kind in ("GIF", "WEBP", "PNG"):
        assert is_about(seen(encoded(frames[0], kind, save_all=True, append_images=frames[1:])), (10, 10), RED)


@pytest.mark.parametrize("size", [(3000, 3000), (6000, 1000), (1080, 2400), (3000, 100)])
def test_a_large_picture_becomes_one_of_moderate_size_and_keeps_its_shape(size: tuple[int, int]) -> None:
    picture = seen(encoded(Image.new("RGB", size), "JPEG"))
    assert max(picture.size) <= LONGEST
    assert picture.width * picture.height <= AREA
    assert picture.width / picture.height == pytest.approx(size[0] / size[1], rel=0.05)


def test_what_is_transparent_is_white() -> None:
    picture = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    picture.paste((*BLUE, 255), (20, 0, 40, 40))
    shown = seen(encoded(picture, "PNG"))
    assert is_about(shown, (5, 20), WHITE)
    assert is_about(shown, (35, 20), BLUE)


def test_a_picture_stands_upright_and_tells_nothing_else_of_its_camera() -> None:
    picture = Image.new("RGB", (64, 32), RED)
    picture.paste(BLUE, (0, 0, 32, 32))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    exif[ExifTags.Base.Make] = "Someone's phone"
    shown = seen(encoded(picture, "JPEG", exif=exif, comment=b"at home"))
    assert shown.size == (32, 64)
    assert is_about(shown, (16, 8), BLUE)
    assert is_about(shown, (16, 56), RED)
    assert not shown.getexif()
    assert "comment" not in shown.info


@pytest.mark.filterwarnings("ignore:.*EXIF:UserWarning", "ignore:Truncated File Read:UserWarning")
def test_exif_that_cannot_be_read_is_no_reason_not_to_look() -> None:
    data = encoded(Image.new("RGB", (20, 20)), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert seen(data).size == (20, 20)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b'{"retcode":-5503007,"retmsg":"download url has expired"}',
        b"%PDF-1.7",
        b"<svg/>",
        b"RIFFxxxxWAVE",
    ],
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(MediaError, match="no picture"):
        write_data_url(data)


def test_a_picture_that_was_cut_off_is_refused() -> None:
    whole = encoded(Image.effect_noise((200, 200), 50), "PNG")
    with pytest.raises(MediaError, match="cannot be read"):
        write_data_url(whole[: len(whole) // 2])


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is so large; nobody gets as far as its dots."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    dots = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", dots) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(8000, MAX_PIXELS // 8000 + 1), (10_000, 10_000), (60_000, 60_000)])
def test_a_picture_of_too_many_dots_is_refused_before_it_is_unpacked(size: tuple[int, int]) -> None:
    with pytest.raises(MediaError):
        write_data_url(bomb(*size))


@pytest.mark.parametrize("size", [(1, 1), (10, 300), (20_000, 12)])
def test_a_picture_too_narrow_to_be_seen_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(MediaError, match="too narrow"):
        write_data_url(encoded(Image.new("RGB", size), "PNG"))


GOOD = [encoded(Image.effect_noise((30, 30), 50).convert("P"), kind) for kind in ("PNG", "GIF")] + [
    encoded(Image.effect_noise((30, 30), 50), kind) for kind in ("JPEG", "WEBP", "BMP")
]


@given(st.sampled_from(GOOD), st.lists(st.tuples(st.floats(0, 0.999), st.binary(min_size=1, max_size=4)), max_size=6))
def test_whatever_comes_is_shown_or_refused(data: bytes, damage: list[tuple[float, bytes]]) -> None:
    broken = bytearray(data)
    for place, other in damage:
        at = int(place * len(broken))
        broken[at : at + len(other)] = other
    try:
        url = write_data_url(bytes(broken))
    except MediaError:
        return
    assert url.startswith(BEGINNING)
