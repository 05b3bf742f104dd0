"""ZIP archives within bounds, and what is in them. Used only in the reader's process.

Python's `zipfile` finds the entries. It trusts what an archive says of itself, so this module
bounds what is unpacked: all reads of an archive share `MOST_UNPACKED` bytes, whatever sizes it
states and however its entries overlap.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator
from typing import Final

from adapters.media.document_text import Paragraphs, one_line
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

MOST_UNPACKED: Final = 96 * 2**20  # bytes of all entries that are read
CHUNK: Final = 2**20  # bytes; smaller ones make expat read long tokens again and again
MOST_ENTRIES: Final = 50_000
DIRECTORY_ENTRY: Final = b"PK\x01\x02"
ENCRYPTED, UTF8 = 0x1, 0x800  # bits of an entry's flags
LONGEST_NAME: Final = 300  # characters
UNITS: Final = ("KB", "MB", "GB", "TB")
# bzip2 and LZMA are unpacked without a bound by `zipfile`; no Office program writes them.
METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class Enough(Exception):
    """Raised to stop reading: the text is full, or the archive has unpacked too much."""


class Archive:
    """The entries of a ZIP archive by name, in any letter case. Raises MediaError if there are too
    many, zipfile.BadZipFile if it is damaged. `is_cut`: an entry was not read to its end.
    """

    def __init__(self, data: bytes) -> None:
        if data.count(DIRECTORY_ENTRY) > MOST_ENTRIES:
            raise MediaError("it has too many entries", Lack.TOO_LARGE)
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._room = MOST_UNPACKED
        self.is_cut = False
        self.entries = self._zip.infolist()
        self._by_name = {one.filename.lstrip("/").lower(): one for one in self.entries}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_name

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of an entry, unpacked bit by bit. Raises KeyError, MediaError if it is
        encrypted or packed in another way, and Enough at the bound.
        """
        entry = self._by_name[name.lower()]
        if entry.flag_bits & ENCRYPTED:
            raise MediaError("it is encrypted, and needs a password", Lack.ENCRYPTED)
        if entry.compress_type not in METHODS:
            raise MediaError("it is packed in a way that is not read")
        with self._zip.open(entry) as file:
            while chunk := file.read(CHUNK):
                self._room -= len(chunk)
                if self._room < 0:
                    self.is_cut = True
                    raise Enough
                yield chunk

    def content(self, name: str, *, most: int) -> bytes:
        """The content of an entry, cut at `most` bytes. Raises KeyError, MediaError."""
        content = bytearray()
        try:
            for chunk in self.chunks(name):
                content += chunk
                if len(content) > most:
                    self.is_cut = True
                    break
        except Enough:
            pass
        return bytes(content[:most])


def list_archive(archive: Archive) -> Document:
    """The names and sizes in an archive, as it states them; nothing is unpacked."""
    paragraphs = Paragraphs()
    files = [entry for entry in archive.entries if not entry.is_dir()]
    if not files:
        raise MediaError("there is no file in it", Lack.EMPTY)
    for entry in files:
        paragraphs.add(_line(entry))
    total = sum(entry.file_size for entry in files)
    return Document(
        kind=f"ZIP archive that was not unpacked, {len(files)} files, {_size(total)} by its list",
        paragraphs=tuple(paragraphs.kept),
        is_cut=paragraphs.is_full,
    )


def _line(entry: zipfile.ZipInfo) -> str:
    marks = [_size(entry.file_size)]
    if entry.flag_bits & ENCRYPTED:
        marks.append("encrypted")
    if stat.S_ISLNK(entry.external_attr >> 16):
        marks.append("link")
    return f"{_name(entry)} ({', '.join(marks)})"


def _name(entry: zipfile.ZipInfo) -> str:
    """An entry's name in the letters it was written in: without the flag of UTF-8, `zipfile` takes
    it for CP437, while most programs write UTF-8, and Chinese Windows GBK.
    """
    name = entry.filename
    if not entry.flag_bits & UTF8:
        for encoding in ("utf-8", "gb18030"):
            try:
                name = entry.orig_filename.encode("cp437").decode(encoding)
                break
            except UnicodeError:
                continue
    return one_line(name, LONGEST_NAME) or "(no name)"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(UNITS))
    return f"{size / 1024**power:.1f} {UNITS[power - 1]}"
