"""Text that a model wrote for its server, which should have taken it out: thoughts and
calls (section 4).

A pure stage behind the reader. It sees whole texts only, so it does not matter how a stream was
cut. Nobody in a chat should see markup; but markup is executed only where it can be nothing else
than a call, because the text of a model may repeat what anybody wrote: outside code, closed, the
last thing said, to tools that were offered, with arguments that parse, in an answer that is
complete, and not a quotation of what the model was given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from adapters.openai.answer import Draft, RawAnswer, RawCall
from adapters.openai.markup import NOISE, MarkupBlock, find_blocks
from adapters.openai.texts import to_json, without_code
from adapters.openai.thoughts import moved, split_thoughts
from adapters.openai.written_calls import fits
from bot.domain.chat import ToolSpec
from bot.domain.visible import visible

MAX_BLOCKS = 32  # of calls in one text that are read
NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {ord("▁"): "_", ord("‖"): "|"}
MAX_PARTS = 8192  # characters of a text that is looked at as a list of parts

LEAKY = re.compile(
    r"[<\[◁{_✿【]|Action|invoke name|assistant(?:final|commentary)|to=|调用|使用(?:工具|函数)"
)
PART_KINDS = frozenset({"text", "output_text", "thinking", "reasoning", "refusal"})


def may_leak(answer: RawAnswer) -> bool:
    """Whether a look is worth it: everything that could be found has one of these in it, in the
    text or, where there is none, in the thoughts.
    """
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
    """The answer without markup in its text: thoughts with the reasoning, calls with the calls;
    where nothing `is_marked`, only calls without any mark are looked for.

    `tools` are those that may be called, none where the answer is not complete; `given` is what
    others than the model said in the request, `names` are all it may know tools by.
    `Answer.leaked` is set where tools were offered and a call could not be taken as one.
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
    """The answer without tokens that say nothing; code may be about them."""
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
    """The answer with the call that ends its thoughts, where it says nothing else: some servers
    take all for a thought that comes before its end.

    It has to fit its tool: a model that only thinks of calling it writes less.
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
    are_few = len(blocks) <= MAX_BLOCKS  # more is a model gone wild, and much to be looked for
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
    """The calls of all blocks; none where one of them cannot be read."""
    calls: list[RawCall] = []
    for block in blocks:
        if block.calls is None:
            return []
        calls += (RawCall("", name, to_json(arguments)) for name, arguments in block.calls)
    return calls


def _is_quoted(text: str, mark: MarkupBlock, said: str) -> bool:
    """Whether it is of somebody's own words, `said` as letters alone."""
    sign = text[mark.start : mark.end] if mark.sign is None else mark.sign
    return any(one and _bare(one) in said for one in (sign, mark.body))


def _bare(text: str) -> str:
    """A text as its letters alone: without blanks and what nobody sees, in one case and
    width.

    A model that repeats what somebody wrote may space it otherwise: that is no call of its own
    either.
    """
    return "".join(NOISE.sub("", visible(text)).translate(NARROW).lower().split())


def _are_last(text: str, blocks: list[MarkupBlock], marks: list[MarkupBlock]) -> bool:
    """Whether there are blocks, and from the first one on nothing else."""
    start = blocks[0].start if blocks else len(text)
    return bool(blocks) and not _cut(
        text, [MarkupBlock(0, start), *(mark for mark in marks if mark.start >= start)]
    )


def _is_attempt(text: str, blocks: list[MarkupBlock], marks: list[MarkupBlock]) -> bool:
    """Whether the model meant to call something: it could have been understood, or it said nothing
    more.
    """
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
    """A text that holds a list of parts, as JSON or as Python writes it, is those parts (1.4)."""
    text = answer.text.strip()
    if not (text.startswith("[{") and text.endswith("}]") and len(text) <= MAX_PARTS):
        return answer
    parts = _literal(text)
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        return answer
    draft = Draft()
    draft.add({"content": parts}, whole=True)
    inner = draft.freeze(
        finish_reason=None, native_finish_reason=None, usage=None, model="", identity="", done=None
    )
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
