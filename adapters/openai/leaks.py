"""What a model wrote into its text for its server, which should have taken it out: thoughts and calls (section 4).

A pure stage behind the reader. It sees whole texts only, so it does not matter how a stream was cut. Nobody in a chat
should see markup; but markup is executed only where it can be nothing else than a call, because the text of a model
may repeat what anybody wrote: outside code, closed, the last thing said, to tools that were offered, with arguments
that parse, in an answer that is complete, and not a quotation of what the model was given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from adapters.openai.answer import Answer, Draft, RawCall, to_json
from adapters.openai.markup import Block, find_blocks
from bot.domain.chat import ToolSpec

MAX_PARTS = 8192  # characters of a text that is looked at as a list of parts

THINK = r"(think|thinking|thought|seed:think)"
THOUGHT = re.compile(rf"\s*<{THINK}[ \t]?>(.*?)(?:</\1[ \t]?>|\Z)", re.DOTALL | re.IGNORECASE)
EDGE_OF_THOUGHT = re.compile(rf"<(/?){THINK}[ \t]?>", re.IGNORECASE)
CODE = re.compile(r"^[ \t>]*(`{3,}|~{3,}).*?(?:^[ \t>]*\1|\Z)|`[^`\n]*`", re.DOTALL | re.MULTILINE)
CHANNEL = re.compile(
    r"(?:<\|start\|>\w*)?<\|channel\|>\s*(\w+)([^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>"
    r"(.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)(?:<\|(?:end|call|return)\|>)?",
    re.DOTALL,
)
PART_KINDS = frozenset({"text", "output_text", "thinking", "reasoning", "refusal"})


def may_leak(answer: Answer) -> bool:
    """Whether a look is worth it: everything that could be found has one of these in it."""
    return "<" in answer.text or "[" in answer.text


def split_leaks(answer: Answer, *, tools: Sequence[ToolSpec], given: Sequence[str] = ()) -> Answer:
    """The answer without markup in its text: thoughts with the reasoning, calls with the calls.

    `tools` are those that may be called, none where the answer is not complete; `given` is what others than the model
    said in the request. `Answer.leaked` is set where tools were offered and a call could not be taken as one.
    """
    answer = _unwrap_parts(answer)
    if "<" not in answer.text and "[TOOL_CALLS]" not in answer.text:
        return answer
    return _split_calls(_split_thoughts(_split_channels(answer)), tools, given)


# --- thoughts -------------------------------------------------------------------------------------


def _split_thoughts(answer: Answer) -> Answer:
    """What begins at the beginning (4.1) may be cut off; later only what is closed counts.

    An end before any beginning ends what a template began.
    """
    text = answer.text
    thoughts: list[str] = []
    while found := THOUGHT.match(text):
        thoughts.append(found[2])
        text = text[found.end() :]
    edges = list(EDGE_OF_THOUGHT.finditer(_without_code(text))) if EDGE_OF_THOUGHT.search(text) else []
    said: list[str] = []
    at, begin = 0, None
    for index, edge in enumerate(edges):
        if not edge[1]:
            begin = begin or edge
        elif begin or (index == 0 and not thoughts and not (answer.reasoning and text[: edge.start()].strip())):
            said += [text[at : begin.start()]] if begin else []
            thoughts.append(text[begin.end() if begin else 0 : edge.start()])
            at, begin = edge.end(), None
    return _moved(answer, _join([*said, text[at:]]), thoughts) if thoughts else answer


def _join(pieces: list[str]) -> str:
    """The pieces as one text, with the space between two of them once."""
    joined: list[str] = []
    for piece in pieces:
        if more := piece.lstrip() if joined and joined[-1][-1].isspace() else piece:
            joined.append(more)
    return "".join(joined)


def _split_channels(answer: Answer) -> Answer:
    """Text in channels: what is not the final one, nor a word to people beside calls, are thoughts."""
    if not answer.text.lstrip().startswith(("<|channel|>", "<|start|>")):
        return answer
    said: list[str] = []
    thoughts: list[str] = []
    leaked = False
    for channel, recipient, words in CHANNEL.findall(answer.text):
        if " to=" in recipient:
            leaked = True
        else:
            (thoughts if channel == "analysis" else said).append(words)
    rest = CHANNEL.sub("", answer.text)
    return replace(_moved(answer, "\n\n".join([*said, *filter(str.strip, [rest])]), thoughts), leaked=leaked)


def _moved(answer: Answer, text: str, thoughts: list[str]) -> Answer:
    reasoning = "\n\n".join(filter(None, [answer.reasoning, *(thought.strip() for thought in thoughts)]))
    return replace(answer, text=text.strip(), reasoning=reasoning, reasoning_field=answer.reasoning_field or "content")


def _without_code(text: str) -> str:
    """The text with its code blanked out, as long as it was."""
    return CODE.sub(lambda found: " " * len(found[0]), text)


# --- calls ----------------------------------------------------------------------------------------


def _split_calls(answer: Answer, tools: Sequence[ToolSpec], given: Sequence[str]) -> Answer:
    text = answer.text
    marks = [
        mark for mark in find_blocks(text, {tool.name: tool for tool in tools}) if not _is_quoted(text, mark, given)
    ]
    blocks = [mark for mark in marks if not mark.is_stray]
    calls = _calls(blocks) if _are_last(text, blocks, marks) else []
    tried = answer.leaked or _is_attempt(text, blocks, marks)
    return replace(
        answer,
        text=_cut(text, marks) if marks else text,
        tool_calls=answer.tool_calls or tuple(calls),
        leaked=tried and bool(tools) and not (calls or answer.tool_calls),
    )


def _calls(blocks: list[Block]) -> list[RawCall]:
    """The calls of all blocks; none where one of them cannot be read."""
    calls: list[RawCall] = []
    for block in blocks:
        if block.calls is None:
            return []
        calls += (RawCall("", name, to_json(arguments)) for name, arguments in block.calls)
    return calls


def _is_quoted(text: str, mark: Block, given: Sequence[str]) -> bool:
    markup = text[mark.start : mark.end].strip()
    return not mark.is_stray and any(markup in words for words in given)


def _are_last(text: str, blocks: list[Block], marks: list[Block]) -> bool:
    """Whether there are blocks, and from the first one on nothing else."""
    start = blocks[0].start if blocks else len(text)
    return bool(blocks) and not _cut(text, [Block(0, start), *(mark for mark in marks if mark.start >= start)])


def _is_attempt(text: str, blocks: list[Block], marks: list[Block]) -> bool:
    """Whether the model meant to call something: it could have been understood, or it said nothing more."""
    readable = any(block.calls is not None for block in blocks)
    return readable or any(not block.is_closed for block in blocks) or _are_last(text, blocks, marks)


def _cut(text: str, marks: list[Block]) -> str:
    kept, at = [], 0
    for mark in marks:
        kept.append(text[at : mark.start])
        at = mark.end
    return "".join([*kept, text[at:]]).strip()


# --- parts ----------------------------------------------------------------------------------------


def _unwrap_parts(answer: Answer) -> Answer:
    """A text that holds a list of parts, as JSON or as Python writes it, is those parts (1.4)."""
    text = answer.text.strip()
    if not (text.startswith("[{") and text.endswith("}]") and len(text) <= MAX_PARTS):
        return answer
    parts = _literal(text)
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        return answer
    draft = Draft()
    draft.add({"content": parts}, whole=True)
    inner = draft.freeze(finish_reason=None, native_finish_reason=None, usage=None, model="", identity="", done=None)
    return _moved(replace(answer, refusal=answer.refusal or inner.refusal), inner.text, [inner.reasoning])


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
