"""The program that decodes images of strangers: `python -m adapters.media.decoder`.

A decoder is C that reads whatever anybody sends: `adapters/media/confined.py` says how it lives.
The bot's side of it is `adapters/media/decoder_process.py`.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Mapping

from PIL import ExifTags, Image
from PIL.Image import Transpose

from adapters.media import confined
from adapters.media.formats import picture_kind
from frostagent.types.errors import MediaError

MAX_PIXELS = 32_000_000  # decoded, four bytes each; more than most phones' photos have
LONGEST = 1568  # pixels of a side,
AREA = 1_150_000  # and in all: vendors shrink larger ones to this, about a thousand tokens
SMALLEST = 11  # pixels of a side; some vendors refuse narrower images
QUALITY = 85


# Passes over the whole image. Cameras and editors write about ten; each costs as much as an image.
MAX_SCANS = 64
MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # no stuffed byte, no padding, no restart marker

UPRIGHT: Mapping[object, Transpose] = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""Undoes each EXIF orientation."""


def write_jpeg(data: bytes) -> bytes:
    """Convert the image (the first of several) to an upright JPEG. Raises MediaError.

    It has at most 1568 pixels per side and 1.15 million in all; transparency becomes white.
    """
    kind = picture_kind(data)
    if not kind:
        raise MediaError("it is no picture")
    if kind == "JPEG" and count_scans(data) > MAX_SCANS:
        raise MediaError(f"it has more than {MAX_SCANS} scans, which no camera writes")
    try:
        return _shrink(data, kind)
    except MediaError:
        raise
    except Image.DecompressionBombError as error:
        raise MediaError("it has far too many dots to unpack") from error
    # decoders raise anything: SyntaxError, struct.error, EOFError ...
    except Exception as error:
        raise MediaError(f"it cannot be read ({type(error).__name__})") from error


def count_scans(jpeg: bytes) -> int:
    """Count the scans of a JPEG, stopping above MAX_SCANS.

    Segments are skipped by their length, so thumbnails do not count, nor does anything after the
    end.
    """
    at, scans = 2, 0
    while scans <= MAX_SCANS and (marker := MARKER.search(jpeg, at)):
        at = marker.end()
        code = jpeg[at - 1]
        if code == 0xD9:  # end of image
            break
        if code == 0xDA:
            scans += 1
        if code not in {0x01, 0xD8}:
            at += int.from_bytes(jpeg[at : at + 2], "big")
    return scans


def _shrink(data: bytes, kind: str) -> bytes:
    with Image.open(io.BytesIO(data), formats=(kind,)) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            raise MediaError(f"it is {opened.width} x {opened.height} dots, too many to unpack")
        size = _fit(opened.width, opened.height)
        if min(size) < SMALLEST:
            raise MediaError(f"it is too narrow to be seen, {opened.width} x {opened.height} dots")
        opened.draft("RGB", size)  # decodes a JPEG at a fraction of its size, which is much faster
        mode = "RGBA" if opened.has_transparency_data else "RGB"
        unpacked = opened if opened.mode == mode else opened.convert(mode)
        small = unpacked.resize(size, reducing_gap=2.0)
        turn = UPRIGHT.get(_orientation(opened))
    return _as_jpeg(small if turn is None else small.transpose(turn))


def _fit(width: int, height: int) -> tuple[int, int]:
    """The size within both limits."""
    scale = min(1.0, LONGEST / max(width, height), (AREA / (width * height)) ** 0.5)
    return max(1, int(width * scale)), max(1, int(height * scale))


def _orientation(opened: Image.Image) -> object:
    """The EXIF orientation; None if unreadable, which is no error."""
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
    picture.info.clear()  # removes comments, profiles and EXIF
    picture.save(written, "JPEG", quality=QUALITY)
    return written.getvalue()


MEMORY = (
    448 * 2**20
)  # bytes of address space: 32 million dots take up to 380 MiB (of WebP only 24 million fit)
CPU = 4  # seconds for one picture; one of 32 million dots takes one or two


def main() -> None:
    """Answer each picture with a JPEG."""
    confined.main(write_jpeg, memory=MEMORY, cpu=CPU)


if __name__ == "__main__":
    main()
