"""Chunks as nearly all of nearly every stream are: words, thoughts, an end, a count.

Read into types they take a quarter less than field by field, and answers have hundreds. What a
chunk holds besides is not looked at; what makes it another kind of chunk (calls, errors, parts, a
field that is not what vendors.md says) makes it none of these.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder

NoText: TypeAlias = Annotated[str, Meta(max_length=0)] | None
NoList: TypeAlias = Annotated[list[Any], Meta(max_length=0)] | None


class UsualDelta(Struct):
    """Words, thoughts under either of their names, or nothing."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: NoList = None
    refusal: NoText = None
    tool_calls: NoList = None
    function_call: None = None


class UsualChoice(Struct):
    """A candidate's delta, and how it ended."""

    delta: UsualDelta
    index: int | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    usage: None = None
    error: None = None


class UsualEnvelope(Struct):
    """What stands around a chunk besides: no usage yet."""

    usage: None = None


class UsualChunk(Struct):
    """The candidates; in some chunks, usage."""

    choices: list[UsualChoice]
    usage: dict[str, Any] | None = None
    error: None = None
    x_groq: UsualEnvelope | None = None
    id: str | None = None
    model: str | None = None


_decode = Decoder(UsualChunk).decode


def read_usual(data: bytes) -> UsualChunk | None:
    """The chunk, or None where it is of another kind, or none at all."""
    try:
        return _decode(data)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return None
