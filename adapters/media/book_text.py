"""epub -> the text of its chapters in their order. Used only in the reader's process."""

from __future__ import annotations

from adapters.media.archive import Archive
from adapters.media.document_text import Paragraphs, day_of, one_line
from adapters.media.html_text import read_chapter
from adapters.media.office_package import resolve
from adapters.media.xml_events import Attributes, Visitor, walk
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
MOST_CHAPTERS = 2000
MOST_CHAPTER = 5 * 2**20  # bytes
HTML = frozenset({"application/xhtml+xml", "text/html"})
FIELDS = frozenset({"title", "creator", "date"})


class _Named(Visitor):
    """The values of one attribute of the elements of this name."""

    def __init__(self, element: str, attribute: str) -> None:
        self.found: list[str] = []
        self._element = element
        self._attribute = attribute

    def start(self, name: str, attributes: Attributes, /) -> None:
        if name == self._element and (value := attributes.get(self._attribute)):
            self.found.append(value)


class _Package(Visitor):
    """The package document: what the book is, its files by id, and the order of its chapters."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.chapters: list[str] = []
        self._field = ""

    def start(self, name: str, attributes: Attributes, /) -> None:
        self._field = name if name in FIELDS and name not in self.fields else ""
        match name:
            case "item" if attributes.get("media-type") in HTML:
                self.files[attributes.get("id", "")] = attributes.get("href", "")
            case "itemref" if attributes.get("linear") != "no":
                self.chapters.append(attributes.get("idref", ""))
            case _:
                pass

    def end(self, _: str, /) -> None:
        self._field = ""

    def text(self, words: str, /) -> None:
        if self._field:
            self.fields[self._field] = self.fields.get(self._field, "") + words


def read_book(archive: Archive) -> Document:
    """The text of an e-book. Raises MediaError: it is encrypted, or has no text; ImportError."""
    container = _Named("rootfile", "full-path")
    walk(archive.chunks(CONTAINER), container)
    package = _Package()
    name = container.found[0] if container.found else ""
    is_whole = walk(archive.chunks(name), package)
    folder = name.rpartition("/")[0]
    hrefs = (package.files[one] for one in package.chapters if one in package.files)
    names = [resolve(folder, href) for href in hrefs]
    if set(names) & _encrypted(archive):
        raise MediaError("it is encrypted by its shop (DRM)", Lack.ENCRYPTED)
    paragraphs = Paragraphs()
    for name in names[:MOST_CHAPTERS]:
        if name in archive:
            read_chapter(archive.content(name, most=MOST_CHAPTER), paragraphs)
        if paragraphs.is_full or archive.is_cut:
            break
    if not paragraphs.kept:
        raise MediaError("it has no text", Lack.EMPTY)
    return Document(
        kind=f"e-book, {len(names)} files of text",
        title=one_line(package.fields.get("title")),
        author=one_line(package.fields.get("creator")),
        date=day_of(package.fields.get("date")),
        paragraphs=tuple(paragraphs.kept),
        is_cut=not is_whole or paragraphs.is_full or archive.is_cut or len(names) > MOST_CHAPTERS,
    )


def _encrypted(archive: Archive) -> set[str]:
    """The files that are encrypted; many honest books encrypt their fonts."""
    if ENCRYPTION not in archive:
        return set()
    named = _Named("CipherReference", "URI")
    walk(archive.chunks(ENCRYPTION), named)
    return {resolve("", uri) for uri in named.found}
