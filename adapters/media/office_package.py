"""What docx, xlsx and pptx have in common: which of them a package is, its relationships and its
properties (ECMA-376, part 2). Used only in the reader's process.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from adapters.media.archive import Archive
from adapters.media.document_text import day_of, one_line
from adapters.media.xml_events import Attributes, Visitor, walk

MACROS: Final = "vbaproject.bin"
CORE: Final = "docProps/core.xml"


@dataclass(frozen=True, slots=True)
class Relationship:
    """Another entry that an entry names: the last word of its type, and its name."""

    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Properties:
    """Title, author and day of the last change; empty if unknown."""

    title: str = ""
    author: str = ""
    date: str = ""


class _Relationships(Visitor):
    def __init__(self, base: str) -> None:
        self.found: dict[str, Relationship] = {}
        self._base = base

    def start(self, name: str, attributes: Attributes, /) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            target = resolve(self._base, attributes.get("Target", ""))
            self.found[attributes.get("Id", "")] = Relationship(kind, target)


class _Core(Visitor):
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._name = ""

    def start(self, name: str, _: Attributes, /) -> None:
        self._name = name

    def end(self, _: str, /) -> None:
        self._name = ""

    def text(self, words: str, /) -> None:
        self.found[self._name] = self.found.get(self._name, "") + words


def resolve(base: str, target: str) -> str:
    """The name of the entry that `target` means in an entry of the folder `base`."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", base, path)).lstrip("/")


def relationships(archive: Archive, name: str = "") -> Mapping[str, Relationship]:
    """The relationships of an entry, or of the package, by id."""
    folder, _, file = name.rpartition("/")
    entry = posixpath.join(folder, "_rels", f"{file}.rels")
    visitor = _Relationships(folder)
    if entry in archive:
        walk(archive.chunks(entry), visitor)
    return visitor.found


def main_entry(archive: Archive) -> str:
    """The name of the document's main entry; empty if it is no Office document."""
    found = (one.target for one in relationships(archive).values() if one.kind == "officeDocument")
    return next((name for name in found if name in archive), "")


def read_properties(archive: Archive) -> Properties:
    if CORE not in archive:
        return Properties()
    core = _Core()
    walk(archive.chunks(CORE), core)
    return Properties(
        title=one_line(core.found.get("title")),
        author=one_line(core.found.get("creator")),
        date=day_of(core.found.get("modified") or core.found.get("created")),
    )


def with_macros(archive: Archive) -> str:
    """The words about macros, which are never read."""
    has = any(one.filename.lower().endswith(MACROS) for one in archive.entries)
    return ", with macros, which are not read" if has else ""
