"""The program that decodes images of strangers: `python -m adapters.media.decoder`.

A decoder is C code that reads arbitrary input, so it runs where little can be lost: a process
without secrets, without files to write, with bounded memory and time. The bot's side,
`adapters/media/decoder_process.py`, kills it if it takes too long; it dies with the bot.

Input: images, each after its length (four bytes, big-endian). Output: for each one a byte (0: a
JPEG, 1: an error), a length, and the JPEG or error. It ends with its input, or after an idle time.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
import select
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from PIL import ExifTags, Image
from PIL.Image import Transpose

from adapters.media.decoder_protocol import ANSWER, HEAD, REFUSED, SHOWN
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


if sys.platform != "win32":
    import resource

MEMORY = (
    448 * 2**20
)  # bytes of address space: 32 megapixels take up to 380 MiB (WebP: only 24 megapixels fit)
CPU = 4  # seconds for one image; 32 megapixels take one or two
FILES = 32

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, SIGKILL = 1, 4, 38, 9


def main() -> None:
    """Answer until the input ends. Arguments: idle seconds, and the parent's process id."""
    idle, parent = float(sys.argv[1]), int(sys.argv[2])
    confine()
    # The parent died before the death signal was set. On Windows a launcher is in between.
    if sys.platform != "win32" and os.getppid() != parent:
        return
    serve(sys.stdin.fileno(), sys.stdout.fileno(), idle=idle)


def serve(source: int, sink: int, *, idle: float) -> None:
    """Answer each image from one file descriptor on another."""
    while (data := _read_one(source, idle)) is not None:
        _allow_time()
        try:
            kind, answer = SHOWN, write_jpeg(data)
        except MediaError as error:
            kind, answer = REFUSED, str(error).encode()
        _write_all(sink, ANSWER.pack(kind, len(answer)) + answer)


def confine() -> None:
    """Drop the privileges a decoder does not need. No effect on Windows."""
    if sys.platform == "linux":
        _confine_linux()
    if sys.platform != "win32":
        for what, most in (
            (resource.RLIMIT_AS, MEMORY),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, FILES),
        ):
            _, hard = resource.getrlimit(what)
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (bound, bound))


def _confine_linux() -> None:
    """Die with the parent, and first if memory is short; gain no privileges."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # if the interpreter is unreadable (Dockerfile), the file below would be root's
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _allow_time() -> None:
    """Allow CPU more seconds of processor time; beyond that the kernel kills this process."""
    if sys.platform != "win32":
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + CPU
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def _read_one(source: int, idle: float) -> bytes | None:
    """Return the next image; None after the idle time, or at the end of input."""
    # Windows cannot wait for a pipe, so only the end of input counts.
    if sys.platform != "win32" and not select.select([source], [], [], idle)[0]:
        return None
    head = _read_exactly(source, HEAD.size)
    return None if head is None else _read_exactly(source, HEAD.unpack(head)[0])


def _read_exactly(source: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = os.read(source, min(size - len(data), 2**20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _write_all(sink: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(sink, rest) :]


if __name__ == "__main__":
    main()
