"""Files at an address of their own, for as long as somebody is to fetch them. Nothing is read from
a disk and nothing is listed: what a request names is a key here, or it is nothing.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

UNGUESSABLE: Final = 32  # bytes
BLOCK: Final = 65_536  # letters of base64; whole groups of four


class OfferedFile:
    """A file, as the base64 it is in memory anyway. `asked` is whether anybody came for it, `over`
    whether it is given no more.
    """

    def __init__(self, url: str, encoded: str) -> None:
        self.url = url
        self.asked = False
        self.over = False
        self._encoded = encoded

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self._encoded) // 4 * 3 - self._encoded[-2:].count("=")

    def blocks(self) -> Iterator[bytes]:
        """Its bytes; no more of them once it is over."""
        for start in range(0, len(self._encoded), BLOCK):
            if self.over:
                return
            yield base64.b64decode(self._encoded[start : start + BLOCK])


class FileOffers:
    """All that are offered now. `url` is where others reach the page that gives them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._there: dict[str, OfferedFile] = {}

    @contextmanager
    def offer(self, encoded: str) -> Iterator[OfferedFile]:
        """Give this file to whoever knows its address, while the block runs."""
        key = secrets.token_urlsafe(UNGUESSABLE)
        offered = self._there[key] = OfferedFile(f"{self._url}/{key}", encoded)
        try:
            yield offered
        finally:
            del self._there[key]
            offered.over = True

    def find(self, key: str) -> OfferedFile | None:
        """The file of this key; None for any that is offered no more, or never was."""
        return self._there.get(key)
