"""Collects one raw answer from the chunks of a stream or from a whole body.

However a vendor splits answers, the result is a `RawAnswer`, which `wire` interprets. An error in a
chunk or a body is raised (2.3). Errors are logged, so they never quote the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import orjson
from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder

from frostagent.models.openai.errors import classify, has_complaint
from frostagent.models.openai.vendor_text import repair_text, short_word, to_json
from frostagent.types.errors import ModelTransport

SPREAD = 8  # times the necessary length; longer text cannot be the same object again
CALL_FIELDS = frozenset({"id", "index", "type", "function", "custom"})


@dataclass(frozen=True, slots=True)
class RawCall:
    """A tool call as received. `id` and `name` may be empty; `arguments` is None if not sent.

    `extras` are vendor fields to send back (Gemini's signatures).
    """

    id: str
    name: str
    arguments: str | None
    extras: Mapping[str, Any] = field(default_factory=dict)


class CallDraft:
    """An incomplete call. Its id and name are set once and never appended to (2.8, 2.11)."""

    __slots__ = ("_pieces", "_size", "extras", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.extras: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._size = 0

    @property
    def arguments(self) -> str | None:
        """The arguments so far; None if none came."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else None

    def add(self, call: Mapping[str, Any], identity: str, name: str, arguments: object) -> None:
        self.id = self.id or identity
        self.name = self.name or name
        if isinstance(arguments, str):
            if not self.says(arguments):
                self._pieces.append(arguments)
                self._size += len(arguments)
        elif isinstance(arguments, dict | list):  # 3.4
            self._pieces = [to_json(arguments)]
            self._size = len(self._pieces[0])
        if not CALL_FIELDS.issuperset(call):
            self.extras.update(
                {key: value for key, value in call.items() if key not in CALL_FIELDS and value}
            )

    def is_whole(self) -> bool:
        return _canonical(self.arguments) is not None

    def says(self, arguments: object) -> bool:
        """Whether these are the same complete arguments again, in any spelling."""
        again = _canonical(arguments) if self._size else None
        return (
            again is not None
            and self._size < SPREAD * len(again)
            and again == _canonical(self.arguments)
        )

    @property
    def key(self) -> tuple[object, ...] | None:
        """Equal for a call that is sent again: by its id, or without one by its index."""
        said = _canonical(self.arguments)
        known = self.id or self.index is not None
        return (
            (self.id, None if self.id else self.index, self.name, said)
            if known and said is not None
            else None
        )

    def freeze(self) -> RawCall:
        arguments = self.arguments
        return RawCall(
            self.id, self.name, None if arguments is None else repair_text(arguments), self.extras
        )


class CallDrafts:
    """Assigns deltas to calls: by id, then by index, then by order (2.9-2.14).

    None is reliable alone: ids may be empty or repeated, indexes missing, with gaps, or all zero.
    """

    def __init__(self) -> None:
        self._calls: list[CallDraft] = []
        self._by_id: dict[str, CallDraft] = {}
        self._by_index: dict[int, CallDraft] = {}
        self._are_whole = False

    def add(self, call: Mapping[str, Any], *, whole: bool) -> None:
        """Add one delta of a call, or one complete call (`whole`), which is never merged."""
        function = call.get("function")
        if not isinstance(function, dict):
            function = {}
        identity, name, index = (
            short_word(call.get("id")),
            short_word(function.get("name")),
            call.get("index"),
        )
        if not isinstance(index, int):
            index = None
        arguments = function.get("arguments")
        draft = None if whole else self._find(identity, index, name, arguments)
        if draft is None:
            draft = CallDraft(index)
            self._calls.append(draft)
            self._are_whole |= whole
        draft.add(call, identity, name, arguments)
        if draft.id:
            self._by_id[draft.id] = draft
        if index is not None:
            self._by_index[index] = draft

    def freeze(self) -> tuple[RawCall, ...]:
        """The calls, without repetitions in a stream: an effect must happen once."""
        if self._are_whole or len(self._calls) < 2:
            return tuple(draft.freeze() for draft in self._calls)
        kept: dict[object, CallDraft] = {}
        for draft in self._calls:
            kept.setdefault(draft.key or draft, draft)
        return tuple(draft.freeze() for draft in kept.values())

    def _find(
        self, identity: str, index: int | None, name: str, arguments: object
    ) -> CallDraft | None:
        at_index = None if index is None else self._by_index.get(index)
        if draft := self._by_id.get(identity):
            return (
                None
                if _is_another(draft, name, arguments, elsewhere=at_index is not draft)
                else draft
            )
        if identity:
            return (
                at_index if at_index and not (at_index.id and name) else None
            )  # an id alone begins no call
        if index is not None:
            return (
                at_index
                if at_index and not _is_another(at_index, name, arguments, elsewhere=False)
                else None
            )
        if not self._calls or (name and self._calls[-1].name):
            return None
        return self._calls[-1]


def _is_another(draft: CallDraft, name: str, arguments: object, *, elsewhere: bool) -> bool:
    """Whether a delta under a known id or index begins a new call.

    It does if it names another function, or the same one again when that call is complete: some
    vendors give all parallel calls one id or index 0 (2.13, 2.14). A complete call repeated
    verbatim is not new.
    """
    if not name or not draft.name:
        return False
    if name != draft.name:
        return True
    if not (arguments or elsewhere) or arguments == draft.arguments:
        return False
    return draft.is_whole()


def _canonical(arguments: object) -> bytes | None:
    """The same bytes for all spellings of an object; None for anything else."""
    if isinstance(arguments, str) and (bare := arguments.strip())[:1] + bare[-1:] != "{}":
        # The usual case for a piece; parsing it would dominate the time.
        return None
    try:
        value = orjson.loads(arguments) if isinstance(arguments, str) else arguments
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if isinstance(value, dict) else None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None


# Vendors may send the same text under both names: only one is read.
REASONING_FIELDS = ("reasoning_content", "reasoning")
MAX_SAID = 200_000  # characters of text and arguments: a longer answer does not end
MAX_THOUGHT = 1_000_000
NAME = re.compile(r"[A-Za-z_]{1,32}")
MAX_NAMES = 8  # fields of an object without an answer that the error names


class RawAnswer(Struct, frozen=True, kw_only=True):
    """A whole answer in the vendor's terms.

    `done` says whether the stream ended with its marker (None without a stream); `reasoning_field`
    is the wire name of the reasoning; `leaked` means that the text contains or contained markup of
    a call that could not be used; `unexplained` that a stream ended without a reason.
    """

    text: str = ""
    reasoning: str = ""
    reasoning_field: str = ""
    reasoning_details: tuple[dict[str, Any], ...] = ()
    refusal: str = ""
    tool_calls: tuple[RawCall, ...] = ()
    function_call: RawCall | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str = ""
    id: str = ""
    done: bool | None = None
    leaked: bool = False
    unexplained: bool = False


# --- usual chunks ---------------------------------------------------------------------------------

NoText: TypeAlias = Annotated[str, Meta(max_length=0)] | None
NoList: TypeAlias = Annotated[list[Any], Meta(max_length=0)] | None


class UsualDelta(Struct):
    """Text, reasoning under either name, or nothing."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: NoList = None
    refusal: NoText = None
    tool_calls: NoList = None
    function_call: None = None


class UsualChoice(Struct):
    delta: UsualDelta
    index: int | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    usage: None = None
    error: None = None


class UsualChunk(Struct):
    """A typical chunk: text, reasoning, an end, or token counts. Other fields are skipped; a field
    of another type makes it another kind of chunk.

    Typed parsing takes half the time, and a stream has hundreds of chunks.
    """

    choices: list[UsualChoice]
    usage: dict[str, Any] | None = None
    error: None = None
    x_groq: None = None
    id: str | None = None
    model: str | None = None


_decode_usual = Decoder(UsualChunk).decode


def read_usual_chunk(data: bytes) -> UsualChunk | None:
    """The chunk; None if it is of another kind or not JSON."""
    try:
        return _decode_usual(data)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class AnswerDraft:
    """The answer so far. Every field of a delta counts, whatever else is in it (2.17)."""

    def __init__(self) -> None:
        self.pieces = 0  # of the answer: the first deltas often contain only a role
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.is_counted = False  # whether the last chunk only counts tokens
        self._native_finish_reason: str | None = None
        self._model = ""
        self._id = ""
        self._has_deltas = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._detail: list[str] = []  # pieces to be joined to the last one
        self._said = 0
        self._thought = 0
        self._refusal: list[str] = []
        self._calls: CallDrafts | None = None
        self._function_call: CallDraft | None = None

    def add_chunk(self, chunk: object, *, is_error: bool = False) -> None:
        """Add one chunk of a stream. `is_error` means that its event had that name. Raises the
        ModelError in it, ModelTransport if it is not an object.
        """
        if not isinstance(chunk, dict):
            raise ModelTransport(f"a chunk that is no object but {type(chunk).__name__}")
        if is_error or chunk.get("error"):
            raise classify(None, chunk)
        choices, usage = chunk.get("choices"), chunk.get("usage")
        self.is_counted = False
        if choices and isinstance(choices, list):
            for choice in choices:
                # Skip other candidates (2.15).
                if isinstance(choice, dict) and not choice.get("index"):
                    self._add_choice(choice)
        elif usage:
            # The end only if it is the last chunk: some vendors count throughout (2.5).
            self.is_counted = True
        elif choices is None and has_complaint(chunk):
            raise classify(None, chunk)
        if usage or "x_groq" in chunk or not (self._id and self._model):
            self._add_frame(chunk)

    def add_usual_chunk(self, chunk: UsualChunk) -> None:
        """As `add_chunk`, for a typed chunk."""
        for choice in chunk.choices:
            if choice.index:
                continue
            self._has_deltas = True
            delta = choice.delta
            if content := delta.content:
                self.pieces += 1
                self._text.append(content)
                self._said += len(content)
            if delta.reasoning_content:
                self._think(delta.reasoning_content, "reasoning_content")
            elif delta.reasoning:
                self._think(delta.reasoning, "reasoning")
            if choice.finish_reason:
                self.finish_reason = choice.finish_reason
                self._native_finish_reason = choice.native_finish_reason
        usage = chunk.usage
        self.is_counted = bool(usage) and not chunk.choices
        if usage:
            self.usage = usage
        self._id = self._id or chunk.id or ""
        self._model = self._model or chunk.model or ""

    def add_body(self, body: object, size: int) -> None:
        """Add the only answer of a body of `size` bytes. Raises the ModelError in it,
        ModelTransport if it has no answer.
        """
        body = _unwrap(body)
        match body:
            case dict() if not body.get("error"):
                choices = body.get("choices")
            case dict() | [dict(), *_]:
                raise classify(None, body)
            case _:
                raise _no_choices(body, size)
        listed = choices if isinstance(choices, list) else ()
        ours = [choice for choice in listed if isinstance(choice, dict)]
        if not ours:
            raise classify(None, body) if has_complaint(body) else _no_choices(body, size)
        choice = next((choice for choice in ours if not choice.get("index")), ours[0])
        if isinstance(message := choice.get("message") or choice.get("delta"), dict):
            self.add(message, whole=True)
        if choice.get("error"):
            raise classify(None, choice)
        self._end(choice)
        self._add_frame(body)

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        is_last = bool(choice.get("finish_reason"))
        if isinstance(delta, dict):
            self._has_deltas = True
            self.add(delta)  # a `message` beside it repeats everything (2.16)
        elif (
            delta is None
            and isinstance(message := choice.get("message"), dict)
            and not self.pieces
            and (is_last or not self._has_deltas)
        ):
            self.add(message, whole=True)  # a whole answer in the form of a stream
        if is_last:
            self._end(choice)
        if (usage := choice.get("usage")) and isinstance(usage, dict):
            self.usage = usage
        if choice.get("error"):
            raise classify(None, choice)

    def _end(self, choice: Mapping[str, Any]) -> None:
        reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
        self.finish_reason = reason if isinstance(reason, str) else None
        self._native_finish_reason = native if isinstance(native, str) else None

    def _add_frame(self, body: Mapping[str, Any]) -> None:
        """Set usage, id and model. The last usage counts; usages are never added up (2.5)."""
        usage, identity, model = body.get("usage"), body.get("id"), body.get("model")
        if not usage and isinstance(inner := body.get("x_groq"), dict):
            usage = inner.get("usage")
        if usage and isinstance(usage, dict):
            self.usage = usage
        if not self._id and isinstance(identity, str):
            self._id = identity
        if not self._model and isinstance(model, str):
            self._model = model

    def add(self, delta: Mapping[str, Any], *, whole: bool = False) -> None:
        """Add one delta, or one whole message, which has the same fields."""
        if content := delta.get("content"):
            self.pieces += 1
            if isinstance(content, str):
                self._text.append(content)
                self._said += len(content)
            else:
                self._add_content(content)
        details = delta.get("reasoning_details")
        for name in REASONING_FIELDS:
            if (thought := delta.get(name)) and isinstance(thought, str):
                self._think(thought, name)
                break
        else:
            if details:
                self._think(_thought(details), "reasoning_details")
        if details:
            self._add_details(details, whole=whole)
        if (refusal := delta.get("refusal")) and isinstance(refusal, str):
            self.pieces += 1
            self._refusal.append(refusal)
            self._said += len(refusal)
        if isinstance(calls := delta.get("tool_calls"), list):
            for call in calls:
                if isinstance(call, dict):
                    self.pieces += 1
                    self._calls = self._calls or CallDrafts()
                    self._calls.add(call, whole=whole)
                    self._said += _size(call.get("function"))
        if (call := delta.get("function_call")) and isinstance(call, dict):
            self._function_call = self._function_call or CallDraft(None)
            self.pieces += bool(self._function_call.name or call.get("name"))
            self._function_call.add({}, "", short_word(call.get("name")), call.get("arguments"))
            self._said += _size(call)

    @property
    def said(self) -> tuple[list[str], list[str]]:
        """The pieces of text and of reasoning so far, as live lists."""
        return self._text, self._reasoning

    @property
    def has_words_only(self) -> bool:
        """Whether there is text, and no call."""
        return bool(self._text) and not (
            self._calls or (self._function_call and self._function_call.name)
        )

    @property
    def is_too_long(self) -> bool:
        """Whether it is too long for an answer, including text in parts."""
        return self._said > MAX_SAID or self._thought > MAX_THOUGHT

    def freeze(self, *, done: bool | None, unexplained: bool = False) -> RawAnswer:
        self._end_detail()
        return RawAnswer(
            text=repair_text("".join(self._text)),
            reasoning=repair_text("".join(self._reasoning)) if self._reasoning else "",
            reasoning_field=self._reasoning_field,
            reasoning_details=tuple(self._details),
            refusal=repair_text("".join(self._refusal)) if self._refusal else "",
            tool_calls=self._calls.freeze() if self._calls else (),
            # 1.11
            function_call=call.freeze() if (call := self._function_call) and call.name else None,
            finish_reason=self.finish_reason,
            native_finish_reason=self._native_finish_reason,
            usage=self.usage,
            model=self._model,
            id=self._id,
            done=done,
            unexplained=unexplained,
        )

    def _think(self, thought: str, name: str) -> None:
        if thought:
            self.pieces += 1
            self._reasoning.append(thought)
            self._thought += len(thought)
            self._reasoning_field = self._reasoning_field or name

    def _add_content(self, content: object) -> None:
        """Add content that is not text: parts (1.2), or a requested JSON object (1.3)."""
        if isinstance(content, dict):
            self._text.append(to_json(content))
            self._said += len(self._text[-1])
        elif isinstance(content, list):
            for part in content:
                match part:
                    case str(text) | {"type": "text" | "output_text", "text": str(text)}:
                        self._text.append(text)
                        self._said += len(text)
                    case {"type": "refusal", "refusal": str(text)}:
                        self._refusal.append(text)
                        self._said += len(text)
                    case {"type": "thinking" | "reasoning" as kind}:
                        self._think(_thought(part.get(kind) or part.get("text")), "content")
                    case _:
                        pass  # audio, references: nothing a chat could show

    def _add_details(self, details: object, *, whole: bool) -> None:
        """Join the pieces of a detail, so that it is sent back as if unstreamed (section 5)."""
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, dict):
                continue
            self.pieces += 1
            last = self._details[-1] if self._details and not whole else {}
            key = _growing(last)
            if key and _is_piece(detail, last):
                self._detail.append(piece := short_word(detail.get(key), strip=False))
                self._thought += len(piece)
                last.update(
                    {name: value for name, value in detail.items() if value and name != key}
                )
            else:
                self._end_detail()
                self._details.append(dict(detail))

    def _end_detail(self) -> None:
        """Join the pieces to the last detail at once: one by one takes quadratic time."""
        if self._detail and (key := _growing(last := self._details[-1])):
            last[key] = "".join([last[key], *self._detail])
        self._detail = []


def _unwrap(body: Any) -> Any:
    """The body inside the `data` of some gateways (1.9), or unchanged."""
    match body:
        case {"data": {"choices": _} as inner} if "choices" not in body:
            return inner
        case _:
            return body


def _no_choices(body: object, size: int) -> ModelTransport:
    """An error with the field names of an object without an answer, but no values."""
    fields = body if isinstance(body, dict) else ()
    names = [name for name in fields if NAME.fullmatch(name)][:MAX_NAMES]
    told = f" with {', '.join(names)}" if names else ""
    return ModelTransport(f"the answer holds no choices: {size} bytes{told}")


def _growing(detail: Mapping[str, Any]) -> str | None:
    """The field of a detail to which its next piece is appended."""
    return next((key for key in ("text", "summary") if isinstance(detail.get(key), str)), None)


def _size(function: object) -> int:
    """The characters of a function's arguments, if they are text."""
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return len(arguments) if isinstance(arguments, str) else 0


def _is_piece(detail: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    same = all(detail.get(key) == last.get(key) for key in ("type", "index"))
    return same and detail.get("id") in {None, last.get("id")}


def _thought(value: object) -> str:
    """The text of reasoning that came as a string or as parts."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else ()
    return "".join(
        short_word(part.get("text") or part.get("summary"), strip=False)
        for part in parts
        if isinstance(part, dict)
    )
