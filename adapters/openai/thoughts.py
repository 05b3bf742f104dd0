"""Leftovers of a server around the words of an answer: thoughts, channels,
other people's turns.

Marks count outside code only: in code they are somebody's example. Thoughts go with the reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from adapters.openai.answer import RawAnswer
from adapters.openai.texts import without_code

TAG = r"(?:(?:seed:|mm:)?think|thinking|thought|reasoning)"
WORD_TAG = r"(?:analysis|scratchpad|reflection)"
"""Tags that are words of other markup too: they count at the beginning, closed, and where nobody
has written of them.
"""
SPECIAL = (
    (r"(?-i:\[THINK\])", r"(?-i:\[/THINK\])"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
)
"""How a thought opens and closes in tokens, which are no prose: what they open is a thought to the
end.
"""

SPECIAL_OPENS = "|".join(opens for opens, _ in SPECIAL)
SPECIAL_CLOSES = "|".join(closes for _, closes in SPECIAL)
FORMS = ((rf"<(?P<tag>{TAG})[ \t]?>", r"</(?P=tag)[ \t]?>"), *SPECIAL)
THOUGHT = re.compile(
    r"\s*(?:"
    + "|".join(
        rf"{opens}(?P<at{index}>.*?)(?:{closes}|\Z)" for index, (opens, closes) in enumerate(FORMS)
    )
    + ")",
    re.DOTALL | re.IGNORECASE,
)
EDGE_OF_THOUGHT = re.compile(
    rf"(?P<special>{SPECIAL_OPENS})|(?P<opens><{TAG}[ \t]?>)|"
    rf"(?P<closes></{TAG}[ \t]?>|{SPECIAL_CLOSES})",
    re.IGNORECASE,
)
WORD_THOUGHT = re.compile(
    rf"\s*<(?P<tag>{WORD_TAG})>(?P<words>.*?)</(?P=tag)>", re.DOTALL | re.IGNORECASE
)
LONE_END = re.compile(rf"</(?P<tag>{WORD_TAG})>[ \t]*\n", re.IGNORECASE)
ANSWER = re.compile(
    r"\s*<(?P<tag>(?:final_)?answer)>(?:(?P<words>.*?)</(?P=tag)>|(?![ \t])(?P<open>\s*\S.*))\s*\Z",
    re.DOTALL | re.IGNORECASE,
)
END_OF_LINE = re.compile(r"[ \t]*(?:\n|\Z)")
BARE_CHANNEL = re.compile(r"assistant(?:final|commentary(?=.{0,3}to=))", re.DOTALL)
"""A channel whose tokens the server took off and whose words it left."""

GLUED = re.compile(rf"(?<![\s\w`\"“「]){BARE_CHANNEL.pattern}(?![ \t])", re.DOTALL)
CHANNEL = re.compile(
    r"(?:<\|start\|>\w*+)?<\|channel\|>\s*+(\w++)([^<]*+(?:<\|constrain\|>[^<]*+)?)<\|message\|>"
    r"(.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)(?:<\|(?:end|call|return)\|>)?",
    re.DOTALL,
)
FIRST_CHANNEL = re.compile(r"(?:<\|start\|>\w*)?<\|channel\|>")

# Where the answer begins, and where somebody else's turn does, which the model then went on to
# write.
OWN_TURN = re.compile(
    r"(?:\s*(?:<\|im_start\|>(?!\s*(?:user|system|tool)\b)(?:assistant)?|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>"
    r"|<start_of_turn>(?!\s*user\b)(?:model)?|<[|｜](?:Assistant|CHATBOT_TOKEN|START_OF_TURN_TOKEN|begin_of_text)[|｜]>"
    r"|<[|｜]begin▁of▁sentence[|｜]>|<bos>|<s>))+",
    re.IGNORECASE,
)
OTHER_TURN = re.compile(
    r"<\|im_start\|>\s*(?:user|system|tool)\b|<\|start_header_id\|>\s*(?:user|system|tool|ipython)\b"
    r"|<start_of_turn>\s*user\b|<[|｜](?:user|system|observation|USER_TOKEN|SYSTEM_TOKEN)[|｜]>|\[INST\]",
    re.IGNORECASE,
)


def split_thoughts(answer: RawAnswer, given: Sequence[str] = ()) -> RawAnswer:
    """The answer's own words, and its thoughts with the reasoning. A call that has a channel of its
    own is left at the end of the words; `given` is what others than the model said.
    """
    return _split_words(_split_tags(_split_channels(_own_words(answer))), given)


def moved(answer: RawAnswer, text: str, thoughts: list[str]) -> RawAnswer:
    """The answer with this text, and with these thoughts behind its reasoning."""
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
    """Text in channels: what is not the final one, nor a word to people beside calls, are thoughts.

    What stands before them is one too where a final one follows: of the first channel servers take
    the marks off.
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
    """Thoughts at the beginning (4.1) may be cut off; later only what is closed counts, or is a
    token.

    An end before any beginning ends what a template began.
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
    """Whether a lone end closes the thoughts before it: with a field for those an end that stands
    at an end of its line does, as within a line it is spoken of.
    """
    is_alone = text[: edge.start()].endswith("\n") or END_OF_LINE.match(text, edge.end())
    return not (answer.reasoning and text[: edge.start()].strip()) or bool(is_alone)


def _is_last_word(answer: RawAnswer, text: str, edge: re.Match[str]) -> bool:
    """Whether it is the end of a thought that came as such, behind all that was said."""
    return (
        bool(answer.reasoning)
        and bool(text[: edge.start()].strip())
        and not text[edge.end() :].strip()
    )


def _split_words(answer: RawAnswer, given: Sequence[str]) -> RawAnswer:
    """Thoughts in tags that are words, and the answer out of its own."""
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
    """The pieces as one text, with the space between two of them once."""
    joined: list[str] = []
    for piece in pieces:
        if more := piece.lstrip() if joined and joined[-1][-1].isspace() else piece:
            joined.append(more)
    return "".join(joined)
