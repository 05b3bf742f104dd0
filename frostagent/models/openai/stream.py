"""Bytes of an HTTP 200 in, one `RawAnswer` or one `ModelError` out: event streams and plain JSON
alike.

What a body is shows in its first byte, not in its content type (1.14). Invariant: an answer that
did not end is never handed on: no finish reason and no usage is a cut stream (2.2), unless its
server never has either; an `error` in any chunk is the error (2.3). Errors are logged, so they
never repeat what may be the model's own words: of a body that cannot be read they tell size and
shape.
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
        if self._after_cr or chunk.find(b"\r") >= 0:  # `in` raises inside, for bytes
            chunk = self._unify_line_ends(chunk)
        return self._take(chunk)

    def finish(self) -> list[Event]:
        """The last event, where the bytes end without a blank line; the standard drops it, some
        vendors end so (2.2).
        """
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
            if block.startswith(b"data: ") and block.find(b"\n") < 0:  # as nearly all are
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
ERROR = b"error"  # the name of an event that is one
IN_A_ROW = 3  # chunks of other kinds, such as calls, after which none is tried as a usual one


def _pieces(data: bytes) -> list[bytes]:
    """The JSON texts in the lines of one event: one, unless a server leaves the blank lines between
    its events out.
    """
    try:
        read_json(data)
    except ValueError:
        return [line for line in data.split(b"\n") if line.strip()]
    return [data]


def _read_body(data: bytes) -> Any:
    """The JSON of a body. Raises ModelTransport where it was cut or is none, ModelRejected for a
    web page.
    """
    if not data:
        raise ModelTransport("the answer was empty")
    try:
        return read_json(data)
    except ValueError as error:
        if data.startswith(b"<"):
            raise _web_page(data) from error
        raise ModelTransport(f"the answer was cut or is no JSON: {len(data)} bytes") from error


def _web_page(data: bytes) -> ModelError:
    """A page with status 200 is the vendor's site, not its API: asking again would not help."""
    title = TITLE.search(data[:MAX_SEARCHED].decode("utf-8", "replace"))
    page = clean_words(title[1]) if title else f"{len(data)} bytes"
    return ModelRejected(
        f"a web page came instead of an answer ({page}): check the base URL, /v1 may be missing"
    )


BOM = b"\xef\xbb\xbf"


class AnswerReader:
    """Fed with the body as it comes, in pieces of any size; `finish` when there is no more. Good
    for one answer.
    """

    def __init__(self) -> None:
        self.is_done = False  # whether the stream's end marker was read
        self._head = b""
        self._size = 0
        self._whole: bytearray | None = None
        self._events: EventDecoder | None = None
        self._draft = AnswerDraft()
        self._is_over = False
        self._others = 0  # chunks in a row that were not usual ones

    @property
    def is_stream(self) -> bool:
        """Whether the body has turned out to be one."""
        return self._events is not None

    @property
    def pieces(self) -> int:
        """How many pieces of the answer were read: what is no part of it does not count, and 0 is
        none yet.
        """
        return self._draft.pieces if self._whole is None else len(self._whole)

    @property
    def has_begun(self) -> bool:
        """Whether a model has answered some of it, or told what that takes; of a body that is no
        stream nobody knows before its end.
        """
        return self._draft.pieces > 0 or self.usage is not None

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """What it took, where that was told by now, in the vendor's own terms."""
        return self._draft.usage

    @property
    def is_complete(self) -> bool:
        """Whether the stream has said all an answer needs, so that no later mishap can cost it."""
        draft = self._draft
        return draft.finish_reason is not None or (self.is_done and draft.usage is not None)

    @property
    def is_explained(self) -> bool:
        """Whether a stream says in some way of its own that it is whole."""
        return self._events is not None and (self.is_complete or self._draft.is_counted)

    @property
    def is_unexplained(self) -> bool:
        """Whether a stream came to its end marker with words, and says nothing else of its end
        (2.2).

        Calls are not among them: what is done cannot be taken back, so they need an answer that is
        known to be whole.
        """
        return self.is_done and not self.is_explained and self._draft.has_words_only

    @property
    def said(self) -> tuple[list[str], list[str]]:
        """The pieces of text and of reasoning so far; both lists grow as it reads a stream."""
        return self._draft.said

    def feed(self, chunk: bytes) -> None:
        """Take some bytes.

        Raises ModelError for an error inside the stream, ModelTransport for an unreadable chunk,
        ModelRejected for an answer that does not end.
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
        """There is no more: take a last event without its blank line, whole, or cut in the middle,
        which only the answer tells. Raises as `feed` does.
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
        """The answer. Raises ModelTransport where it was cut short or is none, or the ModelError it
        holds instead.

        `unexplained`: also one that does not say why it ended, because its server never does.
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
        """Not a failure to try again: asking again would bring another one."""
        return ModelRejected(f"the answer does not end: it was stopped after {self._size} bytes")

    def _sniff(self, chunk: bytes) -> bytes:
        """Find out what the body is; keep-alive blanks may come first, kilobytes of them (1.13).
        Returns what is known to be of a stream.
        """
        head = (self._head + chunk).lstrip()
        if head.startswith(BOM):
            head = head[len(BOM) :].lstrip()
        self._head = b""
        if BOM.startswith(head):
            self._head = head  # nothing yet, or a piece of the mark
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
        """Data that is not one JSON text to the letter: several, or one as some vendors write
        it.
        """
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
