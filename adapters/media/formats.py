"""Determines a file's format by its first bytes alone. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bot.core.filenames import clean_name, split_ending
from frostagent.types.speech import MediaKind

HEAD: Final = 512  # bytes that are read


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name for people, the kind it may be sent as, and its file endings, the usual
    one first.

    Formats whose names are better left alone have no endings: a program named .pdf does not run
    when opened.
    """

    name: str
    kind: MediaKind
    endings: tuple[str, ...] = ()


def _format(name: str, kind: MediaKind, *endings: str) -> Format:
    return Format(name, kind, endings)


JPEG = _format("JPEG", "image", ".jpg", ".jpeg", ".jfif")
PNG = _format("PNG", "image", ".png", ".apng")
GIF = _format("GIF", "image", ".gif")
WEBP = _format("WEBP", "image", ".webp")
BMP = _format("BMP", "image", ".bmp", ".dib")
MP4 = _format("MP4", "video", ".mp4", ".m4v", ".mov", ".3gp", ".3g2")
M4A = _format("M4A", "record", ".m4a", ".m4b", ".mp4")
ZIP = _format("a ZIP archive", "file")  # also docx, xlsx, pptx and epub
OLE = _format("an OLE file", "file")  # Office before 2007, and encrypted Office documents

# First bytes -> format. Only images, voice and video are sent as such; the others are listed for
# the readers of documents and for errors.
SIGNATURES: Final[tuple[tuple[re.Pattern[bytes], Format], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), found)
    for pattern, found in (
        (rb"\xff\xd8\xff", JPEG),
        (rb"\x89PNG\r\n\x1a\n", PNG),
        (rb"GIF8[79]a", GIF),
        (rb"RIFF.{4}WEBP", WEBP),
        (rb"BM.{4}\0\0\0\0", BMP),
        (rb"\x02?#!SILK", _format("silk", "record", ".silk", ".amr", ".slk")),
        (rb"#!AMR", _format("AMR", "record", ".amr")),
        (rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", _format("MP3", "record", ".mp3")),
        (rb"\xff[\xf0\xf1\xf8\xf9]", _format("AAC", "record", ".aac")),
        (rb"RIFF.{4}WAVE", _format("WAV", "record", ".wav")),
        (rb"OggS", _format("Ogg", "record", ".ogg", ".oga", ".opus", ".ogv")),
        (rb"fLaC", _format("FLAC", "record", ".flac")),
        (rb".{4}ftypM4[AB] ", M4A),
        (rb".{4}ftyp(avi[fs]|mif1|msf1|hei[cx]|hev[cx])", _format("AVIF or HEIC", "file")),
        (rb".{4}ftyp", MP4),
        (rb"\x1aE\xdf\xa3", _format("WebM or Matroska", "video", ".webm", ".mkv")),
        (rb"RIFF.{4}AVI ", _format("AVI", "video", ".avi")),
        (rb"FLV\x01", _format("FLV", "video", ".flv")),
        (rb"\0\0\x01[\xba\xb3]", _format("MPEG", "video", ".mpg", ".mpeg")),
        (rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11", _format("WMV", "video", ".wmv", ".wma", ".asf")),
        (rb"II\*\0|MM\0\*", _format("TIFF", "file")),
        (rb"8BPS", _format("PSD", "file")),
        (rb"\0\0[\x01\x02]\0", _format("ICO", "file")),
        (rb"%PDF-", _format("PDF", "file", ".pdf")),
        (rb"PK(\x03\x04|\x05\x06)", ZIP),
        (rb"\x1f\x8b|Rar!|7z\xbc\xaf", _format("an archive", "file")),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
        (rb"MZ|\x7fELF", _format("a program", "file")),
        (rb"(?i)(\xef\xbb\xbf)?\s*(<[?!][^>]*>\s*)*<svg[\s>/]", _format("SVG", "file")),
        (rb"(?i)(\xef\xbb\xbf)?\s*(<!--[^>]*>\s*)*<(!doctype\s+html|html|head|body)[\s>]",
         _format("a web page", "file")),
    )
)  # fmt: skip

MEDIA_ENDINGS: Final = frozenset(ending for _, found in SIGNATURES for ending in found.endings)


def format_of(data: bytes) -> Format | None:
    """The format of these bytes; None if unknown."""
    head = data[:HEAD]
    return next((found for pattern, found in SIGNATURES if pattern.match(head)), None)


def picture_kind(data: bytes) -> str:
    """Pillow's name of a supported image (JPEG, PNG, GIF, WEBP, BMP); empty for others."""
    found = format_of(data)
    return found.name if found is not None and found.kind == "image" else ""


def describe(data: bytes) -> str:
    """What the bytes are, in words for the model."""
    head = data[:HEAD]
    found = format_of(data)
    unknown = "text" if head.isascii() and b"\0" not in head else "of no kind that is known"
    return unknown if found is None else found.name


def fits(kind: MediaKind, data: bytes) -> bool:
    """Whether the bytes may be sent as this kind: anything as a file, an MP4 also as a voice."""
    found = format_of(data)
    return (
        kind == "file"
        or (found is not None and found.kind == kind)
        or (kind == "record" and found is MP4)
    )


def name_for(name: str, data: bytes) -> str:
    """Clean the name, and set its ending by the bytes if it is missing or of another medium."""
    clean = clean_name(name)
    stem, ending = split_ending(clean)
    found = format_of(data)
    if found is None or not found.endings or ending.lower() in found.endings:
        return clean
    return clean_name(f"{stem if ending.lower() in MEDIA_ENDINGS else clean}{found.endings[0]}")
