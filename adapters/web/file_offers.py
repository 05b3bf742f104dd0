"""Files at secret URLs, for as long as a server is to fetch them. Nothing is read from a disk and
nothing is listed: a request either names a key here or finds nothing.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

UNGUESSABLE: Final = 32  # bytes
BLOCK: Final = 65_536  # base64 characters; whole groups of four


class OfferedFile:
    """A file as base64, which is in memory anyway. `asked` tells whether it was requested, `over`
    whether the offer has ended.
    """

    def __init__(self, url: str, encoded: str) -> None:
        self.url = url
        self.asked = False
        self.over = False
        self._encoded = encoded

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self._encoded) // 4 * 3 - self._encoded[-2:].count("=")

    def blocks(self) -> Iterator[bytes]:
        """The file's bytes; stops once the offer is over."""
        for start in range(0, len(self._encoded), BLOCK):
            if self.over:
                return
            yield base64.b64decode(self._encoded[start : start + BLOCK])


class FileOffers:
    """All current offers. `url` is the public address of the page."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._there: dict[str, OfferedFile] = {}

    @contextmanager
    def offer(self, encoded: str) -> Iterator[OfferedFile]:
        """Offer this file under a secret URL while the block runs."""
        key = secrets.token_urlsafe(UNGUESSABLE)
        offered = self._there[key] = OfferedFile(f"{self._url}/{key}", encoded)
        try:
            yield offered
        finally:
            del self._there[key]
            offered.over = True

    def find(self, key: str) -> OfferedFile | None:
        """The file of this key; None if it is not or no longer offered."""
        return self._there.get(key)
