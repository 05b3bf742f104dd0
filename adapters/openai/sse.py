"""Server-sent events out of bytes, however the network cut them (WHATWG HTML 9.2.6; rule 2.18).

Events are cut as bytes, so a character that is split over two reads is whole again before anybody
decodes it. The byte order mark is the reader's business, as it is before we know that the body is a
stream at all.
"""

from __future__ import annotations

from typing import TypeAlias

Event: TypeAlias = tuple[bytes, bytes]
"""One event: its name (empty for the usual kind) and its data, the lines of it joined by
newlines.
"""


class EventDecoder:
    """Bytes in, events out; comments, ids and retry hints are dropped. Knows nothing of what the
    data means.
    """

    def __init__(self) -> None:
        self._tail = bytearray()  # of an event whose blank line has not come
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify_line_ends(chunk)
        if tail := self._tail:
            searched = len(tail) - 1
            tail += chunk
            if tail.find(b"\n\n", searched) < 0:
                return []
            chunk = bytes(tail)
        blocks = chunk.split(b"\n\n")
        self._tail = bytearray(blocks.pop())
        events: list[Event] = []
        for block in blocks:
            if block.startswith(b"data: ") and block.find(b"\n") < 0:  # nearly all
                events.append((b"", block[6:]))
            elif event := _read_block(block):
                events.append(event)
        return events

    def finish(self) -> Event | None:
        """The last event, where the bytes end without a blank line; the standard drops it, some
        vendors end so (2.2).
        """
        return _read_block(bytes(self._tail)) if self._tail else None

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        elif not chunk:
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _read_block(block: bytes) -> Event | None:
    """The event in the lines between two blank ones, None where they hold no data."""
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return (name, b"\n".join(data)) if data else None
