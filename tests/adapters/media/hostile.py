"""Pictures made to do harm, and what is none, made when a test asks: nothing of it lies in the repository."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from PIL import Image

SIDE: Final = 40
RED: Final = (255, 0, 0)


def encoded(kind: str, *, side: int = SIDE, **options: Any) -> bytes:
    """An honest picture of one colour."""
    return written(Image.new("RGB", (side, side), RED), kind, **options)


def written(picture: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def noise(side: int, kind: str, **options: Any) -> bytes:
    return written(Image.effect_noise((side, side), 50).convert("RGB"), kind, **options)


# --- JPEG -----------------------------------------------------------------------------------------


def scans(count: int, *, size: tuple[int, int] = (SIDE, SIDE)) -> bytes:
    """A progressive JPEG with its last scan again and again: each one is work over the whole picture."""
    jpeg = written(Image.new("RGB", size, RED), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    scan = jpeg[last:-2]
    return jpeg[:-2] + scan * (count - jpeg.count(b"\xff\xda")) + jpeg[-2:]


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def with_segments(*segments: bytes) -> bytes:
    jpeg = encoded("JPEG")
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def exif(entries: int, *, next_ifd: int = 0) -> bytes:
    """An EXIF with so many tags, each of which says that it is four gigabytes long; its directory may be a circle."""
    tags = b"".join(struct.pack(">HHII", 0x100 + n % 0xF000, 2, 0xFFFFFFFF, 8) for n in range(entries))
    tiff = b"MM\0*" + struct.pack(">IH", 8, entries) + tags + struct.pack(">I", next_ifd)
    return with_segments(segment(0xE1, b"Exif\0\0" + tiff))


def icc_in_jpeg() -> bytes:
    """255 pieces of a colour profile, 16 MB in all, each with the length of another."""
    head = struct.pack(">I", 0xFFFFFFFF)
    parts = (segment(0xE2, b"ICC_PROFILE\0" + bytes([n, 255]) + head + bytes(65_000)) for n in range(1, 256))
    return with_segments(*parts)


# --- PNG ------------------------------------------------------------------------------------------


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(*chunks: bytes, width: int = SIDE, height: int = SIDE, behind: bytes = b"") -> bytes:
    """A grey PNG with further chunks in front of its dots and behind them."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    dots = zlib.compress(bytes(min((width + 1) * height, 10_000)))
    parts = chunk(b"IHDR", head), *chunks, chunk(b"IDAT", dots), behind, chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def zeros(size: int) -> bytes:
    """So many zeros, deflated, without ever being unpacked here."""
    packer = zlib.compressobj(9)
    pieces = [packer.compress(bytes(2**20)) for _ in range(size // 2**20)]
    return b"".join(pieces) + packer.flush()


def text_bomb(kind: bytes, *, behind: bool = False) -> bytes:
    """A text (or a colour profile) of 32 MiB in 32 KiB; of texts several."""
    heads = {b"zTXt": b"a\0\0", b"iTXt": b"a\0\1\0\0\0", b"iCCP": b"a\0\0"}
    bombs = chunk(kind, heads[kind] + zeros(32 * 2**20)) * (1 if kind == b"iCCP" else 8)
    return png(behind=bombs) if behind else png(bombs)


def apng(frames: int) -> bytes:
    control = struct.pack(">IIIIIHHBB", 0, 1, 1, 0, 0, 1, 10, 0, 0)
    dots = zlib.compress(bytes(2))
    first = chunk(b"acTL", struct.pack(">II", frames, 0))
    more = b"".join(chunk(b"fcTL", control) + chunk(b"fdAT", struct.pack(">I", n) + dots) for n in range(frames))
    return png(first, behind=more)


# --- others ---------------------------------------------------------------------------------------


def gif(frames: int) -> bytes:
    """A GIF of one frame many times."""
    whole = encoded("GIF")
    start = 13 + 3 * 2 ** ((whole[10] & 7) + 1)
    return whole[:start] + whole[start:-1] * frames + b";"


def gif_of(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + encoded("GIF")[10:]


def webp_of(width: int, height: int) -> bytes:
    """A WebP that says so of its canvas; its own decoder wants memory for that before anybody can look."""
    image = encoded("WEBP")[12:]
    canvas = struct.pack("<I", 0)[:4] + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + b"VP8X" + struct.pack("<I", len(canvas)) + canvas + image
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bmp_of(width: int, height: int, *, compression: int = 0) -> bytes:
    whole = bytearray(encoded("BMP"))
    whole[18:26] = struct.pack("<ii", width, height)
    whole[30:34] = struct.pack("<I", compression)
    return bytes(whole)


def garbage(head: bytes) -> bytes:
    return head + random.Random(head).randbytes(20_000)  # the same each time


def truncated(kind: str) -> bytes:
    whole = noise(200, kind)
    return whole[: len(whole) // 2]


HARMFUL: Final[dict[str, Callable[[], bytes]]] = {
    "3,000 progressive scans": lambda: scans(3000),
    "3,000 scans of a large picture": lambda: scans(3000, size=(6000, 5000)),
    "50,000 x 50,000 PNG": lambda: png(width=50_000, height=50_000),
    "50,000 x 50,000 GIF": lambda: gif_of(50_000, 50_000),
    "50,000 x 50,000 BMP": lambda: bmp_of(50_000, 50_000),
    "BMP that stands on its head": lambda: bmp_of(50_000, -(2**31)),
    "BMP packed without end": lambda: bmp_of(30_000, 30_000, compression=1),
    "16,383 x 16,383 WebP": lambda: webp_of(16_383, 16_383),
    "2**31 dots a side": lambda: png(width=2**31 - 1, height=2**31 - 1),
    "no dots": lambda: png(width=0, height=0),
    "colour profile of 32 MiB in a PNG": lambda: text_bomb(b"iCCP"),
    "zTXt of 32 MiB": lambda: text_bomb(b"zTXt"),
    "iTXt of 32 MiB": lambda: text_bomb(b"iTXt"),
    "truncated JPEG": lambda: truncated("JPEG"),
    "truncated PNG": lambda: truncated("PNG"),
    "truncated GIF": lambda: truncated("GIF"),
    "truncated WebP": lambda: truncated("WEBP"),
    "garbage behind the first bytes of a JPEG": lambda: garbage(b"\xff\xd8\xff\xe0"),
    "garbage behind the first bytes of a PNG": lambda: garbage(b"\x89PNG\r\n\x1a\n"),
    "garbage behind the first bytes of a GIF": lambda: garbage(b"GIF89a"),
    "garbage behind the first bytes of a WebP": lambda: garbage(b"RIFF\xff\xff\xff\x7fWEBPVP8X"),
}
"""What must be refused, whatever it costs the process that tries."""

TIRING: Final[dict[str, Callable[[], bytes]]] = {
    "APNG of 10,000 frames": lambda: apng(10_000),
    "GIF of 10,000 frames": lambda: gif(10_000),
    "EXIF of 5,000 endless tags": lambda: exif(5000),
    "EXIF in a circle": lambda: exif(1, next_ifd=8),
    "colour profile of 16 MB in a JPEG": icc_in_jpeg,
    "zTXt behind the dots": lambda: text_bomb(b"zTXt", behind=True),
    "something behind the end": lambda: encoded("JPEG") + b"PK\3\4" + bytes(100_000),
}
"""What may be shown or refused, but quickly."""


def tiff() -> bytes:
    return written(Image.new("RGB", (SIDE, SIDE), RED), "TIFF")


FOREIGN: Final[dict[str, Callable[[], bytes]]] = {
    "TIFF in a .jpg": tiff,
    "SVG": lambda: b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    "SVG with a preamble": lambda: b'<?xml version="1.0"?>\n<!DOCTYPE svg [<!ENTITY a "b">]>\n<svg width="9"/>',
    "web page": lambda: b"<!DOCTYPE html><html><body>login</body></html>",
    "zip": lambda: b"PK\3\4" + bytes(100),
    "AVIF": lambda: b"\0\0\0\x1cftypavif" + bytes(100),
    "HEIC": lambda: b"\0\0\0\x1cftypheic" + bytes(100),
    "PSD": lambda: b"8BPS\0\1" + bytes(100),
    "ICO": lambda: b"\0\0\1\0\1\0" + bytes(100),
    "JPEG 2000": lambda: b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(100),
    "PostScript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n",
    "PDF": lambda: b"%PDF-1.7\n",
    "program": lambda: b"MZ\x90\0" + bytes(100),
    "sound": lambda: b"RIFF\x24\0\0\0WAVEfmt " + bytes(100),
    "text": lambda: b'{"retcode":-5503007,"retmsg":"download url has expired"}',
    "nothing": lambda: b"",
    "one byte": lambda: b"\xff",
}
"""What is no picture that we read, whatever it is called: not even tried."""


def every() -> Iterator[tuple[str, bytes]]:
    for table in (HARMFUL, TIRING, FOREIGN):
        for name, make in table.items():
            yield name, make()
