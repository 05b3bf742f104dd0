"""Structured answers: the prompt for a value, how it is parsed, and one chance to correct it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from jsonschema.protocols import Validator
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from typing_extensions import TypeForm

from frostagent.engine.json_schemas import describe, fill_defaults, validator_of
from frostagent.models.request_repairs import with_notice
from frostagent.reply import Reply, Structured, UnfitAnswer
from frostagent.text.lenient_json import loads
from frostagent.types.arguments import resolve_reference, schema_types
from frostagent.types.messages import Message
from frostagent.types.schema import UnsuitableType

T = TypeVar("T")

Write = Callable[[tuple[Message, ...]], Awaitable[Reply]]
"""A run without tools over a whole transcript."""

ASK = (
    "Now give what you have found as one JSON value that fits this JSON schema. "
    "Answer with the JSON alone: no other words, no code fence.\n{schema}"
)
ASK_AT_ONCE = (
    "Answer with one JSON value that fits this JSON schema, and with the JSON alone: "
    "no other words, no code fence.\n{schema}"
)
MEND = (
    "Your answer does not fit the schema: {problems}. "
    "Answer once more, with the whole corrected JSON value alone."
)

FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
SHOWN = 80  # characters of a wrong value that an error message quotes
CHOICES = frozenset({"anyOf", "oneOf", "enum", "const", "not"})
DEFINITIONS = ("$defs", "definitions", "$schema", "$id")
"""Keywords that stay at the root of a schema, because references point there."""


WRAPPED = "answer"  # the property of an answer that is not an object


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """A schema to fill in, always of an object, as vendors require. Another kind of value is its
    only property (`is_wrapped`). `check` returns the typed value, or raises _Misfit.
    """

    schema: Mapping[str, Any]
    check: Callable[[Any], T]
    is_wrapped: bool = False

    @property
    def text(self) -> str:
        return json.dumps(self.schema, ensure_ascii=False)

    def read(self, text: str) -> T:
        """The value in an answer. Raises UnfitAnswer."""
        try:
            return self._check(find_json(text))
        except _Misfit as misfit:
            raise UnfitAnswer(text, misfit.problems) from None

    def _check(self, value: Any) -> T:
        if not (self.is_wrapped and isinstance(value, dict) and value.keys() == {WRAPPED}):
            return self.check(value)
        try:
            return self.check(value[WRAPPED])
        except _Misfit as misfit:
            with contextlib.suppress(_Misfit):
                return self.check(value)  # not wrapped, but the value itself has this form
            raise _Misfit(*map(_within_answer, misfit.problems)) from None


def _within_answer(problem: str) -> str:
    return problem if problem.startswith(f"{WRAPPED}:") else f"{WRAPPED}.{problem}"


class _Misfit(Exception):
    def __init__(self, *problems: str) -> None:
        self.problems = problems


def form_of(schema: TypeForm[T] | Mapping[str, Any]) -> Form[Any]:
    """The form of a type that pydantic knows, or of a JSON schema. Raises UnsuitableType."""
    if isinstance(schema, Mapping):
        whole = dict(schema)
        validator = validator_of(whole, "the schema of the answer")
        return _form(whole, lambda value: _check_by_schema(validator, whole, value))
    try:
        adapter: TypeAdapter[T] = TypeAdapter(schema)
        whole = adapter.json_schema()
    except PydanticUserError as error:
        raise UnsuitableType(f"the type of the answer: {error.message}") from error
    return _form(whole, lambda value: _check_by_type(adapter, value))


def _form(schema: dict[str, Any], check: Callable[[Any], T]) -> Form[T]:
    if schema_types(resolve_reference(schema, schema)) in {(("object",), False), ((), False)} and (
        CHOICES.isdisjoint(schema)
    ):
        return Form(schema, check)
    inner = {word: value for word, value in schema.items() if word not in DEFINITIONS}
    wrapping = {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}
    around = {word: schema[word] for word in DEFINITIONS if word in schema}
    return Form({**wrapping, **around}, check, is_wrapped=True)


async def fill_in(
    form: Form[T], found: Reply, transcript: tuple[Message, ...], write: Write
) -> Structured[T]:
    """Ask for the value, and once more if it does not fit. Raises UnfitAnswer."""
    asked = with_notice(transcript, ASK.format(schema=form.text))
    reply = await write(asked)
    return await _mended(form, _added(found, reply), asked, reply, write)


async def fill_in_at_once(
    form: Form[T], question: tuple[Message, ...], write: Write
) -> Structured[T]:
    """Ask the question and request its value at once. If the answer is prose, ask for the value as
    after a run with tools. Raises as `fill_in` does.
    """
    asked = with_notice(question, ASK_AT_ONCE.format(schema=form.text))
    reply = await write(asked)
    try:
        find_json(reply.text)
    except _Misfit:
        return await fill_in(form, reply, (*question, *reply.new_messages), write)
    return await _mended(form, reply, asked, reply, write)


async def _mended(
    form: Form[T], found: Reply, asked: tuple[Message, ...], reply: Reply, write: Write
) -> Structured[T]:
    """The value in `reply`, which is sent back once if it does not fit."""
    try:
        value = form.read(reply.text)
        return Structured(value=value, reply=found.with_output(value))
    except UnfitAnswer as misfit:
        notice = MEND.format(problems=misfit)
    again = await write(with_notice((*asked, *reply.new_messages), notice))
    value = form.read(again.text)
    return Structured(value=value, reply=_added(found, again).with_output(value))


def _added(found: Reply, reply: Reply) -> Reply:
    """The first reply with the text of a later one, and the cost of both."""
    usage, steps = found.usage + reply.usage, found.steps + reply.steps
    return replace(found, output=reply.text, text=reply.text, usage=usage, steps=steps)


def find_json(text: str) -> Any:
    """The JSON in an answer: the whole text, a code fence, or first to last bracket."""
    for candidate in _candidates(text):
        try:
            return loads(candidate)
        except ValueError:
            continue
    raise _Misfit("it is not JSON")


def _candidates(text: str) -> Iterator[str]:
    yield text.strip()
    yield from FENCE.findall(text)
    for first, last in ("{}", "[]"):
        if first in text and last in text:
            yield text[text.index(first) : text.rindex(last) + 1]


def _check_by_schema(validator: Validator, schema: dict[str, Any], value: Any) -> Any:
    filled = fill_defaults(value, schema, schema)
    errors = list(validator.iter_errors(filled))
    if errors:
        raise _Misfit(*(line for error in errors for line in describe(error, root=WRAPPED)))
    return filled


def _check_by_type(adapter: TypeAdapter[T], value: Any) -> T:
    try:
        return adapter.validate_json(json.dumps(value))
    except ValidationError as error:
        raise _Misfit(*(_line(dict(item)) for item in error.errors(include_url=False))) from None


def _line(error: dict[str, Any]) -> str:
    path = ".".join(map(str, error["loc"])) or WRAPPED
    got = repr(error["input"])
    return f"{path}: {error['msg']}, got {got if len(got) <= SHOWN else got[: SHOWN - 3] + '...'}"
