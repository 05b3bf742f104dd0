"""Bytes of an HTTP 200 in, one `RawAnswer` or one `ModelError` out: event streams and plain JSON
alike.

What a body is shows in its first byte, not in its content type (1.14). Invariant: an answer that
did not end is never handed on: no finish reason and no usage is a cut stream (2.2), unless its
server never has either; an `error` in any chunk is the error (2.3). Errors are logged, so they
never repeat what may be the model's own words: of a body that cannot be read they tell size and
shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from frostagent.models.openai.answer import GatheredAnswer, RawAnswer, UsualChunk, read_usual
from frostagent.models.openai.errors import (
    MAX_SEARCHED,
    TITLE,
    classify,
    clean_words,
    has_complaint,
)
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


DONE = b"[DONE]"
IN_A_ROW = 3  # chunks of other kinds, such as calls, after which none is tried as a usual one


class ChunkReader:
    """Reads the bytes of an event stream into `gathered`."""

    def __init__(self, gathered: GatheredAnswer) -> None:
        self.is_done = False  # whether the end marker was read
        self.is_counted = False  # whether the last chunk was one that only counts tokens
        self._gathered = gathered
        self._draft = gathered.draft
        self._decoder = EventDecoder()
        self._others = 0  # chunks in a row that were not usual ones
        self._has_deltas = False

    def feed(self, data: bytes) -> None:
        """Take some bytes. Raises ModelError for an error inside, ModelTransport for an unreadable
        chunk.
        """
        self._read_events(self._decoder.feed(data))

    def end(self) -> None:
        """Take a last event without its blank line: whole, or cut in the middle, which only the
        answer tells. Raises as `feed` does.
        """
        if (rest := self._decoder.finish()) is None:
            return
        try:
            self._read_events([rest])
        except ModelTransport as error:
            if not isinstance(error.__cause__, ValueError):
                raise

    def _read_events(self, events: Iterable[Event]) -> None:
        for name, data in events:
            if self.is_done or data == DONE:
                self.is_done = True
                return
            if self._others < IN_A_ROW and not name:
                if (usual := read_usual(data)) is not None:
                    self._others = 0
                    self._read_usual(usual)
                    continue
                self._others += 1
            try:
                chunk = orjson.loads(data)
            except orjson.JSONDecodeError:
                self._read_strange(name, data)
            else:
                self._read_chunk(name, chunk)

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
            if name == b"error":
                raise classify(None, piece) from error
            raise ModelTransport(f"an unreadable chunk of {len(piece)} bytes") from error
        self._read_chunk(name, chunk)

    def _read_usual(self, chunk: UsualChunk) -> None:
        for choice in chunk.choices:
            if not choice.index:
                self._has_deltas = True
                self._draft.take(choice.delta)
                if choice.finish_reason:
                    self._gathered.end(choice.finish_reason, choice.native_finish_reason)
        self.is_counted = bool(chunk.usage) and not chunk.choices
        if chunk.usage or not self._gathered.is_framed:
            self._gathered.frame(chunk.usage, chunk.id, chunk.model)

    def _read_chunk(self, name: bytes, chunk: object) -> None:
        if not isinstance(chunk, dict):
            raise ModelTransport(f"a chunk that is no object but {type(chunk).__name__}")
        if chunk.get("error") or name == b"error":
            raise classify(None, chunk)
        choices = chunk.get("choices")
        self.is_counted = False
        if choices and isinstance(choices, list):
            for choice in choices:
                # Other candidates are not ours (2.15).
                if isinstance(choice, dict) and not choice.get("index"):
                    self._read_choice(choice)
        elif chunk.get("usage"):
            # An end only as the last chunk: some vendors count all the way (2.5).
            self.is_counted = True
        elif choices is None and has_complaint(chunk):
            raise classify(None, chunk)
        if chunk.get("usage") or "x_groq" in chunk or not self._gathered.is_framed:
            self._gathered.read_frame(chunk)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        delta, message = choice.get("delta"), choice.get("message")
        is_last = bool(choice.get("finish_reason"))
        if isinstance(delta, dict):
            self._has_deltas = True
            self._draft.add(delta)  # a `message` beside it says it all again (2.16)
        elif (
            delta is None
            and isinstance(message, dict)
            and not self._draft.pieces
            and (is_last or not self._has_deltas)
        ):
            self._draft.add(message, whole=True)  # a whole answer dressed as a stream
        if is_last:
            self._gathered.read_end(choice)
        if (usage := choice.get("usage")) and isinstance(usage, dict):
            self._gathered.usage = usage
        if choice.get("error"):
            raise classify(None, choice)


def _pieces(data: bytes) -> list[bytes]:
    """The JSON texts in the lines of one event: one, unless a server leaves the blank lines between
    its events out.
    """
    try:
        read_json(data)
    except ValueError:
        return [line for line in data.split(b"\n") if line.strip()]
    return [data]


NAME = re.compile(r"[A-Za-z_]{1,32}")
MAX_NAMES = 8  # fields of an object without an answer that are named in the error


def read_whole(data: bytes, gathered: GatheredAnswer) -> None:
    """Read the one answer of a body. Raises the ModelError it holds, ModelTransport where it was
    cut or is none, ModelRejected for a web page.
    """
    body = _unwrap(_read_body(data))
    match body:
        case dict() if not body.get("error"):
            choices = body.get("choices")
        case dict() | [dict(), *_]:
            raise classify(None, body)
        case _:
            raise _no_choices(body, len(data))
    listed = choices if isinstance(choices, list) else ()
    ours = [choice for choice in listed if isinstance(choice, dict)]
    if not ours:
        raise classify(None, body) if has_complaint(body) else _no_choices(body, len(data))
    choice = next((choice for choice in ours if not choice.get("index")), ours[0])
    if isinstance(message := choice.get("message") or choice.get("delta"), dict):
        gathered.draft.add(message, whole=True)
    if choice.get("error"):
        raise classify(None, choice)
    gathered.read_end(choice)
    gathered.read_frame(body)


def _read_body(data: bytes) -> Any:
    if not data:
        raise ModelTransport("the answer was empty")
    try:
        return read_json(data)
    except ValueError as error:
        if data.startswith(b"<"):
            raise _web_page(data) from error
        raise ModelTransport(f"the answer was cut or is no JSON: {len(data)} bytes") from error


def _unwrap(body: Any) -> Any:
    """The body in the `data` of some gateways (1.9), or as it is."""
    match body:
        case {"data": {"choices": _} as inner} if "choices" not in body:
            return inner
        case _:
            return body


def _no_choices(body: object, size: int) -> ModelTransport:
    """The error that names the fields of an object without an answer, and nothing in them."""
    fields = body if isinstance(body, dict) else ()
    names = [name for name in fields if NAME.fullmatch(name)][:MAX_NAMES]
    told = f" with {', '.join(names)}" if names else ""
    return ModelTransport(f"the answer holds no choices: {size} bytes{told}")


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
        self._head = b""
        self._size = 0
        self._whole: bytearray | None = None
        self._chunks: ChunkReader | None = None
        self._gathered = GatheredAnswer()
        self._draft = self._gathered.draft
        self._is_over = False

    @property
    def is_done(self) -> bool:
        """Whether the stream's end marker was read."""
        return self._chunks is not None and self._chunks.is_done

    @property
    def is_stream(self) -> bool:
        """Whether the body has turned out to be one."""
        return self._chunks is not None

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
        return self._gathered.usage

    @property
    def is_complete(self) -> bool:
        """Whether the stream has said all an answer needs, so that no later mishap can cost it."""
        gathered = self._gathered
        return gathered.finish_reason is not None or (self.is_done and gathered.usage is not None)

    @property
    def is_explained(self) -> bool:
        """Whether a stream says in some way of its own that it is whole."""
        return self._chunks is not None and (self.is_complete or self._chunks.is_counted)

    @property
    def is_unexplained(self) -> bool:
        """Whether a stream came to its end marker with words, and says nothing else of its end
        (2.2).

        Calls are not among them: what is done cannot be taken back, so they need an answer that is
        known to be whole.
        """
        return self.is_done and not self.is_explained and self._draft.has_words_only

    def feed(self, chunk: bytes) -> None:
        """Take some bytes.

        Raises ModelError for an error inside the stream, ModelTransport for an unreadable chunk,
        ModelRejected for an answer that does not end.
        """
        self._size += len(chunk)
        if self._chunks is not None:
            self._chunks.feed(chunk)
            if self._draft.is_too_long:
                raise self._flood()
        elif self._whole is not None:
            self._whole += chunk
        else:
            self._sniff(chunk)

    def end(self) -> None:
        """There is no more. Raises as `feed` does."""
        if self._chunks is not None and not self._is_over:
            self._chunks.end()
        self._is_over = True

    def finish(self, *, unexplained: bool = False) -> RawAnswer:
        """The answer. Raises ModelTransport where it was cut short or is none, or the ModelError it
        holds instead.

        `unexplained`: also one that does not say why it ended, because its server never does.
        """
        self.end()
        if self._chunks is None:
            read_whole(bytes(self._whole or b""), self._gathered)
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
        done = None if self._chunks is None else self._chunks.is_done
        return self._gathered.freeze(done=done, unexplained=self.is_unexplained)

    def _flood(self) -> ModelRejected:
        """Not a failure to try again: asking again would bring another one."""
        return ModelRejected(f"the answer does not end: it was stopped after {self._size} bytes")

    def _sniff(self, chunk: bytes) -> None:
        """Find out what the body is; keep-alive blanks may come first, kilobytes of them (1.13)."""
        head = (self._head + chunk).lstrip()
        if head.startswith(BOM):
            head = head[len(BOM) :].lstrip()
        if BOM.startswith(head):
            self._head = head  # nothing yet, or a piece of the mark
            return
        self._head = b""
        if head[:1] in b"{[<":
            self._whole = bytearray(head)
        else:
            self._chunks = ChunkReader(self._gathered)
            self._chunks.feed(head)
            if self._draft.is_too_long:
                raise self._flood()
