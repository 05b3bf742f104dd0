"""Removes text that the model wrote for its server, and the server passed on: reasoning, calls and
citations (section 4).

A pure stage after the reader. It sees whole texts, so it does not depend on how a stream was cut.
Markup should not reach a chat; but a model's text may repeat what users wrote, so it is executed
only if it can only be a call: outside of code, closed, at the end, to an offered tool, with
arguments that parse, in a complete answer, and not quoted from the prompt.

Marks inside of code are examples, and do not count. Reasoning found in the text joins the answer's
reasoning. Citation marks, which a vendor's own service turns into links, are cut unless the answer
lists the sources; the cited words stay.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from frostagent.models.openai.answer import AnswerDraft, RawAnswer, RawCall
from frostagent.models.openai.markup import (
    CODE,
    NOISE,
    MarkupBlock,
    end_of_code,
    find_blocks,
    without_code,
)
from frostagent.models.openai.vendor_text import to_json
from frostagent.models.openai.written_calls import fits
from frostagent.text.lazy_regex import lazy_regex
from frostagent.text.visible_text import visible_text
from frostagent.types.messages import ToolSpec

SOURCES = (
    *("search", "news", "view", "fetch", "image", "file", "forecast", "finance", "sports"),
    *("product", "reddit", "academia", "maps", "business", "video", "msearch", "msg"),
)
KINDS = rf"(?:{'|'.join(SOURCES)})"
TURN = rf"turn\d+{KINDS}\d+(?:[A-Z]\d+(?:-[A-Z]?\d+)?)?"
"""A service's source ids: `turn0search3`, `turn0file1L5-L9`."""

MARKS = (
    # between private-use characters: a kind, and its contents
    r"\ue200(?P<marked>[^\ue200\ue201\n]{0,1000})(?:\ue201|\Z|(?=\n))",
    r"[\ue200-\ue206]",
    # the same without those characters
    rf"(?:(?:file)?(?:cite|navlist|nav)|(?<![A-Za-z])(?:image|i))(?:\d*{TURN})+(?:navlist)?",
    rf"[\[【(（]\s?{TURN}(?:\s?[,，、]\s?{TURN})*\s?[\]】)）]|(?<![A-Za-z0-9]){TURN}(?![A-Za-z0-9])",
    r"[\[【](?P<dagger>\d{1,3}(?::\d{1,3})?)†[^\]】\n]{1,200}[\]】]",
    r"[\[【]citations?\s?[:：]\s?(?P<cited>\d{1,3}(?:\s?[,，、-]\s?\d{1,3})*)[\]】]",
    r"\[\^(?P<raised>\d{1,3})\^\](?:\[\d{1,3}\])?",
    r"[\[【]ref_(?P<ref>\d{1,3})[\]】]",
    r":?contentReference\[oaicite:(?P<oaicite>\d{1,3})\](?:\{index=\d{1,3}\})?|[\[【]oaicite:\d{1,3}[\]】]",
    # around words, which stay
    r"</?co(?::\s?\d{1,3}(?:\s?,\s?\d{1,3})*)>|<cite\s+index=[^<>\n]{0,100}>|(?P<closed></cite>)",
    r"<grok:render\b[^<>\n]{0,300}>(?:(?!<grok:render).){0,600}?</grok:render>",
    r"</?grok:render\b[^<>\n]{0,300}>",
)  # fmt: skip
MARK = lazy_regex("|".join(f"(?:{mark})" for mark in MARKS), re.DOTALL)
WORTH = lazy_regex(
    rf"[\ue200-\ue206†]|turn\d+{KINDS}|citation|\[\^\d|[\[【]ref_|oaicite|<co:|<cite\s|<grok:"
)
"""Every mark contains one of these."""

SOURCE = lazy_regex(
    r"^[ \t>*-]{0,8}[\[【(（]?\^?(?:citation\s?[:：]\s?|ref_)?"
    rf"(?P<id>\d{{1,3}}(?::\d{{1,3}})?|{TURN})"
    r"(?:†[^\]】\n]{0,200})?\^?[\]】)）]?(?P<rest>[^\n]{0,1000})",
    re.MULTILINE,
)
HEADING = lazy_regex(
    r"^[\s#*【\[]{0,8}(?:参考(?:资料|文献|来源|链接)?|(?:信息|资料)?来源|引用|出处"
    r"|sources?|references?|citations?|links?)"
    r"[\s*】\]]{0,8}[:：]?[\s*]{0,8}$",
    re.MULTILINE | re.IGNORECASE,
)
ADDRESS = lazy_regex(r"https?://|www\.|\.(?:com|cn|org|net|pdf|docx?|txt|md)\b")
NUMBER = lazy_regex(r"\d+(?::\d+)?")
WORDS_KEPT = ("entity", "url", "link")  # kinds of marks that contain words of the answer
QUOTED = lazy_regex(r'"((?:[^"\\]|\\.){0,200})"')
AFTER = lazy_regex(r"[\s,.;:!?，。；：！？、)）\]】」”…]|\Z")


def has_citations(text: str) -> bool:
    """Whether the text may have citation marks."""
    return WORTH.search(text) is not None


def without_citations(text: str, given: Sequence[str] = ()) -> str:
    """The text without citation marks; the same object if there are none. `given` is the text of
    others than the model.
    """
    if not has_citations(text):
        return text
    listed = _listed(text)
    kept = ""
    at = 0
    for found in _marks(text):
        if _ids(found) & listed or any(found[0] in one for one in given):
            continue
        kept = _joined(kept, text[at : found.start()])
        if AFTER.match(text, found.end()):
            kept = kept.rstrip(" \t")
        kept += _words_of(found["marked"] or "")
        at = found.end()
    return _joined(kept, text[at:]).strip() if at else text


def _joined(before: str, after: str) -> str:
    """Join two texts; whitespace on both sides of a cut is kept once."""
    return before + (after.lstrip(" \t") if before[-1:] in {" ", "\t"} else after)


def _marks(text: str) -> Iterator[re.Match[str]]:
    """The marks outside of code."""
    at = 0
    code = CODE.search(text)
    cited = False
    while found := MARK.search(text, at):
        while code and code.start() < found.start():
            end = end_of_code(text, code)
            at = max(at, end)
            code = CODE.search(text, end)
        if found.start() < at:
            continue
        at = found.end()
        cited = cited or found[0].startswith("<cite")
        if found["closed"] is None or cited:
            yield found


def _listed(text: str) -> frozenset[str]:
    """The ids of the sources that the text lists: with an address, or under a heading."""
    heading = HEADING.search(text)
    return frozenset(
        found["id"]
        for found in SOURCE.finditer(text)
        if ADDRESS.search(found["rest"]) or (heading and heading.end() <= found.start())
    )


def _ids(found: re.Match[str]) -> frozenset[str]:
    groups = ("dagger", "cited", "raised", "ref", "oaicite")
    said = next((found[name] for name in groups if found[name]), "")
    ids = NUMBER.findall(said) or re.findall(TURN, found[0])
    return frozenset(ids)


def _words_of(marked: str) -> str:
    """The answer's words inside a private-use mark."""
    kind, *parts = marked.split("\ue202")
    if kind.strip() not in WORDS_KEPT or not parts:
        return ""
    quoted = QUOTED.findall(parts[0])
    if kind.strip() == "entity":
        return quoted[1] if len(quoted) > 1 else ""
    return parts[0] if not re.fullmatch(TURN, parts[0]) else ""


TAG = r"(?:(?:seed:|mm:)?think|thinking|thought|reasoning)"
WORD_TAG = r"(?:analysis|scratchpad|reflection)"
"""Tags that are also words of other markup: they count only at the beginning, closed, and if the
prompt does not mention them.
"""
SPECIAL = (
    (r"(?-i:\[THINK\])", r"(?-i:\[/THINK\])"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
)
"""Tokens that open and close reasoning. They are never prose, so unclosed ones last to the end."""

SPECIAL_OPENS = "|".join(opens for opens, _ in SPECIAL)
SPECIAL_CLOSES = "|".join(closes for _, closes in SPECIAL)
FORMS = ((rf"<(?P<tag>{TAG})[ \t]?>", r"</(?P=tag)[ \t]?>"), *SPECIAL)
THOUGHT = lazy_regex(
    r"\s*(?:"
    + "|".join(
        rf"{opens}(?P<at{index}>.*?)(?:{closes}|\Z)" for index, (opens, closes) in enumerate(FORMS)
    )
    + ")",
    re.DOTALL | re.IGNORECASE,
)
EDGE_OF_THOUGHT = lazy_regex(
    rf"(?P<special>{SPECIAL_OPENS})|(?P<opens><{TAG}[ \t]?>)|"
    rf"(?P<closes></{TAG}[ \t]?>|{SPECIAL_CLOSES})",
    re.IGNORECASE,
)
WORD_THOUGHT = lazy_regex(
    rf"\s*<(?P<tag>{WORD_TAG})>(?P<words>.*?)</(?P=tag)>", re.DOTALL | re.IGNORECASE
)
LONE_END = lazy_regex(rf"</(?P<tag>{WORD_TAG})>[ \t]*\n", re.IGNORECASE)
ANSWER = lazy_regex(
    r"\s*<(?P<tag>(?:final_)?answer)>(?:(?P<words>.*?)</(?P=tag)>|(?![ \t])(?P<open>\s*\S.*))\s*\Z",
    re.DOTALL | re.IGNORECASE,
)
END_OF_LINE = lazy_regex(r"[ \t]*(?:\n|\Z)")
BARE_CHANNEL = lazy_regex(r"assistant(?:final|commentary(?=.{0,3}to=))", re.DOTALL)
"""A channel whose tokens the server removed, but not its words."""

GLUED = lazy_regex(rf"(?<![\s\w`\"“「]){BARE_CHANNEL.pattern}(?![ \t])", re.DOTALL)
CHANNEL = lazy_regex(
    r"(?:<\|start\|>\w*+)?<\|channel\|>\s*+(\w++)([^<]*+(?:<\|constrain\|>[^<]*+)?)<\|message\|>"
    r"(.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)(?:<\|(?:end|call|return)\|>)?",
    re.DOTALL,
)
FIRST_CHANNEL = lazy_regex(r"(?:<\|start\|>\w*)?<\|channel\|>")

# The beginning of the answer, and of another speaker's turn, which the model invents.
OWN_TURN = lazy_regex(
    r"(?:\s*(?:<\|im_start\|>(?!\s*(?:user|system|tool)\b)(?:assistant)?|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>"
    r"|<start_of_turn>(?!\s*user\b)(?:model)?|<[|｜](?:Assistant|CHATBOT_TOKEN|START_OF_TURN_TOKEN|begin_of_text)[|｜]>"
    r"|<[|｜]begin▁of▁sentence[|｜]>|<bos>|<s>))+",
    re.IGNORECASE,
)
OTHER_TURN = lazy_regex(
    r"<\|im_start\|>\s*(?:user|system|tool)\b|<\|start_header_id\|>\s*(?:user|system|tool|ipython)\b"
    r"|<start_of_turn>\s*user\b|<[|｜](?:user|system|observation|USER_TOKEN|SYSTEM_TOKEN)[|｜]>|\[INST\]",
    re.IGNORECASE,
)


def split_thoughts(answer: RawAnswer, given: Sequence[str] = ()) -> RawAnswer:
    """The answer's own text, with reasoning moved to the reasoning field. A call in its own channel
    stays at the end of the text; `given` is the text of others than the model.
    """
    return _split_words(_split_tags(_split_channels(_own_words(answer))), given)


def moved(answer: RawAnswer, text: str, thoughts: list[str]) -> RawAnswer:
    """The answer with this text, and with these thoughts appended to its reasoning."""
    reasoning = "\n\n".join(
        filter(None, [answer.reasoning, *(thought.strip() for thought in thoughts)])
    )
    return replace(
        answer,
        text=text.strip(),
        reasoning=reasoning,
        reasoning_field=answer.reasoning_field or "content",
    )


def _own_words(answer: RawAnswer) -> RawAnswer:
    text = answer.text
    begin = OWN_TURN.match(text)
    other = (
        OTHER_TURN.search(without_code(text), begin.end() if begin else 0)
        if OTHER_TURN.search(text)
        else None
    )
    if not (begin or other):
        return answer
    return replace(
        answer,
        text=text[begin.end() if begin else 0 : other.start() if other else len(text)].strip(),
    )


def _split_channels(answer: RawAnswer) -> RawAnswer:
    """Split channels: all but the final one, and text for people beside calls, is reasoning. So is
    text before the channels, if a final one follows: servers remove the first channel's marks.
    """
    first = (
        FIRST_CHANNEL.search(without_code(answer.text))
        if FIRST_CHANNEL.search(answer.text)
        else None
    )
    if first is None:
        return _split_bare_channels(answer)
    before, text = answer.text[: first.start()], answer.text[first.start() :]
    said: list[str] = []
    thoughts: list[str] = []
    calls: list[str] = []
    is_final = False
    for found in CHANNEL.finditer(text):
        channel, recipient, words = found.groups()
        is_final |= channel == "final"
        if " to=" in recipient:
            calls.append(found[0])
        else:
            (thoughts if channel == "analysis" else said).append(words)
    if before.strip():
        (thoughts if is_final else said).insert(0, before.strip())
    rest = CHANNEL.sub("", text)
    return moved(answer, "\n\n".join([*said, *filter(str.strip, [rest]), *calls]), thoughts)


def _split_bare_channels(answer: RawAnswer) -> RawAnswer:
    if not BARE_CHANNEL.search(answer.text):
        return answer
    text = answer.text.lstrip()
    begun = text.startswith("analysis")
    first = (BARE_CHANNEL if begun else GLUED).search(without_code(text))
    if first is None:
        return answer
    thought = text[: first.start()].removeprefix("analysis")
    *between, words = text[first.end() :].split("assistantfinal")
    return moved(answer, words, [thought, *between])


def _split_tags(answer: RawAnswer) -> RawAnswer:
    """Split tags: reasoning at the beginning (4.1) may be unclosed; later it must be closed, or a
    token. An end without a beginning closes what a template began.
    """
    thoughts: list[str] = []
    at = 0
    while found := THOUGHT.match(answer.text, at):
        thoughts += [
            words
            for name, words in found.groupdict().items()
            if name != "tag" and words is not None
        ]
        at = found.end()
    text = answer.text[at:]
    edges = (
        list(EDGE_OF_THOUGHT.finditer(without_code(text))) if EDGE_OF_THOUGHT.search(text) else []
    )
    said: list[str] = []
    at, begin = 0, None
    for index, edge in enumerate(edges):
        if not edge["closes"]:
            begin = begin or edge
        elif begin is None and _is_last_word(answer, text, edge):
            said.append(text[at : edge.start()])
            at = edge.end()
        elif begin or (index == 0 and not thoughts and _ends_thought(answer, text, edge)):
            said += [text[at : begin.start()]] if begin else []
            thoughts.append(text[begin.end() if begin else 0 : edge.start()])
            at, begin = edge.end(), None
    if begin and begin["special"]:
        said.append(text[at : begin.start()])
        thoughts.append(text[begin.end() :])
        at = len(text)
    if not (thoughts or said):
        return answer
    return moved(answer, _join([*said, text[at:]]), thoughts)


def _ends_thought(answer: RawAnswer, text: str, edge: re.Match[str]) -> bool:
    """Whether a lone end tag closes the reasoning before it. If reasoning has its own field, the
    tag must end its line: within a line, it is only mentioned.
    """
    is_alone = text[: edge.start()].endswith("\n") or END_OF_LINE.match(text, edge.end())
    return not (answer.reasoning and text[: edge.start()].strip()) or bool(is_alone)


def _is_last_word(answer: RawAnswer, text: str, edge: re.Match[str]) -> bool:
    """Whether it is the end tag of separate reasoning, after all of the text."""
    return (
        bool(answer.reasoning)
        and bool(text[: edge.start()].strip())
        and not text[edge.end() :].strip()
    )


def _split_words(answer: RawAnswer, given: Sequence[str]) -> RawAnswer:
    """Split reasoning in tags that are words, and unwrap an answer tag."""
    text, thoughts = answer.text, list[str]()
    while (found := WORD_THOUGHT.match(text)) and not _is_spoken_of(found["tag"], given):
        thoughts.append(found["words"])
        text = text[found.end() :]
    lone = LONE_END.search(without_code(text)) if not thoughts and LONE_END.search(text) else None
    if lone and f"<{lone['tag']}>" not in text and not _is_spoken_of(lone["tag"], given):
        thoughts.append(text[: lone.start()])
        text = text[lone.end() :]
    if (found := ANSWER.match(text)) and not _is_spoken_of(found["tag"], given):
        text = found["open"] if found["words"] is None else found["words"]
    if text == answer.text:
        return answer
    return moved(answer, text, thoughts) if thoughts else replace(answer, text=text.strip())


def _is_spoken_of(tag: str, given: Sequence[str]) -> bool:
    mark = f"<{tag}".lower()
    return any(mark in one.lower() for one in given)


def _join(pieces: list[str]) -> str:
    """Join the pieces, keeping whitespace between two only once."""
    joined: list[str] = []
    for piece in pieces:
        if more := piece.lstrip() if joined and joined[-1][-1].isspace() else piece:
            joined.append(more)
    return "".join(joined)


MAX_BLOCKS = 32  # blocks of calls in one text that are read
NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {ord("▁"): "_", ord("‖"): "|"}
MAX_PARTS = 8192  # characters of a text that may be a list of parts

LEAKY = lazy_regex(
    r"[<\[◁{_✿【]|Action|invoke name|assistant(?:final|commentary)|to=|调用|使用(?:工具|函数)"
)
PART_KINDS = frozenset({"text", "output_text", "thinking", "reasoning", "refusal"})


def may_leak(answer: RawAnswer) -> bool:
    """Whether the text, or without text the reasoning, may contain markup. A quick check."""
    text = answer.text.strip() or ("" if answer.tool_calls else answer.reasoning)
    return bool(LEAKY.search(text)) or text.rstrip().endswith(")")


def split_leaks(
    answer: RawAnswer,
    *,
    tools: Sequence[ToolSpec],
    given: Sequence[str] = (),
    names: Collection[str] = (),
    is_marked: bool = True,
) -> RawAnswer:
    """The answer without markup in its text: reasoning and calls are moved to their fields. Unless
    `is_marked`, only unmarked calls are searched.

    `tools` can be called now (none for an incomplete answer); `given` is the prompt's text of
    others than the model; `names` are all known tool names. `RawAnswer.leaked` is set if tools were
    offered and a call could not be used.
    """
    answer = _unwrap_parts(answer) if is_marked else answer
    if not may_leak(answer):
        return answer
    answer = split_thoughts(_without_noise(answer), given) if is_marked else answer
    offered = {tool.name: tool for tool in tools}
    marks = list(find_blocks(answer.text, offered, names=names, is_marked=is_marked))
    answer = _split_calls(answer, marks, tools, given)
    if answer.text or answer.tool_calls or answer.function_call or answer.leaked or answer.refusal:
        return answer
    return _call_of_thoughts(answer, offered, given, names, is_marked=is_marked)


def _without_noise(answer: RawAnswer) -> RawAnswer:
    """The answer without meaningless tokens, except if code mentions them."""
    if not NOISE.search(without_code(answer.text)):
        return answer
    return replace(answer, text=NOISE.sub("", answer.text).strip())


def _call_of_thoughts(
    answer: RawAnswer,
    tools: Mapping[str, ToolSpec],
    given: Sequence[str],
    names: Collection[str],
    *,
    is_marked: bool,
) -> RawAnswer:
    """The answer with the call that ends its reasoning, if there is nothing else: some servers
    treat text before the end tag as reasoning.

    The arguments must fit: a model that only considers a call writes less.
    """
    if not (tools and answer.reasoning):
        return answer
    thoughts = replace(answer, text=NOISE.sub("", answer.reasoning).strip(), reasoning="")
    marks = list(find_blocks(thoughts.text, tools, names=names, is_marked=is_marked))
    silences = {mark.start for mark in marks if mark.sign == ""}
    marks = [mark for mark in marks if mark.start not in silences]
    inner = _split_calls(thoughts, marks, tuple(tools.values()), given)
    are_valid = all(
        fits(name, arguments, tools) for mark in marks for name, arguments in mark.calls or ()
    )
    if inner.tool_calls and are_valid:
        return replace(answer, reasoning=inner.text, tool_calls=inner.tool_calls)
    return replace(answer, leaked=inner.leaked or bool(inner.tool_calls))


# --- calls ----------------------------------------------------------------------------------------


def _split_calls(
    answer: RawAnswer, marks: list[MarkupBlock], tools: Sequence[ToolSpec], given: Sequence[str]
) -> RawAnswer:
    text = answer.text
    blocks = [mark for mark in marks if not mark.is_stray]
    are_few = len(blocks) <= MAX_BLOCKS  # more is a runaway model, and costly to search
    if blocks and are_few:
        said = "\n".join(map(_bare, given))
        marks = [mark for mark in marks if mark.is_stray or not _is_quoted(text, mark, said)]
        blocks = [mark for mark in marks if not mark.is_stray]
    calls = _calls(blocks) if are_few and _are_last(text, blocks, marks) else []
    tried = answer.leaked or _is_attempt(text, blocks, marks)
    return replace(
        answer,
        text=_cut(text, marks) if marks else text,
        tool_calls=answer.tool_calls or tuple(calls),
        leaked=tried and bool(tools) and not (calls or answer.tool_calls),
    )


def _calls(blocks: list[MarkupBlock]) -> list[RawCall]:
    """The calls of all blocks; none if one block is unreadable."""
    calls: list[RawCall] = []
    for block in blocks:
        if block.calls is None:
            return []
        calls += (RawCall("", name, to_json(arguments)) for name, arguments in block.calls)
    return calls


def _is_quoted(text: str, mark: MarkupBlock, said: str) -> bool:
    """Whether the block quotes someone. `said` is their text as letters alone."""
    sign = text[mark.start : mark.end] if mark.sign is None else mark.sign
    return any(one and _bare(one) in said for one in (sign, mark.body))


def _bare(text: str) -> str:
    """The text as letters alone, in one case and width: a quotation may be spaced differently."""
    return "".join(NOISE.sub("", visible_text(text)).translate(NARROW).lower().split())


def _are_last(text: str, blocks: list[MarkupBlock], marks: list[MarkupBlock]) -> bool:
    """Whether there are blocks, with nothing else after the first one."""
    start = blocks[0].start if blocks else len(text)
    return bool(blocks) and not _cut(
        text, [MarkupBlock(0, start), *(mark for mark in marks if mark.start >= start)]
    )


def _is_attempt(text: str, blocks: list[MarkupBlock], marks: list[MarkupBlock]) -> bool:
    """Whether the model tried to call something: it is readable, or nothing follows."""
    readable = any(block.calls is not None for block in blocks)
    return (
        readable or any(not block.is_closed for block in blocks) or _are_last(text, blocks, marks)
    )


def _cut(text: str, marks: list[MarkupBlock]) -> str:
    kept, at = [], 0
    for mark in marks:
        kept.append(text[at : mark.start])
        at = mark.end
    return "".join([*kept, text[at:]]).strip()


# --- parts ----------------------------------------------------------------------------------------


def _unwrap_parts(answer: RawAnswer) -> RawAnswer:
    """Unwrap a text that is a list of parts, in JSON or in Python's spelling (1.4)."""
    text = answer.text.strip()
    if not (text.startswith("[{") and text.endswith("}]") and len(text) <= MAX_PARTS):
        return answer
    parts = _literal(text)
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        return answer
    draft = AnswerDraft()
    draft.add({"content": parts}, whole=True)
    inner = draft.freeze(done=None)
    return moved(
        replace(answer, refusal=answer.refusal or inner.refusal), inner.text, [inner.reasoning]
    )


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in PART_KINDS and len(part) in {2, 3}


def _literal(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
