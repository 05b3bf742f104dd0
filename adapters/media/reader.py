"""The program that parses untrusted documents: `python -m adapters.media.reader`.

`adapters/media/confined.py` describes its life; `adapters/media/reader_process.py` is the bot's
side. A piece of work is the document's media type as its server states it (`text/html;
charset=gbk`; empty for a file that a person sent), a newline, and the document; the answer is a
`Document` as JSON.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Final
from zipfile import BadZipFile

from msgspec import json

from adapters.media import confined
from adapters.media.archive import Archive, Enough, list_archive
from adapters.media.book_text import CONTAINER, read_book
from adapters.media.document_text import Paragraphs, as_text, seen
from adapters.media.formats import OLE, ZIP, describe, format_of
from adapters.media.html_text import read_html
from adapters.media.office_package import main_entry
from adapters.media.pdf_text import read_pdf
from adapters.media.sheet_text import read_sheets
from adapters.media.slide_text import read_slides
from adapters.media.word_text import read_word
from adapters.media.xml_events import Attributes, Visitor, walk
from bot.core.documents import PLAIN, Document
from frostagent.types.errors import Lack, MediaError

MEMORY = 512 * 2**20  # bytes of address space; 5 MB of HTML take up to 300 MiB
CPU = 6  # seconds for one document
MOST_HTML: Final = 5 * 2**20  # bytes
MOST_PLAIN: Final = 2**20  # bytes of a plain text that are looked at: 200,000 characters and more

CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w-]{1,40})", re.IGNORECASE)
PAGE = re.compile(
    rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body)",
    re.IGNORECASE | re.DOTALL,
)
TEXT = re.compile(r"text/|[/+](?:json|xml|yaml|toml|javascript)\b", re.IGNORECASE)
NUL = b"\0"
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # never in text, except for colours (1b)
COLOUR = re.compile(r"\x1b\[[\d;]*m")
TAB: Final = 4  # columns

OFFICE: Final = {"document": read_word, "workbook": read_sheets, "presentation": read_slides}
"""By the first element of the main entry."""
OLD: Final = tuple(
    name.encode("utf-16-le") for name in ("WordDocument", "Workbook", "PowerPoint Document")
)
ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
"""Names of streams in an OLE file. Source: [MS-OFFCRYPTO] 2.3.4.1."""


def read(work: bytes) -> bytes:
    """Parse one piece of work. Raises MediaError."""
    told, _, data = work.partition(b"\n")
    try:
        return json.encode(read_document(data, told.decode("utf-8", "replace")))
    except MediaError:
        raise
    except MemoryError as error:
        raise MediaError("it takes too much memory to read", Lack.TOO_LARGE) from error
    except ImportError as error:
        why = "the library that reads it is not installed"
        raise MediaError(why, Lack.NOT_INSTALLED) from error
    # Parsers raise any kind of exception on foreign input.
    except Exception as error:
        raise MediaError("it is damaged and cannot be read", Lack.DAMAGED) from error


def read_document(data: bytes, told: str = "") -> Document:
    """Parse a document; `told` is its media type as its server states it. Raises MediaError."""
    if not data.strip():
        raise MediaError("it is empty", Lack.EMPTY)
    kind = format_of(data)
    if kind is ZIP:
        return _read_package(data)
    if b"%PDF-" in data[:1024]:
        return read_pdf(data)
    if kind is OLE:
        raise _ole_refusal(data)
    found = CHARSET.search(told)
    charset = found[1] if found else ""
    if "html" in told.lower() or PAGE.match(data[:4096]):
        try:
            if len(data) > MOST_HTML:
                raise MediaError("it is too large a page to read", Lack.TOO_LARGE)
            return read_html(data, charset)
        except (MediaError, ImportError):
            if told:
                raise
            # A file that people sent may be a program: its source is what it says.
    return _read_plain(data, told, charset)


def _read_plain(data: bytes, told: str, charset: str) -> Document:
    kind = told.partition(";")[0].strip().lower()
    if (kind and not TEXT.search(kind)) or (
        NUL in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))
    ):
        raise MediaError(f"it is no page, PDF or text but {kind or describe(data)}", Lack.NO_TEXT)
    is_cut = len(data) > MOST_PLAIN
    if is_cut:
        data = _beginning(data)
    text = COLOUR.sub("", as_text(data, charset))
    if not told and CONTROL.search(text):
        raise MediaError(f"it is no text but {describe(data)}", Lack.NO_TEXT)
    paragraphs = Paragraphs()
    for block in re.split(r"\n\s*\n", text):
        paragraphs.add("\n".join(seen(line.expandtabs(TAB)) for line in block.splitlines()))
    if not paragraphs.kept:
        raise MediaError("it has no text", Lack.EMPTY)
    return Document(
        kind=PLAIN,
        paragraphs=tuple(paragraphs.kept),
        is_cut=is_cut or paragraphs.is_full,
    )


def _beginning(data: bytes) -> bytes:
    """The lines in the first `MOST_PLAIN` bytes; of a single line its whole letters, as UTF-8."""
    if lines := data.rfind(b"\n", 0, MOST_PLAIN) + 1:
        return data[:lines]
    for encoding in ("utf-8", "gb18030"):
        with suppress(UnicodeDecodeError):
            return getincrementaldecoder(encoding)().decode(data[:MOST_PLAIN]).encode()
    return data[:MOST_PLAIN]


def _read_package(data: bytes) -> Document:
    """An Office document, an e-book, or the list of what is in an archive."""
    try:
        archive = Archive(data)
    except BadZipFile as error:
        raise MediaError("it is a damaged ZIP archive", Lack.DAMAGED) from error
    if CONTAINER in archive:
        return read_book(archive)
    if not (main := main_entry(archive)):
        return list_archive(archive)
    if main.endswith(".bin"):
        raise MediaError("it is in Excel's binary form", Lack.OLD_OFFICE)
    root = _Root()
    walk(archive.chunks(main), root)
    if root.name not in OFFICE:
        return list_archive(archive)
    return OFFICE[root.name](archive, main)


class _Root(Visitor):
    """The name of the first element."""

    name = ""

    def start(self, name: str, _: Attributes, /) -> None:
        self.name = name
        raise Enough


def _ole_refusal(data: bytes) -> MediaError:
    if ENCRYPTED in data:
        return MediaError("it is encrypted, and needs a password", Lack.ENCRYPTED)
    if any(name in data for name in OLD):
        why = "it is in Office's binary form from before 2007: save it as docx, xlsx or pptx"
        return MediaError(why, Lack.OLD_OFFICE)
    return MediaError(f"it is no page, PDF or text but {describe(data)}", Lack.NO_TEXT)


def main() -> None:
    confined.main(read, memory=MEMORY, cpu=CPU)


if __name__ == "__main__":
    main()
