"""Pictures as models take them: JPEG of moderate size, as data urls. No I/O; slow for large ones, so not for the loop.

What comes is anybody's: its kind is told by its first bytes and only that decoder is let near it, its size is looked at
before it is unpacked, and nothing of it but the dots goes on (no EXIF: it may say where somebody lives). Needs Pillow.
"""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Mapping

from PIL import ExifTags, Image
from PIL.Image import Transpose

from bot.domain.errors import MediaError

MAX_PIXELS = 32_000_000  # unpacked, four bytes each; more than most phones' pictures have
LONGEST = 1568  # dots of a side,
AREA = 1_150_000  # and in all: what vendors make of larger ones anyway, and about a thousand tokens
SMALLEST = 11  # dots of a side; narrower ones are refused by some vendors
QUALITY = 85

SIGNATURES = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
)

UPRIGHT: Mapping[object, Transpose] = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""What undoes each orientation that EXIF knows."""


def kind_of(data: bytes) -> str:
    """Pillow's name for what these bytes begin as; empty for what is no picture that we read."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    return next((kind for signature, kind in SIGNATURES if data.startswith(signature)), "")


def write_data_url(data: bytes) -> str:
    """The picture (of several: the first) as a data url of a JPEG, upright. Raises MediaError.

    It has at most 1568 dots a side and 1.15 million in all; what was transparent is white.
    """
    kind = kind_of(data)
    if not kind:
        raise MediaError("it is no picture")
    try:
        jpeg = _shrink(data, kind)
    except MediaError:
        raise
    except Exception as error:  # decoders raise whatever they stumble over: SyntaxError, struct.error, EOFError ...
        raise MediaError(f"it cannot be read ({type(error).__name__})") from error
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")


def _shrink(data: bytes, kind: str) -> bytes:
    with Image.open(io.BytesIO(data), formats=(kind,)) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            raise MediaError(f"it is {opened.width} x {opened.height} dots, too many to unpack")
        size = _fit(opened.width, opened.height)
        if min(size) < SMALLEST:
            raise MediaError(f"it is too narrow to be seen, {opened.width} x {opened.height} dots")
        opened.draft("RGB", size)  # a JPEG is unpacked at a fraction of its size, which is much faster
        mode = "RGBA" if opened.has_transparency_data else "RGB"
        unpacked = opened if opened.mode == mode else opened.convert(mode)
        small = unpacked.resize(size, reducing_gap=2.0)
        turn = UPRIGHT.get(_orientation(opened))
    return _as_jpeg(small if turn is None else small.transpose(turn))


def _fit(width: int, height: int) -> tuple[int, int]:
    """Its own size, or what both bounds leave of it."""
    scale = min(1.0, LONGEST / max(width, height), (AREA / (width * height)) ** 0.5)
    return max(1, int(width * scale)), max(1, int(height * scale))


def _orientation(opened: Image.Image) -> object:
    """How the camera was held; None where that cannot be read, which is no reason not to look."""
    try:
        return opened.getexif().get(ExifTags.Base.Orientation)
    except (EOFError, LookupError, OSError, SyntaxError, TypeError, ValueError, struct.error):
        return None


def _as_jpeg(picture: Image.Image) -> bytes:
    if picture.mode == "RGBA":
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture.getchannel("A"))
        picture = white
    written = io.BytesIO()
    picture.info.clear()  # comments, profiles, EXIF
    picture.save(written, "JPEG", quality=QUALITY)
    return written.getvalue()
