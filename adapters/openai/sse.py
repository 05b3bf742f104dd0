"""Server-sent events out of bytes, however the network cut them (WHATWG HTML 9.2.6; rule 2.18).

Lines are cut as bytes, so a character that is split over two reads is whole again before anybody decodes it. The byte
order mark is the reader's business, as it is before we know that the body is a stream at all.
"""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """One event: its name (empty for the usual kind) and its data, the lines of it joined by newlines."""

    name: bytes
    data: bytes


class EventDecoder:
    """Bytes in, events out; comments, ids and retry hints are dropped. Knows nothing of what the data means."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._after_cr = False
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify_line_ends(chunk)
        if b"\n" not in chunk:
            self._tail += chunk
            return []
        lines = (bytes(self._tail) + chunk).split(b"\n")
        self._tail = bytearray(lines.pop())
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"data: "):
                self._data.append(line[6:])
            elif line:
                self._read_line(line)
            elif self._data:
                events.append(self._dispatch())
            else:
                self._name = b""
        return events

    def finish(self) -> list[Event]:
        """What is left when the bytes end without a blank line; the standard drops it, some vendors end so (2.2)."""
        if self._tail:
            self._read_line(bytes(self._tail))
            self._tail.clear()
        return [self._dispatch()] if self._data else []

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        elif not chunk:
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b" ", 5) else line[5:])
            return
        field, _, value = line.partition(b":")
        if field == b"event":
            self._name = value.removeprefix(b" ")
        elif field == b"data":
            self._data.append(b"")

    def _dispatch(self) -> Event:
        event = Event(self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
        self._name = b""
        self._data.clear()
        return event
