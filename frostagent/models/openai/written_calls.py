"""Parses calls that a model wrote as text: what stands between the marks of a family.

Families differ in their marks and share their bodies, so one parser suffices. A body is JSON; or
elements (`<invoke name="f">`, `<function=f>`, `<f>`) with arguments as children; or a name followed
by arguments as JSON, Python, Gemma's notation or keys and values. Anything else is not a call.

Some models write calls without marks: ReAct, a tool's name before its arguments, Python, or the
bare name of silence (`Unmarked`). Only an offered tool's name makes it a call; with other names it
is text. Silence is never a quotation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

import orjson

from frostagent.models.openai.tools import read_name
from frostagent.text.lazy_regex import lazy_regex
from frostagent.types.messages import ToolSpec

Tools = Mapping[str, ToolSpec]
Written = list[tuple[str, dict[str, Any]]]
"""Calls as name and arguments."""

WORD = r"[A-Za-z_][\w.:-]*"
BAR = r"\s*[|｜‖]{1,2}\s*"
EDGE = r"[|｜]"
GAP = r"[_▁]"
NAMESPACE = r"(?:[A-Za-z][\w.-]{0,20}:)?"
PREFIX = rf"(?:{BAR}DSML{BAR})?{NAMESPACE}"
"""What families put before a tag's name: a token, a namespace."""

# --- the words of all families --------------------------------------------------------------------

CALLERS = frozenset({
    "invoke", "function", "functioncall", "function_call", "function_calls", "tool", "tool_call",
    "tool_calls", "tool_use", "tool_request", "toolcall", "toolcalls",
    "longcat_tool_call", "use_tool", "call_tool", "call", "calls", "tools", "toolscall",
})  # fmt: skip
"""Tags around one or more calls; an attribute from `NAMERS` names the tool."""

NAMERS = ("name", "tool", "tool_name", "function", "function_name")
FIELDS = frozenset({"parameter", "param", "argument", "arg", "field"})
KEYS = ("name", "key", "id")
HOLDERS = frozenset({"arguments", "parameters", "input", "args", "params", "tool_input"})

# --- forms ----------------------------------------------------------------------------------------

ATTRIBUTES = r"\s++[\w-]++\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>/|]++)"
ATTRIBUTE = lazy_regex(r"\s+([\w-]+)\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>/|]+))")
TAG = lazy_regex(
    rf"(?:<\s*|<\|open\|>){PREFIX}(?P<tag>[A-Za-z_][\w.-]*)"
    rf"(?:=(?P<value>[^<>\s]+)|(?P<attributes>(?:{ATTRIBUTES})*+))"
    r"\s*(?P<empty>/?)(?:>|<\|sep\|>)"
)
PAIR = lazy_regex(
    r"<(?:longcat_)?arg_key>(?>(.*?)</(?:longcat_)?arg_key>)\s*+"
    r"<(?:longcat_)?arg_value>(.*?)</(?:longcat_)?arg_value>",
    re.DOTALL,
)
ENTRY = lazy_regex(
    rf"<{EDGE}tool{GAP}call{GAP}begin{EDGE}>(?>(.*?)<{EDGE}tool{GAP}(?:sep|call{GAP}argument{GAP}begin){EDGE}>)"
    rf"(.*?)<{EDGE}tool{GAP}call{GAP}end{EDGE}>",
    re.DOTALL,
)
FENCED = lazy_regex(r"\s*+([^\s`]++)\s*+```(?:json)?\s*+(.*?)```\s*+", re.DOTALL)
NAMED = lazy_regex(
    rf"(?:call:\s*+)?({WORD})\s*+(?:\[CALL_ID\]\s*+\w++\s*+(?=\[ARGS\]))?(\[ARGS\])?\s*+(.*)",
    re.DOTALL,
)
IN_PARENTHESES = lazy_regex(r"\(\s*+(\{.*\})\s*+\)", re.DOTALL)
BETWEEN = lazy_regex(r"(?<=\})\s{0,8}[;\n]\s{0,8}(?=\{)")
GEMMA = lazy_regex(
    r"<escape>(?>(.*?)<escape>)|<\|\"\|>(?>(.*?)<\|\"\|>)|([A-Za-z_]\w*+)(?=\s*+:)", re.DOTALL
)
GEMMA_SIGN = ("<escape>", '<|"|>')
PLAIN_WORD = lazy_regex(r"[a-z]+")
"""A name that could be a tag of any markup."""

PRINTED = lazy_regex(r"print\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """`<tag name="...">inner</tag>`; its namespace is ignored."""

    tag: str
    attributes: Mapping[str, str]
    inner: str

    def named(self, keys: tuple[str, ...]) -> str:
        return next((self.attributes[key] for key in keys if key in self.attributes), "")


def read_calls(body: str, tools: Tools) -> Written:
    """The calls in a body of any form. Raises ValueError for anything else."""
    body = body.strip()
    if body.startswith(("{", "[")):
        return _read_json_rows(body)
    if body.startswith("<"):
        return _read_entries(body) if ENTRY.match(body) else _read_elements(body, tools)
    return _read_named(body, tools)


def read_python(text: str, tools: Tools) -> Written | None:
    """Python calls with literal values; positional ones follow the tool's order."""
    calls: Written = []
    try:
        body = ast.parse(text, mode="eval").body
        for call in body.elts if isinstance(body, ast.List) else [body]:
            match call:
                case ast.Call(func=ast.Name() | ast.Attribute() as function) if (
                    name := read(ast.unparse(function), tools)
                ) in tools:
                    fields = properties(tools[name])
                    if len(call.args) > len(fields):
                        return None
                    pairs = [
                        *zip(fields, call.args, strict=False),
                        *((field.arg or "", field.value) for field in call.keywords),
                    ]
                    given = {key: ast.literal_eval(value) for key, value in pairs}
                    calls.append((name, orjson.loads(orjson.dumps(given))))
                case _:
                    return None
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    return calls


def fits(name: str, arguments: Mapping[str, Any], tools: Tools) -> bool:
    """Whether the tool has all of these arguments, and requires no others."""
    schema = tools[name].parameters
    return (
        arguments.keys() <= properties(tools[name]).keys()
        or bool(schema.get("additionalProperties"))
    ) and set(schema.get("required") or ()) <= arguments.keys()


def properties(tool: ToolSpec | None) -> Mapping[str, Any]:
    found = tool.parameters.get("properties", {}) if tool else {}
    return found if isinstance(found, dict) else {}


def only_text(words: str, tool: ToolSpec | None) -> dict[str, Any] | None:
    """Text as the argument of a tool that takes one text; None for any other tool."""
    fields = properties(tool)
    keys = (tool.parameters.get("required") if tool else None) or list(fields)
    is_text = len(keys) == 1 and fields.get(keys[0], {}).get("type") == "string"
    return {keys[0]: words} if is_text else None


# --- JSON -----------------------------------------------------------------------------------------


def read_json(body: str) -> Written:
    """`{"name": ..., "arguments": {...}}`, or a list of them."""
    value = orjson.loads(body)
    calls: Written = []
    for item in value if isinstance(value, list) else [value]:
        match item:
            case {"type": "function", "function": {"name": str(name), "arguments": arguments}}:
                calls.append((name, as_object(arguments)))
            case (
                {"name": str(name), "arguments": arguments}
                | {"name": str(name), "parameters": arguments}
                | {"name": str(name), "input": arguments}
                | {"name": str(name), "args": arguments}
                | {"tool_name": str(name), "parameters": arguments}
                | {"tool_name": str(name), "arguments": arguments}
                | {"tool": str(name), "arguments": arguments}
                | {"tool": str(name), "parameters": arguments}
            ):
                calls.append((name, as_object(arguments)))
            case _:
                raise ValueError("no call")
    return calls


def _read_json_rows(body: str) -> Written:
    """JSON, or several objects separated by semicolons or newlines."""
    try:
        return read_json(body)
    except orjson.JSONDecodeError:
        parts = BETWEEN.split(body.strip(" \n;"))
        return [call for part in parts for call in read_json(part)]


def as_object(arguments: object) -> dict[str, Any]:
    """Arguments as an object, possibly encoded as JSON. Raises ValueError."""
    value = orjson.loads(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(value, dict):
        raise ValueError("arguments are no object")  # noqa: TRY004  # the input is wrong, not the argument
    return value


# --- a name and its arguments ---------------------------------------------------------------------


def _read_named(body: str, tools: Tools) -> Written:
    """`f{...}`, `f({...})`, `f(a="b")`, `call:f{a:<escape>b<escape>}`, `f<arg_key>...`, `f`."""
    named = NAMED.fullmatch(body)
    if named is None:
        raise ValueError("no name")
    name, rest = named[1], named[3]
    if rest.startswith("(") and not (inner := IN_PARENTHESES.fullmatch(rest)):
        printed = PRINTED.fullmatch(body)
        calls = read_python(printed[1] if printed else body, tools)
        if calls is None:
            raise ValueError("no Python of a call")
        return calls
    if rest.startswith("("):
        rest = inner[1] if inner else rest
    if named[2] and not rest:
        raise ValueError("no arguments")
    return [(name, read_arguments(rest, name, tools))]


def read_arguments(body: str, name: str, tools: Tools) -> dict[str, Any]:
    """The arguments of this tool, in any form. Raises ValueError."""
    body = body.strip()
    if not body:
        return {}
    if body.startswith("{"):
        is_gemma = any(sign in body for sign in GEMMA_SIGN)
        try:
            return as_object(GEMMA.sub(_as_json, body) if is_gemma else body)
        except orjson.JSONDecodeError:
            return as_object(GEMMA.sub(_as_json, body))
    if PAIR.match(body):
        return typed(list(_pairs(body)), name, tools)
    if not body.startswith("<"):
        raise ValueError("no arguments")
    elements = list(_elements(body))
    known = properties(tools.get(read(name, tools)))
    if [one.tag in HOLDERS and one.tag not in known for one in elements] == [True]:
        return read_arguments(elements[0].inner, name, tools)
    fields: list[tuple[str, str]] = []
    as_said: dict[str, Any] = {}
    for one in elements:
        key = one.named(KEYS) if one.tag in FIELDS else one.tag
        if not key or (one.tag not in FIELDS and key not in known):
            raise ValueError("no argument of it")
        fields.append((key, one.inner))
        is_text = one.attributes.get("string") or one.attributes.get("type")
        if is_text in {"true", "string"}:
            as_said[key] = one.inner
        elif is_text == "false":
            as_said[key] = orjson.loads(one.inner)
    return typed(fields, name, tools) | as_said


def _as_json(found: re.Match[str]) -> str:
    """A text or key of Gemma's notation as JSON."""
    text = next(group for group in found.groups() if group is not None)
    if found[3] is not None and text in {"true", "false", "null"}:
        return text
    return orjson.dumps(text).decode()


def typed(pairs: list[tuple[str, str]], name: str, tools: Tools) -> dict[str, Any]:
    """Arguments that came as text: parsed as JSON, unless the tool takes text."""
    known = properties(tools.get(read(name, tools)))
    return {
        key.strip(): value
        if known.get(key.strip(), {}).get("type") == "string"
        else _json_or_text(value)
        for key, value in pairs
    }


def read(name: str, tools: Tools) -> str:
    """The tool that the name means; the name itself if none."""
    return read_name(name, {one: one for one in tools})


def _json_or_text(value: str) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


# --- elements -------------------------------------------------------------------------------------


def _read_elements(body: str, tools: Tools) -> Written:
    """Elements that are or contain calls, or an element with a name followed by its arguments."""
    elements = list(_elements(body))
    match elements:
        case [Element(tag=tag, inner=name), *rest] if (
            tag in NAMERS and len(rest) <= 1 and tag not in tools
        ):
            if re.fullmatch(rf"\s*{WORD}\s*", name) and all(one.tag in HOLDERS for one in rest):
                return [
                    (
                        name.strip(),
                        read_arguments(rest[0].inner if rest else "", name.strip(), tools),
                    )
                ]
    return [call for one in elements for call in _read_element(one, tools)]


def _read_element(one: Element, tools: Tools) -> Written:
    if one.tag.lower() in CALLERS and one.tag not in tools:
        if name := one.named(NAMERS):
            return [(name, read_arguments(one.inner, name, tools))]
        return read_calls(one.inner, tools)
    name = read(one.tag, tools)
    if name not in tools:
        raise ValueError("no tool")
    if not one.inner.strip():
        return [(name, typed(list(one.attributes.items()), name, tools))]
    if one.attributes:
        raise ValueError("arguments twice")
    if one.inner.lstrip()[:1] not in "{<":
        if (
            not PLAIN_WORD.fullmatch(name)
            and (words := only_text(one.inner.strip(), tools[name])) is not None
        ):
            return [(name, words)]
        raise ValueError("words for a tool that takes none")
    return [(name, read_arguments(one.inner, name, tools))]


def _elements(text: str) -> Iterator[Element]:
    """The elements of a text that has nothing else. Raises ValueError.

    The first unclosed element ends parsing: searching for a later end takes quadratic time. Only a
    function may end with its container.
    """
    text = text.strip()
    at = 0
    while at < len(text):
        found = TAG.match(text, at)
        if found is None:
            raise ValueError("there is more than calls")
        tag = found["tag"]
        attributes = {
            one[1]: next(filter(None, (one[2], one[3], one[4])), "")
            for one in ATTRIBUTE.finditer(found["attributes"] or "")
        }
        if found["value"]:
            attributes["name"] = found["value"]
        inner, at = "", found.end()
        if not found["empty"]:
            ends = rf"<\s*/{PREFIX}{re.escape(tag)}\s*>|<\|close\|>{re.escape(tag)}(?:<\|sep\|>|\Z)"
            end = re.compile(ends).search(text, at)
            if end is None and tag != "function":
                raise ValueError("no end")
            inner = text[at : end.start() if end else len(text)]
            at = end.end() if end else len(text)
        yield Element(tag, attributes, inner.removeprefix("\n").removesuffix("\n"))
        while at < len(text) and text[at].isspace():
            at += 1


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    return ((key, value) for key, value in _rows(PAIR, text))


def _read_entries(body: str) -> Written:
    """Names and JSON between marks. In an older form, the kind comes first, and the JSON is in a
    fence after the name.
    """
    calls: Written = []
    for name, rest in _rows(ENTRY, body):
        older = FENCED.fullmatch(rest)
        calls.append((older[1], as_object(older[2])) if older else (name.strip(), as_object(rest)))
    return calls


def _rows(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """The two groups of every match, in a text that has nothing else. Raises ValueError.
    Consecutive, like `_elements`.
    """
    text = text.strip()
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            raise ValueError("there is more than calls")
        yield match[1], match[2]
        at = match.end()
        while at < len(text) and text[at].isspace():
            at += 1


SILENCE = "stay_silent"
SILENT = r"(?i:stay_silent|no_reply)(?:\(\))?"
OPEN = r"[\[【(（<「\"'“*_]"
CLOSE = r"[\]】)）>」\"'”*_/.。!]"
ALONE = rf"{OPEN}{{0,3}}{SILENT}{CLOSE}{{0,4}}(?:</{SILENT}>)?"
SAID = r"[\n。.!?！？…)）”\"~]\n"  # the end of a sentence: a list of names is an answer

# Where such a call may begin; use with re.MULTILINE.
BEGINNING = (
    rf"(?P<action>^[ \t*]*(?:Action|✿FUNCTION✿)[ \t*]*[:：][ \t*`]*(?P<acted>{WORD}))"
    rf"|(?P<named>^[ \t]*(?P<called>{WORD})[ \t]*+\(?[ \t]*+(?=\{{\s*(?:[\"'}}]|\Z)))"
    rf"|(?P<silence>\A\s*(?:{ALONE}[ \t]*$|[\[【(（<](?P<spoken>{SILENT})[\]】)）>])"
    rf"|(?<={SAID}){ALONE}(?=\s*(?:\Z|<[|｜/])))"
)
SILENT_WHOLE = lazy_regex(rf"`{{0,3}}\n?{ALONE}\n?`{{0,3}}")
PYTHON = lazy_regex(rf"\[?\s*{WORD}\((?!\s*\{{).*\)\s*\]?", re.DOTALL)
ENDING = r"(?:</s>|<[|｜][\w▁]{1,40}[|｜]>)"  # a token that ends an answer
ENDINGS = lazy_regex(rf"(?:{ENDING}\s{{0,8}}){{1,4}}\Z")
MAX_PYTHON = 4096  # characters of a text that may be Python
INPUT = lazy_regex(r"[ \t*`]*+\n\s*+(?:\**(?:Action[ _]?Input|✿ARGS✿)[ \t*]*[:：][ \t*]*+|(?=\{))")
FENCE = lazy_regex(r"\s*+(?:```(?:json)?\s*+|`)")
END = lazy_regex(r"[ \t]*+\)?[ \t]*+(?:\s*+```|`)?")
LINE = lazy_regex(r".*")
THOUGHT = lazy_regex(r"\s*+\**(?:Thought|Question)\**\s*[:：]")
ANSWERED = (
    r"\s*+\**(?:Observation|Thought|Action|Final Answer|✿(?:RESULT|RETURN|FUNCTION)✿)\**\s*[:：]"
)
GOES_ON = lazy_regex(ANSWERED)
# A line of prose may end after a tool's name, but not after silence.
BESIDE = lazy_regex(
    r"(?=\()|[ \t*`]*+(?=[\[{]"
    rf"|(?:\s*+{ENDING}){{0,4}}\s*+\Z|\n(?:{ANSWERED}|\s*+(?:```(?:json)?\s*+|`)\(?\{{))"
)
BARE = lazy_regex(r"[ \t*`]*+$", re.MULTILINE)
ASKED = "action:"  # users who ask about this notation get an answer
NOTHING = frozenset({"", "none", "null", "{}"})
JSON = JSONDecoder()


@dataclass(frozen=True, slots=True)
class Unmarked:
    """An unmarked call from `start` to `end`. `calls` is None for unreadable arguments.

    It is not `is_closed` if the text ends early, or continues as if the call had been answered. It
    is a quotation if someone wrote its `sign` (None: the call itself).
    """

    start: int
    end: int
    calls: Written | None
    is_closed: bool = True
    sign: str | None = None


def without_tokens(text: str) -> str:
    """The text without whitespace and template tokens at its end."""
    text = text.strip()
    return ENDINGS.sub("", text, count=1).strip() if text.endswith(">") else text


def read_whole(text: str, tools: Mapping[str, ToolSpec]) -> Unmarked | None:
    """A text that is only silence, or a line of Python; else None."""
    words = without_tokens(text)
    if SILENT_WHOLE.fullmatch(words):
        return Unmarked(0, len(text), [(SILENCE, {})], sign="")
    if words.endswith((")", ")]")) and len(words) <= MAX_PYTHON and PYTHON.fullmatch(words):
        calls = read_python(words, tools)
        return Unmarked(0, len(text), calls) if calls else None
    return None


def read_found(
    text: str, found: re.Match[str], names: Collection[str], tools: Mapping[str, ToolSpec]
) -> Unmarked | None:
    """The call that begins here, to one of these `names`; else None."""
    if found["silence"]:
        return Unmarked(found.start(), found.end(), [(SILENCE, {})], sign=found["spoken"] or "")
    known = {name: name for name in (*names, *tools)}
    name = read_name(found["acted"] or found["called"], known)
    if found["acted"] and re.fullmatch(SILENT, name):
        name = SILENCE
    elif name not in known:
        return None
    return (_read_action if found["acted"] else _read_named_bare)(
        text, found, name, tools.get(name)
    )


def _read_named_bare(text: str, found: re.Match[str], name: str, _: ToolSpec | None) -> Unmarked:
    arguments, end = _json_at(text, found.end())
    calls = None if arguments is None else [(name, arguments)]
    is_closed = arguments is not None
    return Unmarked(found.start(), _past(END, text, end), calls, is_closed)


def _read_action(
    text: str, found: re.Match[str], name: str, tool: ToolSpec | None
) -> Unmarked | None:
    given = INPUT.match(text, found.end())
    beside = given or BESIDE.match(text, found.end())
    if name == SILENCE:
        beside = beside or BARE.match(text, found.end())
    if beside is None:
        return None  # prose
    at = _past(FENCE, text, beside.end())
    begin = at + text.startswith("({", at)
    if text.startswith("{", begin):
        arguments, end = _json_at(text, begin)
    else:
        end = _past(LINE, text, at)
        words = without_tokens(text[at:end]).strip(" \t\r\"'`*")
        if not given:
            words = words.removeprefix("[").removesuffix("]")
        arguments = _only(words, tool) if given or words[:1] != "(" else None
    end = _past(END, text, end)
    is_closed = not GOES_ON.match(text, end)
    start = 0 if THOUGHT.match(text) else found.start()
    return Unmarked(
        start,
        end if is_closed else len(text),
        [(name, arguments)] if is_closed and arguments is not None else None,
        is_closed,
        sign=ASKED if text[:start].strip() else text[found.start() : end],
    )


def _json_at(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """The object at this place, and its end; None and the end of the text if it is invalid."""
    try:
        end = JSON.raw_decode(text, at)[1]
        return orjson.loads(text[at:end]), end
    except (ValueError, RecursionError):
        return None, len(text)


def _only(words: str, tool: ToolSpec | None) -> dict[str, Any] | None:
    """Text as the argument of a tool with one text; {} for an empty one."""
    if words.lower() in NOTHING:
        return {}
    return only_text(words, tool)


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
