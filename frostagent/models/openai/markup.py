"""Finds calls that a model wrote as text, because its server did not parse them (rules 4.2 to 4.5).

`written_calls` parses them, `leaks` decides what happens to them. Call markup is a tag, a bracket,
a token or a fence with a name that some family uses for calls, or the name of a known tool,
followed by what looks like arguments. A family is a row of `FAMILIES`, or a word in one of the
lists.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecoder

import orjson

from frostagent.models.openai import written_calls
from frostagent.models.openai.tools import read_name
from frostagent.models.openai.written_calls import (
    BAR,
    BETWEEN,
    EDGE,
    ENDING,
    GAP,
    HOLDERS,
    NAMESPACE,
    PLAIN_WORD,
    PREFIX,
    WORD,
    Tools,
    Unmarked,
    Written,
    fits,
    read_arguments,
    read_calls,
    read_python,
    without_tokens,
)
from frostagent.text.lazy_regex import lazy_regex

# --- code, in which markup is an example ----------------------------------------------------------

MAX_SPAN = 2000  # characters of inline code

# A fence at the start of a line, or backticks; use with re.MULTILINE.
CODE_BEGINS = r"(?P<fence>^[ \t>]*(?P<run>`{3,}|~{3,}))|(?P<tick>`+)"
CODE = lazy_regex(CODE_BEGINS, re.MULTILINE)


def without_code(text: str) -> str:
    """The text with its code blanked out, at the same length."""
    kept: list[str] = []
    at = 0
    while found := CODE.search(text, at):
        end = end_of_code(text, found)
        kept += text[at : found.start()], " " * (end - found.start())
        at = end
    return "".join([*kept, text[at:]])


def end_of_code(text: str, found: re.Match[str]) -> int:
    """The end of code that begins here; the end of the backticks if nothing closes it."""
    return _end_of_fence(text, found) if found["fence"] else _end_of_span(text, found)


def _end_of_fence(text: str, found: re.Match[str]) -> int:
    run = found["run"]
    line_end = text.find("\n", found.end())
    close = re.compile(rf"^[ \t>]*{run[0]}{{{len(run)},}}[ \t]*$", re.MULTILINE)
    end = close.search(text, line_end) if line_end >= 0 else None
    return end.end() if end else len(text)


def _end_of_span(text: str, found: re.Match[str]) -> int:
    run = found["tick"]
    close = re.compile(rf"(?<!`){run}(?!`)").search(text, found.end(), found.end() + MAX_SPAN)
    return close.end() if close and "\n\n" not in text[found.end() : close.start()] else found.end()


CUT = r"(?:<[^<>]{0,20})?\Z"  # the end of the text, possibly within a mark
TO_THE_END = rf"(?={ENDING}\s*\Z)|\Z"

# --- the words of the families --------------------------------------------------------------------

SURE = (
    *("(?:longcat_)?(?:tool|function)_?calls?", "tool_use", "use_tool", "tool_request"),
    "call_tool",
)
SURE_TAGS = rf"(?i:{'|'.join(SURE)})"
"""Tags around calls that have no other meaning."""

TAGS = rf"(?i:{'|'.join((*SURE, 'calls', 'tools?'))})"
"""All tags; what follows must look like a call."""

CALLING = r"(?:invoke|(?:longcat_)?(?:tool|function)_?call|tool_use|use_tool|tool)"
"""Tags that name their tool in an attribute."""

RESULTS = r"(?i:(?:tool|function)_?(?:call_)?(?:responses?|results?|outputs?))"
"""Tags around a call's result, which no model should write."""

BRACKETS = r"TOOL_CALLS?|TOOL_REQUEST|TOOLCALLS?"
FENCES = frozenset({
    "tool_call", "tool_calls", "tool_code", "tool_use", "tool_request", "toolcall",
    "toolcalls", "function_call", "function_calls", "call_tool", "use_tool",
})  # fmt: skip
RESULT_FENCES = frozenset({
    "tool_output", "tool_outputs", "tool_response", "tool_result", "tool_results",
    "function_response", "function_result",
})  # fmt: skip
NOTED = (
    r"(?i:(?:正在)?(?:调用|使用)了?(?:工具|函数)|(?:工具|函数)调用|tool[ _]?calls?"
    r"|call(?:ing|ed)?[ _](?:tool|function)|tool[ _]use|us(?:e|ing|ed)[ _]tool"
    r"|function[ _]?calls?)"
)
"""Words in a bracket before a tool's name."""

NOISE = lazy_regex(r"\]<\]\w{2,20}\[>\[")
"""A token before each mark of a family, meaningless by itself."""


@dataclass(frozen=True, slots=True)
class MarkupFamily:
    """How one family marks its calls. `opens` looks ahead if the mark alone may be prose."""

    opens: str
    closes: str
    inner: bool = False
    """Whether parsing includes the marks."""
    result: bool = False
    """Whether it marks a call's result, which is then invented."""


HOLDER = rf"(?:{'|'.join(sorted(HOLDERS))})\b"
ARGUMENTS = (
    rf"(?:\[\s*)?(?:\{{|{CUT})|<{PREFIX}(?:function|invoke|parameter|argument|param)\b"
    rf"|<(?:tool_)?name>\s*(?:\Z|{WORD}\s*(?:{CUT}|</(?:tool_)?name>\s*(?:{CUT}|<{HOLDER}|</{SURE_TAGS}>)))"
    r"|call:"
)

FAMILIES = (
    MarkupFamily(
        rf"(?:<{PREFIX}|^{NAMESPACE}){TAGS}>(?=\s*(?:{ARGUMENTS}|{WORD}\s*(?:<(?:longcat_)?arg_key>|\(?\{{))"
        rf"|\n?{WORD}\s*(?:</{PREFIX}{TAGS}>|\(?{CUT})|{WORD}\([^()\n]{{0,400}}\)\s*</)",
        rf"</{PREFIX}{TAGS}>(?:\s*</{PREFIX}{TAGS}>)?",
    ),
    MarkupFamily(rf"<function=(?={WORD}>)", r"</function>", inner=True),
    MarkupFamily(
        rf"<{BAR}DSML{BAR}(?:{TAGS})\s*>", rf"<\s*/{PREFIX}{TAGS}\s*>"
    ),
    MarkupFamily(
        rf"(?:^(?:court|count|call)[ \t]*\n\s{{0,4}})?(?:<{PREFIX}|^{NAMESPACE})invoke\s+name\s*=",
        rf"<\s*/{PREFIX}invoke\s*>",
        inner=True,
    ),
    MarkupFamily(rf"<{BAR}DSML{BAR}invoke\b", rf"<\s*/{BAR}DSML{BAR}invoke\s*>", inner=True),
    MarkupFamily(
        rf"<{EDGE}tool{GAP}calls(?:{GAP}section)?{GAP}begin{EDGE}>",
        rf"<{EDGE}tool{GAP}calls(?:{GAP}section)?{GAP}end{EDGE}>",
    ),
    MarkupFamily(
        rf"<{EDGE}tool{GAP}call{GAP}begin{EDGE}>",
        rf"<{EDGE}tool{GAP}call{GAP}end{EDGE}>",
        inner=True,
    ),
    MarkupFamily(r"<\|FunctionCallBegin\|>", r"<\|FunctionCallEnd\|>"),
    MarkupFamily(rf"<\|tool_call\|>(?=\s*(?:[\[{{]|{CUT}))", r"<\|/tool_call\|>"),
    MarkupFamily(r"<\|tool_call>", rf"<tool_call\|>|{TO_THE_END}"),
    MarkupFamily(r"<start_function_call>", rf"<end_function_call>|{TO_THE_END}"),
    MarkupFamily(r"<\|START_ACTION\|>", r"<\|END_ACTION\|>"),
    MarkupFamily(r"<\|python_tag\|>", rf"(?=<\|e[om][mt]_id\|>)|{TO_THE_END}"),
    MarkupFamily(
        r"<\|open\|>(?:tools|call)", rf"<\|close\|>tools\w*<\|sep\|>|{TO_THE_END}", inner=True
    ),
    MarkupFamily(
        rf"\[TOOL_CALLS\](?=\s*(?:\[\s*(?:\{{|\Z)|\{{|{WORD}\s*(?:\[(?:ARGS|CALL_ID)\]|\{{)|(?:{WORD}\s*\[?\w*)?\Z))",
        rf"\[/TOOL_CALLS\]|(?=\[TOOL_CALLS\])|{TO_THE_END}",
    ),
    MarkupFamily(
        rf"\[(?:{BRACKETS})\](?=\s*(?:[\[{{]|{WORD}\s*[({{]|\Z))",
        rf"\[(?:/|END_)(?:{BRACKETS})\]",
    ),
    MarkupFamily(r"(?<![A-Za-z0-9_.])functools(?=\[\s*(?:\{|\Z))", TO_THE_END),
    MarkupFamily(
        rf"(?:^[ \t]*|(?<=>)\s?)<{PREFIX}{RESULTS}[^<>\n]{{0,100}}>"
        rf"(?=\s*(?:\n|[{{\[]|\Z)|[^\n]{{0,2000}}</{PREFIX}{RESULTS}>)",
        rf"</{PREFIX}{RESULTS}>",
        result=True,
    ),
    MarkupFamily(
        rf"<\|tool_response>|<start_function_response>|<{EDGE}tool{GAP}outputs?{GAP}begin{EDGE}>",
        rf"<tool_response\|>|<end_function_response>|<{EDGE}tool{GAP}outputs?{GAP}end{EDGE}>",
        result=True,
    ),
    MarkupFamily(
        r"\[TOOL_RESULTS?\](?=\s*(?:[\[{\n]|\Z)|[^\n]{0,2000}\[(?:/|END_)TOOL_RESULTS?\])",
        r"\[(?:/|END_)TOOL_RESULTS?\]",
        result=True,
    ),
)  # fmt: skip

JSON_CALL = (
    r'(?:\[\s*)?\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?(?:"function"\s*:\s*\{\s*)?"(?:name|tool|tool_name|function|action)"\s*:'
    r'\s*"(?P<name>[\w.:-]+)(?:(?P<cut>\Z)|"\s*(?:'
    r',\s*(?:"(?:arguments|parameters|(?:action_)?input|args)"\s*:|"?\w*\Z)|\}|\Z))'
)
CALL_KEYS = frozenset({"name", "arguments", "parameters", "input", "type", "id"})

OWN = (
    rf"(?P<own><{PREFIX}(?:(?:function|{CALLING})\s+(?:name|tool)\s*="
    rf"\s*[\"']?(?P<attributed>{WORD})[\"']?\s*/?>"
    r"|(?P<tagged>[A-Za-z_][\w.-]*)(?=\s+\w+\s*=\s*[\"']|\s*/>"
    r"|>\s*(?:\{|<[A-Za-z_]|</(?P=tagged)>|\Z)|>[^<>]{0,400}</(?P=tagged)>)))"
)
"""A tag with a tool's name, which must be known."""

NOTE = (
    rf"(?P<note>[\[【(（]\s{{0,4}}{NOTED}\s{{0,4}}[:：]\s{{0,4}}"
    r"[\"'`「]?(?P<noted>[\w.:-]+)[\"'`」]?)"
)
HARMONY = (
    r"(?P<harmony>(?:(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?\s{0,4}"
    r"(?:commentary|analysis|final)\s{0,4}|(?:<\|start\|>)?assistant(?:<\|channel\|>)?\s{0,4}|(?<![A-Za-z]))"
    rf"to=(?P<recipient>{WORD}))"
)
RECIPIENT_END = lazy_regex(
    r"\s*+(?:<\|channel\|>\s*+\w++\s*+)?(?:commentary\b\s*+)?(?:<\|constrain\|>\s*+)?(?:json|code)?\s*+(?:<\|message\|>)?\s*+"
)
AFTER_HARMONY = lazy_regex(r"\s*+<\|(?:call|end|return)\|>")

CLOSING = rf"</{PREFIX}(?:{SURE_TAGS}|invoke|parameter|{RESULTS})>"
STRAY = (
    rf"</(?:{PREFIX})tool_call>|<{PREFIX}{SURE_TAGS}>(?=\s*<{PREFIX}{SURE_TAGS}>)|<\s*/{BAR}DSML{BAR}\w+\s*>|<{EDGE}tool{GAP}calls?(?:{GAP}section)?{GAP}end{EDGE}>"
    rf"|{CLOSING}(?=(?:\s*{CLOSING}){{0,6}}[ \t]*$)"
    rf"|<[A-Za-z]\w*:{SURE_TAGS}>(?=\s*$)"
    r"|<(?:start|end)_function_(?:call|response)>|<\|?tool_(?:call|response)\|?>(?<!<tool_call>)(?<!<tool_response>)"
    r"|<\|channel\|>\s*(?:analysis|commentary|final)?|<\|start\|>(?:assistant)?|<\|start_header_id\|>\s*+\w*+\s*+<\|end_header_id\|>"
    r"|<\|im_start\|>(?:assistant)?|<start_of_turn>(?:model)?|<end_of_turn>|</s>|<eos>|<bos>|<pad>"
    # any other template token: at least three letters, because <|x|> can be mathematics
    r"|<[|｜][A-Za-z][\w▁/:.-]{2,40}[|｜]>|<[|｜][A-Za-z][\w▁]{2,40}\|?\Z"
    r"|\[TOOL_CALLS\]|\[/TOOL_CALLS?\]|\[END_TOOL_(?:REQUEST|RESULT)\]|\[/INST\]|\[/?THINK\]|◁/?think▷"
)

MAY_BEGIN = r"(?:^|(?=[<\[【(（`~{◁])|(?<![A-Za-z])(?=[acft]))"
"""Places where a mark can begin: a line, a bracket or a word. Trying everywhere takes five times as
long.
"""

# The beginning of code or of a block, or a stray end.
MARKS = lazy_regex(
    f"{MAY_BEGIN}(?:{CODE_BEGINS}|{written_calls.BEGINNING}|(?P<json>{JSON_CALL})|"
    + "|".join(f"(?P<family{index}>{family.opens})" for index, family in enumerate(FAMILIES))
    + f"|{HARMONY}|(?P<stray>{STRAY})|{OWN}|{NOTE})",
    re.MULTILINE,
)
UNMARKED = frozenset({"action", "named", "silence"})
MAX_LOOKS = 64  # at possible tool names that may be prose: each may look far ahead
CLOSES = tuple(lazy_regex(family.closes) for family in FAMILIES)
JSON = JSONDecoder()
MAX_BLOCK = 2**16  # characters; longer blocks are not parsed, which might take quadratic time
MAX_NOTE = 2000
SURE_NOTE = lazy_regex(r"调用|call", re.IGNORECASE)
NOTE_ARGUMENTS = lazy_regex(r"[{(=]")
END_OF_NOTE = lazy_regex(r"[\]】)）]")
INFO = lazy_regex(r"[ \t]*([\w.:-]+)[^\n]*\n")


@dataclass(frozen=True, slots=True)
class MarkupBlock:
    """Markup from `start` to `end`. `calls` is None if it cannot be parsed.

    `is_closed` is False if the text ends early, or continues as if the call had been answered. A
    `stray` end is not a block. The block is a quotation if someone wrote its `sign` (None: all of
    it; empty: never), or its `body`, the parsed content of a fence.
    """

    start: int
    end: int
    calls: Written | None = None
    is_closed: bool = True
    is_stray: bool = False
    sign: str | None = None
    body: str = ""


def find_blocks(
    text: str, tools: Tools, *, names: Collection[str] = (), is_marked: bool = True
) -> Iterator[MarkupBlock]:
    """The markup outside of code, in order. Unless `is_marked`, only unmarked calls.

    An unfinished call to one of these `names`, or one amid text, is reported but not parsed.
    """
    if is_marked and (calls := _read_bare(text, tools)) is not None:
        yield MarkupBlock(0, len(text), calls)
        return
    if whole := written_calls.read_whole(text, tools):
        yield _unmarked(whole, tools)
        return
    finder = _Finder(text, tools, names)
    at = last = 0
    while found := MARKS.search(text, at):
        at = found.end()
        kind = found.lastgroup or ""
        if found["fence"] or kind == "tick":
            at = end_of_code(text, found)
            if found["fence"] and is_marked and (block := finder.fence(found, at)):
                yield block
        elif kind in UNMARKED:
            if call := written_calls.read_found(text, found, names, tools):
                at = call.end
                yield _unmarked(call, tools)
        elif not is_marked:
            continue
        elif kind == "stray":
            if not finder.is_told_of(found, last):
                yield MarkupBlock(found.start(), at, is_stray=True)
        elif block := finder.block(found, kind):
            at = last = block.end
            yield block


class _Finder:
    """Identifies blocks, given the callable tools and the known names."""

    def __init__(self, text: str, tools: Tools, names: Collection[str]) -> None:
        self._text = text
        self._tools = tools
        self._names = names
        self._known = {name: name for name in (*names, *tools)}
        self._looks = MAX_LOOKS

    def block(self, found: re.Match[str], kind: str) -> MarkupBlock | None:
        """The block of this kind, or None."""
        match kind:
            case "json":
                if not _is_one_of(self._names, found):
                    return None
                end = _end_of_json(self._text, found.start())
                return MarkupBlock(found.start(), end, is_closed=False)
            case "own":
                return self._own(found)
            case "note":
                return self._note(found)
            case "harmony":
                return self._harmony(found)
            case _:
                return self._family(found, int(kind.removeprefix("family")))

    def is_told_of(self, found: re.Match[str], since: int) -> bool:
        """Whether an earlier tag matches a closing one: text about tags mentions both."""
        tag = re.fullmatch(rf"</({PREFIX}\w{{5,}})>", found[0])
        if tag is None:
            return False
        before = self._text[max(since, found.start() - MAX_NOTE) : found.start()]
        return any(f"<{tag[1]}{end}" in before for end in "> \n/")

    def fence(self, found: re.Match[str], end: int) -> MarkupBlock | None:
        """The call, or invented result, in a fence of that name; None for ordinary code.

        If someone wrote about such fences, it is an example, unless it is the whole text.
        """
        text, start = self._text, found.start()
        info = INFO.match(text, found.end())
        name = info[1].lower() if info else text[found.end() : end].strip().lower()
        if name in RESULT_FENCES:
            return MarkupBlock(start, end, is_closed=False, sign=name)
        own = read_name(name, self._known)
        is_own = own in self._known and not PLAIN_WORD.fullmatch(own)
        if info is None or not (name in FENCES or is_own):
            return None
        close = re.compile(rf"\n[ \t>]*{re.escape(found['run'])}[`~]*[ \t]*\Z")
        body = text[info.end() - 1 : end]
        closed = close.search(body) if len(body) <= MAX_BLOCK else None
        body = (body[: closed.start()] if closed else body).strip()
        is_last = not text[end:].strip()
        sign = None if is_last and not text[:start].strip() else name
        calls = self._read(body) if name in FENCES else self._read(body, own)
        is_call = calls is not None or self._begins_call(body, own if is_own else "")
        if not is_call and (closed or not is_last):
            return None
        return MarkupBlock(
            start, end, calls if closed else None, bool(closed), sign=sign, body=body
        )

    def _begins_call(self, body: str, own: str) -> bool:
        """Whether it looks like a call to a known tool, which may not be callable now."""
        if own:
            return body.startswith("{")
        named = JSON_BEGUN.match(body) or CALL_BEGUN.match(body)
        return named is not None and read_name(named[1], self._known) in self._known

    def _family(self, found: re.Match[str], index: int) -> MarkupBlock:
        family, start = FAMILIES[index], found.start()
        close = CLOSES[index].search(self._text, found.end())
        if close is None:
            is_last = family.result and not self._text[found.end() :].strip()
            return MarkupBlock(start, len(self._text), is_closed=is_last, is_stray=is_last)
        if family.result:
            return MarkupBlock(start, close.end(), is_closed=False)
        body = (
            self._text[start : close.end()]
            if family.inner
            else self._text[found.end() : close.start()]
        )
        if not close[0] and re.fullmatch(rf"\s*(?:call:)?{WORD}\s*", body):
            return MarkupBlock(start, close.end(), is_closed=False)  # its arguments were cut off
        body = _without_lead(body) if family.inner else body
        return MarkupBlock(
            start, close.end(), self._read(body), sign=body[1:] if family.inner else None
        )

    def _own(self, found: re.Match[str]) -> MarkupBlock | None:
        """A tag named after a tool; it must parse if the name is a word of other markup."""
        text, start = self._text, found.start()
        name = read_name(found["attributed"] or found["tagged"], self._known)
        if not (found["attributed"] or name in self._known) or not self._may_look():
            return None
        tag = found["tagged"] or re.split(r"[\s:]", found[0][1:].split(" ")[0])[-1]
        opened = re.compile(r"[^<>]*?(/?)>").match(
            text, found.end() - (1 if found["attributed"] else 0)
        )
        if opened is None:
            return None
        end = opened.end()
        is_sure = name in self._known and not PLAIN_WORD.fullmatch(name)
        if not (opened[1] or found[0].rstrip().endswith("/>")):
            close = re.compile(rf"</{PREFIX}{re.escape(tag)}\s*>").search(text, end)
            if close is None:
                return MarkupBlock(start, len(text), is_closed=False) if is_sure else None
            end = close.end()
        calls = self._read(text[start:end])
        if calls and PLAIN_WORD.fullmatch(name) and not fits(*calls[0], self._tools):
            calls = None
        if found["attributed"] and ARGUMENTS_BEGUN.match(text, opened.end()):
            is_sure = True
        return MarkupBlock(start, end, calls) if is_sure or calls is not None else None

    def _note(self, found: re.Match[str]) -> MarkupBlock | None:
        """`[calling tool: f {...}]`. For an unknown tool, only with arguments and alone on its
        line. Without arguments, it is pseudocode or a mention, unless it is the whole text.
        """
        text, start, at = self._text, found.start(), found.end()
        if not self._may_look():
            return None
        brace = text.find("{", at, at + MAX_NOTE)
        close = END_OF_NOTE.search(text, at, at + MAX_NOTE)
        arguments = text[at : close.start()] if close else text[at:]
        if brace >= 0 and (close is None or brace < close.start()) and "\n\n" not in text[at:brace]:
            end = _end_of_json(text, brace)
            close = re.compile(r"\s*+\)?\s*+[\]】)）]").match(text, end)
            arguments = text[brace:end]
        elif arguments.lstrip().startswith("("):
            close = re.compile(r"\([^()\n]*\)\s*[\]】)）]").search(text, at, at + MAX_NOTE)
            arguments = text[at : close.end() - 1] if close else text[at:]
        name = read_name(found["noted"], self._known)
        end = close.end() if close else len(text)
        if name not in self._known:
            if not SURE_NOTE.search(found[0]):
                return None
            if not NOTE_ARGUMENTS.search(arguments):
                return None
            line = text[text.rfind("\n", 0, start) + 1 : start].strip()
            if close is None or line or text[end:].split("\n", 1)[0].strip():
                return None
        arguments = arguments.strip().strip(",，")
        if close and not arguments and (text[:start].strip() or text[end:].strip()):
            return None
        calls = self._read(arguments, name) if close else None
        return MarkupBlock(start, end, calls, close is not None and not text[end:].strip())

    def _harmony(self, found: re.Match[str]) -> MarkupBlock | None:
        text, recipient = self._text, found["recipient"]
        name = read_name(recipient, self._known)
        if name not in self._known and not recipient.startswith("functions."):
            for kind in ("json", "code"):  # the kind merged with the name
                if recipient.endswith(kind):
                    name = read_name(recipient.removesuffix(kind), self._known)
        if not (name in self._known or recipient.startswith("functions.")) or not self._may_look():
            return None
        at = RECIPIENT_END.match(text, found.end())
        begin = at.end() if at else found.end()
        if text[begin:] and not text.startswith("{", begin):
            return None  # an address, or prose
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if found[0].startswith("to=") and line.strip() and not text[begin:]:
            return None  # the end of a sentence
        end = _end_of_json(text, begin)
        calls = self._read(text[begin:end], name) if begin < end else None
        after = AFTER_HARMONY.match(text, end)
        last = after.end() if after else end
        sign = text[found.start("recipient") : end]
        return MarkupBlock(found.start(), last, calls, calls is not None, sign=sign)

    def _may_look(self) -> bool:
        self._looks -= 1
        return self._looks >= 0

    def _read(self, body: str, name: str = "") -> Written | None:
        """The calls, if all tools are offered. With a `name`, the body is its arguments."""
        if len(body) > MAX_BLOCK:
            return None
        try:
            if not name or body.startswith(name):
                return _offered(read_calls(body, self._tools), self._tools)
            if body.startswith("("):
                return _offered(read_python(name + body, self._tools) or [], self._tools)
            written = _offered([(name, read_arguments(body, name, self._tools))], self._tools)
        except (ValueError, RecursionError):
            return None
        return written if written and fits(*written[0], self._tools) else None


def _is_one_of(names: Collection[str], found: re.Match[str]) -> bool:
    if found["cut"] is not None:
        return any(name.startswith(found["name"]) for name in names)
    return found["name"] in names


JSON_BEGUN = lazy_regex(JSON_CALL.replace("?P<name>", "").replace("?P<cut>", ""))
ARGUMENTS_BEGUN = lazy_regex(r"\s*(?:\{|<(?:\w+:)?(?:parameter|param|argument|arg)\b)")
CALL_BEGUN = lazy_regex(rf"(?:print\s*\()?({WORD})\s*[({{]")


def _without_lead(body: str) -> str:
    """The body from its first tag on; its bracket may be missing."""
    lead = re.match(r"(?:court|count|call)\s+(?=<|[\w:.-]*invoke)", body)
    body = body[lead.end() :] if lead else body
    return body if body.startswith("<") else f"<{body}"


def _read_bare(text: str, tools: Tools) -> Written | None:
    """The calls in a text that is only JSON. Any other key makes it data."""
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
    try:
        return _offered(read_calls(text, tools), tools)
    except (ValueError, RecursionError):
        return None


def _end_of_json(text: str, start: int) -> int:
    """The end of this JSON value; the end of the text if it is invalid or cut off."""
    try:
        return JSON.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return len(text)


def _unmarked(call: Unmarked, tools: Tools) -> MarkupBlock:
    calls = _offered(call.calls or [], tools)
    return MarkupBlock(call.start, call.end, calls, call.is_closed, sign=call.sign)


def _offered(written: Written, tools: Tools) -> Written | None:
    known: Mapping[str, str] = {name: name for name in tools}
    calls = [(read_name(name, known), arguments) for name, arguments in written]
    return calls if calls and all(name in tools for name, _ in calls) else None
