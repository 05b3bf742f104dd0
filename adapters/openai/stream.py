"""Bytes of an HTTP 200 in, one `Answer` or one `ModelError` out: event streams and plain JSON
alike.

What a body is shows in its first byte, not in its content type (1.14). Invariant: an answer that
did not end is never handed on: no finish reason and no usage is a cut stream (2.2), unless its
server never has either; an `error` in any chunk is the error (2.3). Errors are logged, so they
never repeat what may be the model's own words: of a body that cannot be read they tell size and
shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from adapters.openai.answer import Answer, Draft
from adapters.openai.errors import MAX_SEARCHED, TITLE, classify, clean, has_complaint
from adapters.openai.sse import Event, EventDecoder
from bot.domain.errors import ModelError, ModelRejected, ModelTransport

BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"
EMPTY = "the answer was empty"
NAME = re.compile(r"[A-Za-z_]{1,32}")
MAX_NAMES = 8  # fields of an object without an answer that are named in the error


class AnswerReader:
    """Fed with the body as it comes, in pieces of any size; `finish` when there is no more. Good
    for one answer.
    """

    def __init__(self) -> None:
        self._head = b""
        self._size = 0
        self._whole: bytearray | None = None
        self._events: EventDecoder | None = None
        self._draft = Draft()
        self._finish_reason: str | None = None
        self._native_finish_reason: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._model = ""
        self._id = ""
        self._done = False
        self._counted = False
        self._is_over = False

    @property
    def is_done(self) -> bool:
        """Whether the stream's end marker was read."""
        return self._done

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
    def is_complete(self) -> bool:
        """Whether the stream has said all an answer needs, so that no later mishap can cost it."""
        return self._finish_reason is not None or (self._done and self._usage is not None)

    @property
    def is_explained(self) -> bool:
        """Whether a stream says in some way of its own that it is whole."""
        return self.is_stream and (self.is_complete or self._counted)

    @property
    def is_unexplained(self) -> bool:
        """Whether a stream came to its end marker with words, and says nothing else of its end
        (2.2).

        Calls are not among them: what is done cannot be taken back, so they need an answer that is
        known to be whole.
        """
        return (
            self.is_stream and self._done and not self.is_explained and self._draft.has_words_only
        )

    def feed(self, chunk: bytes) -> None:
        """Take some bytes.

        Raises ModelError for an error inside the stream, ModelTransport for an unreadable chunk,
        ModelRejected for an answer that does not end.
        """
        self._size += len(chunk)
        if self._events is not None:
            self._read_events(self._events.feed(chunk))
            self._refuse_a_flood()
        elif self._whole is not None:
            self._whole += chunk
        else:
            self._sniff(chunk)

    def end(self) -> None:
        """There is no more. Raises as `feed` does."""
        if self._events is not None and not self._is_over and (rest := self._events.finish()):
            self._read_rest(rest)
        self._is_over = True

    def finish(self, *, unexplained: bool = False) -> Answer:
        """The answer. Raises ModelTransport where it was cut short or is none, or the ModelError it
        holds instead.

        `unexplained`: also one that does not say why it ended, because its server never does.
        """
        self.end()
        if self._events is None:
            self._read_whole(bytes(self._whole or b""))
        elif not (self.is_explained or (unexplained and self.is_unexplained)):
            if self._draft.is_empty:
                raise ModelTransport(
                    f"there were no choices in the answer, or it was cut: {self._size} bytes"
                )
            raise ModelTransport(
                "the stream was cut: it ended without a finish reason and without usage"
            )
        return self._draft.freeze(
            finish_reason=self._finish_reason,
            native_finish_reason=self._native_finish_reason,
            usage=self._usage,
            model=self._model,
            identity=self._id,
            done=None if self._events is None else self._done,
            unexplained=self.is_unexplained,
        )

    def _refuse_a_flood(self) -> None:
        """Raises ModelRejected: asking again would bring another one."""
        if self._draft.is_too_long:
            raise ModelRejected(f"the answer does not end: it was stopped after {self._size} bytes")

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
            self._events = EventDecoder()
            self._read_events(self._events.feed(head))
            self._refuse_a_flood()

    # --- a stream ---------------------------------------------------------------------------------

    def _read_events(self, events: Iterable[Event]) -> None:
        for name, data in events:
            if self._done or data == DONE:
                self._done = True
                return
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
                self._done = True
                return
            if piece.strip():
                self._read_piece(name, piece)

    def _read_piece(self, name: bytes, piece: bytes) -> None:
        try:
            chunk = _parse(piece)
        except ValueError as error:
            if name == b"error":
                raise classify(None, piece) from error
            raise ModelTransport(f"an unreadable chunk of {len(piece)} bytes") from error
        self._read_chunk(name, chunk)

    def _read_rest(self, event: Event) -> None:
        """A last event without its blank line: whole, or cut in the middle, which `is_complete`
        then tells.
        """
        try:
            self._read_events([event])
        except ModelTransport as error:
            if not isinstance(error.__cause__, ValueError):
                raise

    def _read_chunk(self, name: bytes, chunk: object) -> None:
        if not isinstance(chunk, dict):
            raise ModelTransport(f"a chunk that is no object but {type(chunk).__name__}")
        if chunk.get("error") or name == b"error":
            raise classify(None, chunk)
        choices = chunk.get("choices")
        self._counted = False
        if choices and isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get(
                    "index"
                ):  # other candidates are not ours (2.15)
                    self._read_choice(choice)
        elif chunk.get("usage"):
            self._counted = (
                True  # an end only as the last chunk: some vendors count all the way (2.5)
            )
        elif choices is None and has_complaint(chunk):
            raise classify(None, chunk)
        if (
            chunk.get("usage") or "x_groq" in chunk or not (self._id and self._model)
        ):  # they are the same in all chunks
            self._read_frame(chunk)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        if delta and isinstance(delta, dict):
            self._draft.add(delta)  # a `message` beside it says it all again (2.16)
        elif (
            delta is None
            and self._draft.is_empty
            and isinstance(message := choice.get("message"), dict)
        ):
            self._draft.add(message, whole=True)  # a whole answer dressed as a stream
        if choice.get("finish_reason"):
            self._read_end(choice)
        if (usage := choice.get("usage")) and isinstance(usage, dict):
            self._usage = usage
        if choice.get("error"):
            raise classify(None, choice)

    def _read_end(self, choice: dict[str, Any]) -> None:
        reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
        self._finish_reason = reason if isinstance(reason, str) else None
        self._native_finish_reason = native if isinstance(native, str) else None

    def _read_frame(self, body: dict[str, Any]) -> None:
        """What stands around the choices. The last usage wins, they are never added up (2.5)."""
        usage = body.get("usage")
        if not usage and isinstance(inner := body.get("x_groq"), dict):
            usage = inner.get("usage")
        if usage and isinstance(usage, dict):
            self._usage = usage
        if not self._id and isinstance(identity := body.get("id"), str):
            self._id = identity
        if not self._model and isinstance(model := body.get("model"), str):
            self._model = model

    # --- plain JSON -------------------------------------------------------------------------------

    def _read_whole(self, data: bytes) -> None:
        if not data:
            raise ModelTransport(EMPTY)
        try:
            body = _parse(data)
        except ValueError as error:
            if data.startswith(b"<"):
                raise _web_page(data) from error
            raise ModelTransport(f"the answer was cut or is no JSON: {len(data)} bytes") from error
        if (
            isinstance(body, dict)
            and "choices" not in body
            and isinstance(inner := body.get("data"), dict)
        ):
            body = inner if "choices" in inner else body  # 1.9
        match body:
            case dict() if not body.get("error"):
                choices = body.get("choices")
            case dict() | [dict(), *_]:
                raise classify(None, body)
            case _:
                raise _no_choices(body, len(data))
        ours = (
            [choice for choice in choices if isinstance(choice, dict)]
            if isinstance(choices, list)
            else []
        )
        if not ours:
            raise classify(None, body) if has_complaint(body) else _no_choices(body, len(data))
        choice = next((choice for choice in ours if not choice.get("index")), ours[0])
        if isinstance(message := choice.get("message") or choice.get("delta"), dict):
            self._draft.add(message, whole=True)
            self._refuse_a_flood()
        if choice.get("error"):
            raise classify(None, choice)
        self._read_end(choice)
        self._read_frame(body)


def _pieces(data: bytes) -> list[bytes]:
    """The JSON texts in the lines of one event: one, unless a server leaves the blank lines between
    its events out.
    """
    try:
        _parse(data)
    except ValueError:
        return [line for line in data.split(b"\n") if line.strip()]
    return [data]


def _parse(data: bytes) -> Any:
    """JSON as vendors write it. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # Half an emoji as an escape, NaN, raw control characters: not JSON to the letter, but no
        # reason to lose a turn.
        try:
            return json.loads(data.decode("utf-8", "replace"), strict=False)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _no_choices(body: object, size: int) -> ModelTransport:
    """What stands there instead, by the names of its fields only: enough to know another API by."""
    names = (
        [name for name in body if NAME.fullmatch(name)][:MAX_NAMES]
        if isinstance(body, dict)
        else []
    )
    fields = f" with {', '.join(names)}" if names else ""
    return ModelTransport(f"the answer holds no choices: {size} bytes{fields}")


def _web_page(data: bytes) -> ModelError:
    """A page with status 200 is the vendor's site, not its API: asking again would not help."""
    title = TITLE.search(data[:MAX_SEARCHED].decode("utf-8", "replace"))
    page = f"a web page came instead of an answer ({clean(title[1]) if title else f'{len(data)} bytes'})"
    return ModelRejected(f"{page}: check the base URL, /v1 may be missing")
