"""Bytes of an HTTP 200 in, one `RawAnswer` or one `ModelError` out: event streams and plain JSON
alike.

What a body is shows in its first byte, not in its content type (1.14). Invariant: an answer that
did not end is never handed on: no finish reason and no usage is a cut stream (2.2), unless its
server never has either; an `error` in any chunk is the error (2.3). Errors are logged, so they
never repeat what may be the model's own words: of a body that cannot be read they tell size and
shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.openai.answer import Gathered, RawAnswer
from adapters.openai.chunks import ChunkReader
from adapters.openai.whole import read_whole
from bot.domain.errors import ModelRejected, ModelTransport

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
        self._gathered = Gathered()
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
