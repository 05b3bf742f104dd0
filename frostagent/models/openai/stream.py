"""Turns the bytes of an HTTP 200 into one `RawAnswer` or one `ModelError`, for event streams and
plain JSON.

The first byte decides which, not the content type (1.14). Invariant: an incomplete answer is never
passed on: a stream without finish reason and usage was cut (2.2), unless its server never sends
either; an `error` in any chunk is raised (2.3). Errors are logged, so they describe size and shape
of unreadable bodies and never quote the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from frostagent.models.openai.answer import AnswerDraft, RawAnswer, read_usual_chunk
from frostagent.models.openai.errors import MAX_SEARCHED, TITLE, classify, clean_words
from frostagent.models.openai.vendor_text import read_json
from frostagent.types.errors import ModelError, ModelRejected, ModelTransport

Event: TypeAlias = tuple[bytes, bytes]
"""One event: its name (empty for the default) and its data, lines joined by newlines."""


class EventDecoder:
    """Splits bytes into events. Comments, ids and retry hints are dropped; data is not parsed."""

    def __init__(self) -> None:
        self._tail = bytearray()  # of an unfinished event
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[Event]:
        if self._after_cr or chunk.find(b"\r") >= 0:  # `in` raises an error internally, for bytes
            chunk = self._unify_line_ends(chunk)
        return self._take(chunk)

    def finish(self) -> list[Event]:
        """The last event, if it lacks the blank line that the standard requires (2.2)."""
        return self._take(b"\n\n")

    def _take(self, chunk: bytes) -> list[Event]:
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
            if block.startswith(b"data: ") and block.find(b"\n") < 0:  # the usual case
                events.append((b"", block[6:]))
                continue
            name = b""
            data: list[bytes] = []
            for line in block.split(b"\n"):
                field, _, value = line.partition(b":")
                if field == b"data":
                    data.append(value.removeprefix(b" "))
                elif field == b"event":
                    name = value.removeprefix(b" ")
            if data:
                events.append((name, b"\n".join(data)))
        return events

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        elif not chunk:
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


DONE = b"[DONE]"
ERROR = b"error"  # the name of error events
IN_A_ROW = 3  # unusual chunks, such as calls, after which typed parsing is not tried


def _pieces(data: bytes) -> list[bytes]:
    """The JSON texts in one event: one, unless a server omits blank lines between events."""
    try:
        read_json(data)
    except ValueError:
        return [line for line in data.split(b"\n") if line.strip()]
    return [data]


def _read_body(data: bytes) -> Any:
    """The JSON of a body. Raises ModelTransport if invalid, ModelRejected for a web page."""
    if not data:
        raise ModelTransport("the answer was empty")
    try:
        return read_json(data)
    except ValueError as error:
        if data.startswith(b"<"):
            raise _web_page(data) from error
        raise ModelTransport(f"the answer was cut or is no JSON: {len(data)} bytes") from error


def _web_page(data: bytes) -> ModelError:
    """A page with status 200 is the vendor's website: retrying would not help."""
    title = TITLE.search(data[:MAX_SEARCHED].decode("utf-8", "replace"))
    page = clean_words(title[1]) if title else f"{len(data)} bytes"
    return ModelRejected(
        f"a web page came instead of an answer ({page}): check the base URL, /v1 may be missing"
    )


BOM = b"\xef\xbb\xbf"


class AnswerReader:
    """Reads one answer from a body in pieces of any size; call `finish` at the end."""

    def __init__(self) -> None:
        self.is_done = False  # whether the end marker was read
        self._head = b""
        self._size = 0
        self._whole: bytearray | None = None
        self._events: EventDecoder | None = None
        self._draft = AnswerDraft()
        self._is_over = False
        self._others = 0  # unusual chunks in a row

    @property
    def is_stream(self) -> bool:
        """Whether the body has turned out to be a stream."""
        return self._events is not None

    @property
    def pieces(self) -> int:
        """The number of pieces of the answer so far, without other data."""
        return self._draft.pieces if self._whole is None else len(self._whole)

    @property
    def has_begun(self) -> bool:
        """Whether part of an answer or its usage has arrived, as far as is known."""
        return self._draft.pieces > 0 or self.usage is not None

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """The usage so far, in the vendor's terms."""
        return self._draft.usage

    @property
    def is_complete(self) -> bool:
        """Whether the stream has all an answer needs, so that no later error matters."""
        draft = self._draft
        return draft.finish_reason is not None or (self.is_done and draft.usage is not None)

    @property
    def is_explained(self) -> bool:
        """Whether a stream says in some way that it is complete."""
        return self._events is not None and (self.is_complete or self._draft.is_counted)

    @property
    def is_unexplained(self) -> bool:
        """Whether a stream with text ended with its marker, but without a reason (2.2).

        Never with calls: their effects cannot be undone, so their answer must be known to be
        complete.
        """
        return self.is_done and not self.is_explained and self._draft.has_words_only

    @property
    def said(self) -> tuple[list[str], list[str]]:
        """The pieces of text and of reasoning so far, as live lists."""
        return self._draft.said

    def feed(self, chunk: bytes) -> None:
        """Add bytes. Raises ModelError for an error in the stream, ModelTransport for an unreadable
        chunk, ModelRejected for an endless answer.
        """
        self._size += len(chunk)
        if self._whole is not None:
            self._whole += chunk
            return
        if self._events is None:
            chunk = self._sniff(chunk)
        if self._events is not None:
            self._read_events(self._events.feed(chunk))
            if self._draft.is_too_long:
                raise self._flood()

    def end(self) -> None:
        """Process a last event without a blank line. If it was cut, only the answer shows that.
        Raises as `feed` does.
        """
        if self._events is None or self._is_over:
            return
        self._is_over = True
        try:
            self._read_events(self._events.finish())
        except ModelTransport as error:
            if not isinstance(error.__cause__, ValueError):
                raise

    def finish(self, *, unexplained: bool = False) -> RawAnswer:
        """The answer. Raises ModelTransport if it is cut or missing, or the ModelError it contains.
        `unexplained` accepts a stream without a reason, for a server that never gives one.
        """
        self.end()
        if self._events is None:
            body = bytes(self._whole or b"")
            self._draft.add_body(_read_body(body), len(body))
            if self._draft.is_too_long:
                raise self._flood()
        elif not (self.is_explained or (unexplained and self.is_unexplained)):
            if not self._draft.pieces:
                raise ModelTransport(
                    f"there was nothing in the answer, or it was cut: {self._size} bytes"
                )
            raise ModelTransport(
                "the stream was cut: it ended without a finish reason and without usage"
            )
        done = self.is_done if self.is_stream else None
        return self._draft.freeze(done=done, unexplained=self.is_unexplained)

    def _flood(self) -> ModelRejected:
        """Not retryable: the next answer would not end either."""
        return ModelRejected(f"the answer does not end: it was stopped after {self._size} bytes")

    def _sniff(self, chunk: bytes) -> bytes:
        """Detect the kind of body, after keep-alive whitespace, possibly kilobytes (1.13). Returns
        the bytes of a stream.
        """
        head = (self._head + chunk).lstrip()
        if head.startswith(BOM):
            head = head[len(BOM) :].lstrip()
        self._head = b""
        if BOM.startswith(head):
            self._head = head  # nothing yet, or part of the byte order mark
        elif head[:1] in b"{[<":
            self._whole = bytearray(head)
        else:
            self._events = EventDecoder()
        return head

    def _read_events(self, events: Iterable[Event]) -> None:
        for name, data in events:
            if self.is_done or data == DONE:
                self.is_done = True
                return
            if self._others < IN_A_ROW and not name:
                if (usual := read_usual_chunk(data)) is not None:
                    self._others = 0
                    self._draft.add_usual_chunk(usual)
                    continue
                self._others += 1
            try:
                chunk = orjson.loads(data)
            except orjson.JSONDecodeError:
                self._read_strange(name, data)
            else:
                self._draft.add_chunk(chunk, is_error=name == ERROR)

    def _read_strange(self, name: bytes, data: bytes) -> None:
        """Read data that is not exactly one JSON text: several, or a vendor's variant."""
        for piece in _pieces(data) if b"\n" in data else (data,):
            if piece.lstrip().startswith(DONE):
                self.is_done = True
                return
            if piece.strip():
                self._read_piece(name, piece)

    def _read_piece(self, name: bytes, piece: bytes) -> None:
        try:
            chunk = read_json(piece)
        except ValueError as error:
            if name == ERROR:
                raise classify(None, piece) from error
            raise ModelTransport(f"an unreadable chunk of {len(piece)} bytes") from error
        self._draft.add_chunk(chunk, is_error=name == ERROR)
