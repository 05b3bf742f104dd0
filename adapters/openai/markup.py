"""The markup in which models of several families write calls when their server does not read it
(rules 4.2 to 4.5).

Finding it and reading it: what becomes of it is decided in `leaks`. A row of `FAMILIES` is how a
block opens, how it closes, and how what stands between is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

import orjson

from adapters.openai import unmarked
from adapters.openai.code import BEGINNING, end_of_code
from adapters.openai.names import read_name
from adapters.openai.unmarked import ENDING, WORD, Unmarked, Written, without_tokens
from bot.domain.chat import ToolSpec

Tools = Mapping[str, ToolSpec]

Read = Callable[[str, Tools], Written]
"""What stands between the marks, and the tools there are -> the calls; raises ValueError for
anything else.
"""

BAR = r"\s*[|｜‖]{1,2}\s*"
DSML = rf"(?:{BAR}DSML{BAR}|minimax:)?"  # the same form is spoken with and without
EDGE = r"[|｜]"
GAP = r"[_▁]"
CUT = r"(?:<[^<>]{0,20})?\Z"  # the end, maybe in the middle of a mark
ENVELOPE = r"(?:(?:tool|function)_calls|calls|tool_call)"
CALL = r"(?:(?:tool|function)_calls?|tool_use)"
INVOKE = re.compile(rf'<{DSML}invoke\s+name="([^"<>]+)"\s*>(.*?)<\s*/{DSML}invoke\s*>', re.DOTALL)
PARAMETER = re.compile(
    rf'<{DSML}parameter\s+name="([^"<>]+)"(?:\s+string="(true|false)")?\s*>(.*?)<\s*/{DSML}parameter\s*>',
    re.DOTALL,
)
ARGUMENT = re.compile(r"<arg_key>(?>(.*?)</arg_key>)\s*+<arg_value>(.*?)</arg_value>", re.DOTALL)
FUNCTION = re.compile(r"<function=([^<>\s]+)>(.*?)(?:</function>|$)", re.DOTALL)
FIELD = re.compile(r"<parameter=([^<>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
ENTRY = re.compile(
    rf"<{EDGE}tool{GAP}call{GAP}begin{EDGE}>(?>(.*?)<{EDGE}tool{GAP}(?:sep|call{GAP}argument{GAP}begin){EDGE}>)"
    rf"(.*?)<{EDGE}tool{GAP}call{GAP}end{EDGE}>",
    re.DOTALL,
)
CALLED = re.compile(
    rf"(?:<name>\s*+({WORD})\s*+</name>|({WORD}))\s*+"
    r"(?:<arguments>(.*)</arguments>|\(?(\{.*\})\)?)",
    re.DOTALL,
)
NAMED = re.compile(rf"({WORD})\s*(?:\[CALL_ID\]\s*\w+\s*)?\[ARGS\]\s*(.*)", re.DOTALL)
BETWEEN = re.compile(r"(?<=\})\s{0,8}[;\n]\s{0,8}(?=\{)")
JSON_CALL = (
    r'(?:\[\s*)?\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?(?:"function"\s*:\s*\{\s*)?"(?:name|tool|tool_name|function|action)"\s*:'
    r'\s*"(?P<name>[\w.:-]+)(?:(?P<cut>\Z)|"\s*(?:'
    r',\s*(?:"(?:arguments|parameters|(?:action_)?input|args)"\s*:|"?\w*\Z)|\}|\Z))'
)
CALL_KEYS = frozenset({"name", "arguments", "parameters", "input", "type", "id"})
TO_THE_END = rf"(?={ENDING}\s*\Z)|\Z"
FENCED = re.compile(r"\s*+([^\s`]++)\s*+```(?:json)?\s*+(.*?)```\s*+", re.DOTALL)


def _read_json(body: str, _: Tools) -> Written:
    """`{"name": ..., "arguments": {...}}`, or a list of them."""
    value = orjson.loads(body)
    calls: Written = []
    for item in value if isinstance(value, list) else [value]:
        match item:
            case (
                {"name": str(name), "arguments": arguments}
                | {"name": str(name), "parameters": arguments}
                | {"name": str(name), "input": arguments}
                | {"tool_name": str(name), "parameters": arguments}
            ):
                calls.append((name, _object(arguments)))
            case _:
                raise ValueError("no call")
    return calls


def _read_in_a_row(body: str, tools: Tools) -> Written:
    """JSON, or several objects of it with semicolons between."""
    try:
        return _read_json(body, tools)
    except orjson.JSONDecodeError:
        return [
            call for part in BETWEEN.split(body.strip(" \n;")) for call in _read_json(part, tools)
        ]


def _read_named(body: str, tools: Tools) -> Written:
    """A name and the JSON of its arguments; an older form is JSON alone."""
    named = NAMED.fullmatch(body.strip())
    return [(named[1], _object(named[2]))] if named else _read_json(body, tools)


def _read_bare(text: str, tools: Tools) -> Written | None:
    """The calls where the whole text is JSON of nothing else; any other key makes it somebody's
    data.
    """
    text = without_tokens(text)
    if text[:1] + text[-1:] not in ("{}", "[]") or len(text) > MAX_BLOCK:
        return None
    try:
        for part in [text] if text[0] == "[" else BETWEEN.split(text):
            value = orjson.loads(part)
            for item in value if isinstance(value, list) else [value]:
                if not (isinstance(item, dict) and item.keys() <= CALL_KEYS):
                    return None
    except orjson.JSONDecodeError:
        return None
    return _read(text, BARE, tools)


def _read_tool_call(body: str, tools: Tools) -> Written:
    """The call in `<tool_call>` and its like: JSON, a function with parameters, a name with its
    JSON, or one with keys and values.
    """
    body = body.strip()
    if body.startswith(("{", "[")):
        return _read_json(body, tools)
    if body.startswith("<function="):
        return _read_functions(body, tools)
    if named := CALLED.fullmatch(body):
        return [(named[1] or named[2], _object(named[3] or named[4]))]
    name, mark, rest = body.partition("<arg_key>")
    return [(name.strip(), _typed(_all(ARGUMENT, mark + rest), name.strip(), tools))]


def _read_functions(body: str, tools: Tools) -> Written:
    return [
        (name, _typed(_all(FIELD, fields), name, tools)) for name, fields in _all(FUNCTION, body)
    ]


def _read_invokes(body: str, tools: Tools) -> Written:
    calls: Written = []
    for name, fields in _all(INVOKE, body):
        parameters = _all(PARAMETER, fields)
        arguments = _typed([(key, value) for key, _, value in parameters], name, tools)
        for key, is_text, value in parameters:
            if is_text:
                arguments[key] = value if is_text == "true" else orjson.loads(value)
        calls.append((name, arguments))
    return calls


def _read_entries(body: str, _: Tools) -> Written:
    """Names and JSON between marks; an older form has the kind first and the JSON in a fence behind
    the name.
    """
    calls: Written = []
    for name, rest in _all(ENTRY, body):
        older = FENCED.fullmatch(rest)
        calls.append((older[1], _object(older[2])) if older else (name.strip(), _object(rest)))
    return calls


@dataclass(frozen=True, slots=True)
class MarkupFamily:
    """How one family marks its calls; `opens` looks ahead where the mark alone may be prose."""

    opens: str
    closes: str
    read: Read
    inner: bool = False
    """Whether the marks belong to what is read."""


FAMILIES = (
    MarkupFamily(
        rf"<{CALL}>(?=\s*(?:(?:\[\s*)?(?:\{{|{CUT})|<function=|<name>|{WORD}\s*(?:<arg_key>|\(?\{{))"
        rf"|\n?{WORD}\s*(?:</{CALL}>|\(?{CUT}))",
        rf"</{CALL}>(?:\s*</{CALL}>)?",
        _read_tool_call,
    ),
    MarkupFamily(rf"<function=(?={WORD}>)", r"</function>", _read_functions, inner=True),
    MarkupFamily(
        rf"<{BAR}DSML{BAR}{ENVELOPE}\s*>|<(?:minimax:)?{ENVELOPE}\s*>(?=\s*(?:<invoke\b|{CUT}))",
        rf"<\s*/{DSML}{ENVELOPE}\s*>",
        _read_invokes,
    ),
    MarkupFamily(
        rf"<{BAR}DSML{BAR}invoke\b", rf"<\s*/{BAR}DSML{BAR}invoke\s*>", _read_invokes, inner=True
    ),
    MarkupFamily(
        rf"<{EDGE}tool{GAP}calls(?:{GAP}section)?{GAP}begin{EDGE}>",
        rf"<{EDGE}tool{GAP}calls(?:{GAP}section)?{GAP}end{EDGE}>",
        _read_entries,
    ),
    MarkupFamily(
        rf"<{EDGE}tool{GAP}call{GAP}begin{EDGE}>",
        rf"<{EDGE}tool{GAP}call{GAP}end{EDGE}>",
        _read_entries,
        inner=True,
    ),
    MarkupFamily(r"<\|FunctionCallBegin\|>", r"<\|FunctionCallEnd\|>", _read_json),
    MarkupFamily(rf"<\|tool_call\|>(?=\s*(?:[\[{{]|{CUT}))", r"<\|/tool_call\|>", _read_json),
    MarkupFamily(r"<\|START_ACTION\|>", r"<\|END_ACTION\|>", _read_json),
    MarkupFamily(r"<\|python_tag\|>", rf"(?=<\|e[om][mt]_id\|>)|{TO_THE_END}", _read_in_a_row),
    MarkupFamily(
        rf"\[TOOL_CALLS\](?=\s*(?:\[\s*(?:\{{|\Z)|\{{|{WORD}\s*\[(?:ARGS|CALL_ID)\]|(?:{WORD}\s*\[?\w*)?\Z))",
        rf"(?=\[TOOL_CALLS\])|{TO_THE_END}",
        _read_named,
    ),
    MarkupFamily(r"(?<![A-Za-z0-9_.])functools(?=\[\s*(?:\{|\Z))", TO_THE_END, _read_json),
)
BARE = MarkupFamily("", "", _read_in_a_row)

STRAY = (
    rf"</tool_call>|<{CALL}>(?=\s*<{CALL}>)|<\s*/{BAR}DSML{BAR}\w+\s*>|<{EDGE}tool{GAP}calls?(?:{GAP}section)?{GAP}end{EDGE}>"
    r"|<\|channel\|>\s*(?:analysis|commentary|final)?|<\|start\|>(?:assistant)?|<\|start_header_id\|>\s*+\w*+\s*+<\|end_header_id\|>"
    r"|<\|im_start\|>(?:assistant)?|<start_of_turn>(?:model)?|<end_of_turn>|</s>|<eos>|<bos>|<pad>"
    # any other token of a template: three letters at least, as |x| between angles is mathematics
    r"|<[|｜][A-Za-z][\w▁/:.-]{2,40}[|｜]>|<[|｜][A-Za-z][\w▁]{2,40}\|?\Z"
    r"|\[TOOL_CALLS\]|\[/INST\]|\[/?THINK\]|◁/?think▷"
)

# The beginning of code or of a block, or an end that has none.
MARKS = re.compile(
    f"{BEGINNING}|{unmarked.BEGINNING}|(?P<json>{JSON_CALL})|"
    + "|".join(f"(?P<family{index}>{family.opens})" for index, family in enumerate(FAMILIES))
    + f"|(?P<stray>{STRAY})",
    re.MULTILINE,
)
UNMARKED = frozenset({"action", "named", "silence"})
CLOSES = tuple(re.compile(family.closes) for family in FAMILIES)
JSON = JSONDecoder()
MAX_BLOCK = 2**16  # characters; what is longer is not read, which might take quadratic time


@dataclass(frozen=True, slots=True)
class MarkupBlock:
    """Markup from `start` to `end` in the text; `calls` is None where it cannot be read as calls.

    `is_closed` is False where the text ends before it does; a `stray` end is no block. It is
    somebody's own words where he wrote its `sign`: all of it, where that is None; never, where
    that is empty.
    """

    start: int
    end: int
    calls: Written | None = None
    is_closed: bool = True
    is_stray: bool = False
    sign: str | None = None


def find_blocks(
    text: str, tools: Tools, *, names: Collection[str] = (), is_marked: bool = True
) -> Iterator[MarkupBlock]:
    """The markup outside code, in order; in code it is somebody's example. Where nothing
    `is_marked`, only calls without any.

    JSON that begins as a call to one of these `names` is one that cannot be taken where it is cut
    off, or where words stand around it: those are told.
    """
    if is_marked and (calls := _read_bare(text, tools)) is not None:
        yield MarkupBlock(0, len(text), calls)
        return
    if whole := unmarked.read_whole(text, tools):
        yield _unmarked(whole, tools)
        return
    at = 0
    while found := MARKS.search(text, at):
        at = found.end()
        kind = found.lastgroup or ""
        if found["fence"] or kind == "tick":
            at = end_of_code(text, found)
        elif kind in UNMARKED:
            if call := unmarked.read_found(text, found, names, tools):
                at = call.end
                yield _unmarked(call, tools)
        elif not is_marked:
            continue
        elif kind == "stray":
            yield MarkupBlock(found.start(), at, is_stray=True)
        elif kind == "json":
            if _is_one_of(names, found):
                at = _end_of_json(text, found.start())
                yield MarkupBlock(found.start(), at, is_closed=False)
        else:
            block = _read_block(text, found, int(kind.removeprefix("family")), tools)
            at = block.end
            yield block


def _is_one_of(names: Collection[str], found: re.Match[str]) -> bool:
    if found["cut"] is not None:
        return any(name.startswith(found["name"]) for name in names)
    return found["name"] in names


def _end_of_json(text: str, start: int) -> int:
    """Where this JSON ends; the end of the text where it is none, or cut off."""
    try:
        return JSON.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return len(text)


def _read_block(text: str, found: re.Match[str], index: int, tools: Tools) -> MarkupBlock:
    family = FAMILIES[index]
    close = CLOSES[index].search(text, found.end())
    if close is None:
        return MarkupBlock(found.start(), len(text), is_closed=False)
    body = text[found.start() : close.end()] if family.inner else text[found.end() : close.start()]
    return MarkupBlock(
        found.start(), close.end(), _read(body, family, tools) if len(body) <= MAX_BLOCK else None
    )


def _unmarked(call: Unmarked, tools: Tools) -> MarkupBlock:
    calls = _offered(call.calls or [], tools)
    return MarkupBlock(call.start, call.end, calls, call.is_closed, sign=call.sign)


def _read(body: str, family: MarkupFamily, tools: Tools) -> Written | None:
    """The calls, all of them to tools that there are; None for anything else."""
    try:
        return _offered(family.read(body, tools), tools)
    except ValueError:
        return None


def _offered(written: Written, tools: Tools) -> Written | None:
    known = {name: name for name in tools}
    calls = [(read_name(name, known), arguments) for name, arguments in written]
    return calls if calls and all(name in tools for name, _ in calls) else None


def _all(pattern: re.Pattern[str], text: str) -> list[Any]:
    """Every match of the pattern, each as `findall` has it; ValueError where anything but blanks
    stands between.

    One after another, so that the first that does not match ends it: looking for a later one takes
    quadratic time.
    """
    text = text.strip()
    found: list[Any] = []
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            raise ValueError("there is more than calls")
        groups = match.groups("")
        found.append(groups if len(groups) > 1 else groups[0])
        at = match.end()
        while at < len(text) and text[at].isspace():
            at += 1
    return found


def _typed(pairs: list[tuple[str, str]], name: str, tools: Tools) -> dict[str, Any]:
    """Arguments that came as text: JSON, except where the tool wants text."""
    tool = tools.get(name)
    properties = tool.parameters.get("properties", {}) if tool else {}
    return {
        key.strip(): value
        if properties.get(key.strip(), {}).get("type") == "string"
        else _json_or_text(value)
        for key, value in pairs
    }


def _json_or_text(value: str) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _object(arguments: object) -> dict[str, Any]:
    value = orjson.loads(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(value, dict):
        raise ValueError("arguments are no object")  # noqa: TRY004  # what came is wrong, not what we passed
    return value
