"""A parsed document: a web page, a PDF, an Office document, an e-book, the list of an archive or
plain text.
"""

from __future__ import annotations

from msgspec import Struct

from frostagent.types.errors import Lack, ToolFailed

PLAIN = "text"
"""The `kind` of a plain text."""

NEEDS_LIBRARIES = "PDFs and e-books cannot be read here."
"""What a model is told first without the extra `web`. Stored journals contain it."""


class Document(Struct, frozen=True):
    """`paragraphs` is the text in order: a heading begins with `#`, each page of a PDF with `[page
    3]`, and a table row is one line. `is_cut`: the document has more text. Unknown fields are
    empty. Everything in it is untrusted.
    """

    kind: str
    title: str = ""
    author: str = ""
    date: str = ""
    paragraphs: tuple[str, ...] = ()
    is_cut: bool = False


class UnreadableDocument(ToolFailed):
    """A document that cannot be read; `lack` says why."""

    def __init__(self, message: str, lack: Lack) -> None:
        self.lack = lack
        super().__init__(message)
