"""Reads untrusted XML element by element, within bounds: no tree, no entities, no other files. Used
only in the reader's process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, TypeAlias
from xml.parsers import expat

from adapters.media.archive import Enough
from frostagent.types.errors import MediaError

DEEPEST: Final = 256  # elements in each other; Word needs some 40
MOST_ELEMENTS: Final = 1_000_000  # of one entry: some two seconds

Attributes: TypeAlias = dict[str, str]
"""By name; a name in a namespace is `uri name`."""


class Visitor:
    """Called for each element. Elements are named without their namespace: the transitional
    and the strict form of a format differ in nothing else. Elements in `skipped` are not visited,
    nor is their content. A method may raise Enough to stop.
    """

    skipped: ClassVar[frozenset[str]] = frozenset()

    def start(self, name: str, attributes: Attributes, /) -> None:
        """An element begins."""

    def end(self, name: str, /) -> None:
        """It ends."""

    def text(self, words: str, /) -> None:
        """Text in it, perhaps in several pieces."""


def walk(chunks: Iterable[bytes], visitor: Visitor) -> bool:
    """Visit the elements of a document until it ends; False if it stopped before that. Raises
    expat.ExpatError, and MediaError if it declares entities or is too deep.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = number = 0
    skipping = 0  # the depth of the skipped element that we are in

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth, number, skipping
        depth, number = depth + 1, number + 1
        if depth > DEEPEST:
            raise MediaError("its parts are nested too deeply")
        if number > MOST_ELEMENTS:
            raise Enough
        if skipping:
            return
        local = name.rpartition(" ")[2]
        if local in visitor.skipped:
            skipping = depth
        else:
            visitor.start(local, attributes)

    def end(name: str) -> None:
        nonlocal depth, skipping
        if not skipping:
            visitor.end(name.rpartition(" ")[2])
        elif skipping == depth:
            skipping = 0
        depth -= 1

    def text(words: str) -> None:
        if not skipping:
            visitor.text(words)

    def refuse(*_: object) -> None:
        raise MediaError("its XML declares entities, as no Office program does")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = refuse
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except Enough:
        return False
    return True


def attribute(attributes: Attributes, name: str, default: str = "") -> str:
    """An attribute in any namespace or none."""
    if (bare := attributes.get(name)) is not None:
        return bare
    ending = f" {name}"
    return next((value for key, value in attributes.items() if key.endswith(ending)), default)


def relation_id(attributes: Attributes) -> str:
    """`r:id`, which may stand beside an `id` of the element."""
    return next((v for key, v in attributes.items() if key.endswith("relationships id")), "")


def is_on(attributes: Attributes, name: str = "val") -> bool:
    """Whether a switch is on: it is if it says nothing."""
    return attribute(attributes, name, "1").lower() not in {"0", "false", "off"}
