"""A document as it is read: a page of the web, a PDF, a text."""

from __future__ import annotations

from msgspec import Struct


class Document(Struct, frozen=True):
    """`paragraphs` are its text in order: a heading begins with `#`, a page of a PDF is headed
    `[page 3]`, a row of a table is one line. `is_cut`: it says more than that. Empty fields are not
    known. All of it is words from outside.
    """

    kind: str
    title: str = ""
    author: str = ""
    date: str = ""
    paragraphs: tuple[str, ...] = ()
    is_cut: bool = False
