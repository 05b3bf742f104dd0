"""The events of a stream, each a chunk of the answer (numbers of vendors.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from adapters.openai.answer import Gathered
from adapters.openai.errors import classify, has_complaint
from adapters.openai.sse import Event, EventDecoder
from adapters.openai.texts import read_json
from adapters.openai.usual_chunks import UsualChunk, read_usual
from bot.domain.errors import ModelTransport

DONE = b"[DONE]"
IN_A_ROW = 3  # chunks of other kinds, such as calls, after which none is tried as a usual one


class ChunkReader:
    """Reads the bytes of an event stream into `gathered`."""

    def __init__(self, gathered: Gathered) -> None:
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
