"""Parses JSON written by a model: strictly, or in the only other way it can be meant.

Strict parsing goes beyond `json`: no NaN or infinity, no name twice with different values, no lone
surrogates, no excessive nesting. Otherwise JSON may be wrapped or spelled differently
(`docs/protocol/vendors.md` 3.6, 3.7): a code fence, template markers after it, the same object
twice, line breaks in a text, Python's spelling. None of these can complete a call that was cut off:
each needs the last bracket.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

DEEPEST = 100  # nested objects and lists
LONGEST = 2**16  # characters that are parsed in a lenient way

FENCE = re.compile(r"(`{3,8}|~{3,8})[\w-]{0,20}")
MARK = re.compile(r"</?(?:tool_call|function|parameters?|arguments|s)>|<[|｜][^<>|｜]{1,40}[|｜]>")
BLANKS = re.compile(r"\s*")
SPELT = {"true": True, "false": False, "null": None}  # a mix of Python and JSON


class AmbiguousJson(ValueError):
    """The text parses but has no single valid meaning: other ways of parsing would not help."""


def loads(text: str) -> Any:
    """Parse a JSON text strictly. Raises ValueError."""
    return _sound(_decode(STRICT, text))


def read_json(text: str) -> tuple[Any, str]:
    """Parse JSON leniently. Also returns how; empty if strictly. Raises ValueError."""
    text = text.strip()
    try:
        return loads(text), ""
    except AmbiguousJson:
        raise
    except ValueError as error:
        if len(text) > LONGEST:
            raise
        wrong = error
    for how, read in WAYS:
        try:
            return _sound(read(text)), how
        except AmbiguousJson:
            raise
        except ValueError:
            continue
    raise wrong


# --- strict ---------------------------------------------------------------------------------------


def _no_number(name: str) -> NoReturn:
    raise AmbiguousJson(f"{name} is no number in JSON")


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and not _are_same(found[name], value):
            raise AmbiguousJson(f"{json.dumps(name)[:80]} is there twice, with two values")
        found[name] = value
    return found


STRICT = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_object)
LAX = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_object, strict=False)


def _decode(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return decoder.decode(text)
    except RecursionError:
        raise AmbiguousJson("it is nested too deeply") from None


def _sound(value: Any) -> Any:
    """The value, if it is safe to process."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for item in level:
            match item:
                case str():
                    _check_text(item)
                case list():
                    inner += item
                case dict():
                    inner += item.keys()
                    inner += item.values()
                case _:
                    pass
        if not inner:
            return value
        level = inner
    raise AmbiguousJson(f"it is nested more than {DEEPEST} levels deep")


def _check_text(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise AmbiguousJson(
                "a text in it holds half of a character (a lone surrogate)"
            ) from None


def _are_same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON; in Python, 1 == True."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# --- lenient --------------------------------------------------------------------------------------


def _read_lax(text: str) -> Any:
    return _decode(LAX, text)


def _read_fenced(text: str) -> Any:
    fence = FENCE.match(text)
    if fence is None or not text.endswith(fence[1], fence.end()):
        raise ValueError("no fence")
    return read_json(text[fence.end() : -len(fence[1])].strip())[0]


def _read_repeated(text: str) -> dict[str, Any]:
    """One object, possibly repeated, or followed by template markers."""
    found, at = _decode_first(text, 0)
    if not isinstance(found, dict):
        raise ValueError("no object")  # noqa: TRY004  # the input is wrong, not the argument
    while at < len(text):
        if mark := MARK.match(text, at):
            at = _skip_blanks(text, mark.end())
            continue
        again, at = _decode_first(text, at)
        if not _are_same(found, again):
            raise ValueError("more than one object")
    return found


def _decode_first(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = STRICT.raw_decode(text, at)
    except RecursionError:
        raise AmbiguousJson("it is nested too deeply") from None
    return value, _skip_blanks(text, end)


def _skip_blanks(text: str, at: int) -> int:
    blanks = BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _read_python(text: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an invalid backslash escape
            tree = ast.parse(text, mode="eval")
            value = _plain(tree.body)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("no Python") from error
    if not isinstance(value, dict):
        raise ValueError("no dict")  # noqa: TRY004  # the input is wrong, not the argument
    return value


def _plain(node: ast.expr) -> Any:
    """The value of a literal, if JSON has an equivalent."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if (
            type(value) is not bool
        ):
            return -value
        case ast.Name(id=name) if name in SPELT:
            return SPELT[name]
        case ast.List(elts=items):
            return [_plain(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return _object(
                [(_name(key), _plain(value)) for key, value in zip(keys, values, strict=True)]
            )
        case _:
            raise ValueError("no JSON in Python's spelling")


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError("a key that is no text")


WAYS: tuple[tuple[str, Callable[[str], Any]], ...] = (
    ("line breaks within a text", _read_lax),
    ("in a code fence", _read_fenced),
    ("with something behind it", _read_repeated),
    ("in Python's spelling", _read_python),
)
