"""The program that parses untrusted documents: `python -m adapters.media.reader`.

`adapters/media/confined.py` describes its life; `adapters/media/reader_process.py` is the bot's
side. A piece of work is the document's media type as its server states it (`text/html;
charset=gbk`), a newline, and the document; the answer is a `Document` as JSON.
"""

from __future__ import annotations

import re

from msgspec import json

from adapters.media import confined
from adapters.media.document_text import Paragraphs, as_text, seen
from adapters.media.formats import describe
from adapters.media.html_text import read_html
from adapters.media.pdf_text import read_pdf
from bot.core.documents import Document
from frostagent.types.errors import MediaError

MEMORY = 512 * 2**20  # bytes of address space; 5 MB of HTML take up to 300 MiB
CPU = 6  # seconds for one document

CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w-]{1,40})", re.IGNORECASE)
PAGE = re.compile(
    rb"\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html|head|body)",
    re.IGNORECASE | re.DOTALL,
)
TEXT = re.compile(r"text/|[/+](?:json|xml|yaml|toml|javascript)\b", re.IGNORECASE)
NUL = b"\0"


def read(work: bytes) -> bytes:
    """Parse one piece of work. Raises MediaError."""
    told, _, data = work.partition(b"\n")
    try:
        return json.encode(read_document(data, told.decode("utf-8", "replace")))
    except MediaError:
        raise
    except MemoryError as error:
        raise MediaError("it takes too much memory to read") from error
    except ImportError as error:
        raise MediaError("the library that reads it is not installed") from error
    # Parsers raise any kind of exception on foreign input.
    except Exception as error:
        raise MediaError("it is damaged and cannot be read") from error


def read_document(data: bytes, told: str = "") -> Document:
    """Parse a document; `told` is its media type as its server states it. Raises MediaError."""
    if not data.strip():
        raise MediaError("it is empty")
    found = CHARSET.search(told)
    charset = found[1] if found else ""
    if b"%PDF-" in data[:1024]:
        return read_pdf(data)
    if "html" in told.lower() or PAGE.match(data[:4096]):
        return read_html(data, charset)
    kind = told.partition(";")[0].strip().lower()
    if (kind and not TEXT.search(kind)) or (
        NUL in data[:4096] and not data.startswith(b"\xff\xfe")
    ):
        raise MediaError(f"it is no page, PDF or text but {kind or describe(data)}")
    paragraphs = Paragraphs()
    for block in re.split(r"\n\s*\n", as_text(data, charset)):
        paragraphs.add("\n".join(map(seen, block.splitlines())))
    return Document(kind="text", paragraphs=tuple(paragraphs.kept), is_cut=paragraphs.is_full)


def main() -> None:
    confined.main(read, memory=MEMORY, cpu=CPU)


if __name__ == "__main__":
    main()
