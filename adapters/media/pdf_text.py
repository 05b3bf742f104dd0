"""PDF -> title, author, date and the text of its pages. Runs only in the reader's process."""

from __future__ import annotations

import io
import logging
import time
from importlib import import_module
from typing import Any, Final

from adapters.media.document_text import Paragraphs, one_line, seen
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

MOST_PAGES: Final = 500  # that are looked at
ENOUGH_TIME: Final = 4.0  # seconds of the processor, after which the pages so far are the answer


def read_pdf(data: bytes) -> Document:
    """What a PDF says, of a long one the beginning. Raises MediaError: it is encrypted, or has no
    text.
    """
    # It logs all damage that it finds, and nobody reads the log of this process.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pypdf: Any = import_module("pypdf")
    reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise MediaError("it is encrypted, and needs a password", Lack.ENCRYPTED)
    paragraphs = Paragraphs()
    began, is_cut = time.process_time(), False
    pages = len(reader.pages)
    for number, page in enumerate(reader.pages, 1):
        is_late = number > 1 and time.process_time() - began > ENOUGH_TIME
        if is_late or number > MOST_PAGES or paragraphs.is_full:
            is_cut = True
            break
        text = _tidied(page.extract_text() or "")
        if text:
            paragraphs.add(f"[page {number}]")
            for paragraph in text.split("\n\n"):
                paragraphs.add(paragraph)
    if not paragraphs.kept:
        looked = "the pages that were looked at" if is_cut else f"its {pages} pages"
        raise MediaError(f"none of {looked} has text: it may be a scan", Lack.SCANNED)
    about = reader.metadata
    made = getattr(about, "creation_date_raw", None) or ""
    return Document(
        kind=f"PDF, {pages} pages",
        title=one_line(about.title if about else ""),
        author=one_line(about.author if about else ""),
        date=_day(one_line(made)),
        paragraphs=tuple(paragraphs.kept),
        is_cut=is_cut or paragraphs.is_full,
    )


def _tidied(text: str) -> str:
    """Lines without invisible marks; a word that was parted at the end of a line is
    joined.
    """
    lines = (" ".join(seen(line).split()) for line in text.replace("-\n", "").splitlines())
    return "\n".join(lines).strip()


def _day(made: str) -> str:
    """The day in a date as PDF writes it: D:20260302103000+08'00'."""
    digits = made.removeprefix("D:")[:8]
    return (
        f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
        if digits.isdecimal() and len(digits) == 8
        else ""
    )
