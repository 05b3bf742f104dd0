"""Builds the request for a summary of rounds that leave the prompt, and reads its answer. Without
one, a round becomes a line. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from bot.prompt.prompt_language import WORDINGS, is_chinese
from bot.prompt.render import indented
from bot.prompt.wording import Wording
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.models.tokens import estimate_text
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from frostagent.types.ports import ChatModel

MAX_SUMMARY = 600  # characters
MAX_WORDS = 1500
"""Characters of one summarized message, including what was overheard before its question."""
MAX_ASIDE = 300  # characters of a call or a result
MAX_HALF = 40  # characters each of the question and answer in a line

LINE = "· {asked} -> {answered}"
OMITTED = re.compile(
    "|".join(
        re.escape(words.summary.omitted).replace(r"\{number\}", r"(\d+)") for words in WORDINGS
    )
)
TOOLS = r"([\w-]+(?:, [\w-]+)*)"  # a model's sentences do not match
BROUGHT = re.compile(
    "|".join(re.escape(words.summary.brought).replace(r"\{tools\}", TOOLS) for words in WORDINGS),
    re.ASCII,
)


class Prefix(Struct, frozen=True):
    """How a turn's requests began: the transcript, whose rounds start after `before` messages, the
    tools, and the model if it was not the usual one.
    """

    transcript: tuple[Message, ...]
    before: int
    tools: tuple[ToolSpec, ...] = ()
    model: ChatModel | None = None


def summary_of_prefix(
    prefix: Prefix, told: tuple[Message, ...], before: str = ""
) -> ModelRequest | None:
    """Build a request that extends the cached messages of the latest turn by one instruction:
    summarize these rounds and the summary `before` them.

    None if that turn showed other rounds: the window moved, or something was recalled or erased.
    """
    end = prefix.before + len(told)
    rounds = prefix.transcript[prefix.before : end]
    if not told or rounds[1:] != told[1:] or not _begins(rounds[0], told[0], before):
        return None
    words = _words_of(told).summary
    asked = (*prefix.transcript[:end], UserMessage(words.request))
    return ModelRequest(asked, prefix.tools, calls=False)


def _begins(shown: Message, first: Message, summary: str) -> bool:
    """Whether the first round was shown like this, with this summary before it, if any."""
    if not summary:
        return shown == first
    return shown.text.endswith(f"\n  {indented(summary)}\n{first.text}")


def summary_request(rounds: Sequence[Sequence[Message]], before: str = "") -> ModelRequest:
    """Build a request for a summary of these rounds and the summary before them, in the language of
    the people in them.
    """
    words = _words_of(message for round_ in rounds for message in round_).summary
    told = "\n".join(
        line for round_ in rounds for message in round_ for line in _told(message, words.bot)
    )
    earlier = f"{words.before}\n  {indented(before)}\n" if before else ""
    return ModelRequest(
        (
            SystemMessage(words.instructions),
            UserMessage(f"{earlier}{words.conversation}\n{told}"),
        )
    )


def _words_of(messages: Iterable[Message]) -> Wording:
    said = "\n".join(message.text for message in messages if isinstance(message, UserMessage))
    return ZH if is_chinese(said) else EN


def read_summary(completion: Completion) -> str:
    """Return the summary, cut to MAX_SUMMARY; empty if the answer is not usable."""
    text = completion.message.text.strip()
    if completion.refusal or completion.finish is FinishReason.CONTENT_FILTER:
        return ""
    if completion.message.tool_calls:  # the model continued the conversation instead
        return ""
    lines = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    return lines if len(lines) <= MAX_SUMMARY else lines[: MAX_SUMMARY - 1] + "…"


def in_one_line(round_: Sequence[Message]) -> str:
    """A round as a line: the beginning of its question and of its answer."""
    asked = [
        line
        for message in round_
        if isinstance(message, UserMessage)
        for line in message.text.splitlines()
        if line and line[0] not in " [("
    ]
    answered = [
        message.text or ", ".join(call.name for call in message.tool_calls)
        for message in round_
        if isinstance(message, AssistantMessage)
    ]
    return LINE.format(asked=_beginning(asked), answered=_beginning(answered))


def continue_summary(summary: str, lines: Iterable[str], *, tokens: float) -> str:
    """Append rounds as lines. Beyond `tokens`, the oldest are replaced by their number."""
    before = summary.splitlines()
    words = [line for line in before if not line.startswith("·")]
    older = [line for line in before if line.startswith("·")]
    omitted = 0
    if older and (counted := OMITTED.fullmatch(older[0])):
        omitted, older = int(counted[1] or counted[2]), older[1:]
    older += lines
    while older and sum(map(estimate_text, older)) > tokens:
        omitted, older = omitted + 1, older[1:]
    left_out = ZH if is_chinese("".join((summary, *older))) else EN
    return "\n".join([*words, *[left_out.summary.omitted.format(number=omitted)][:omitted], *older])


def outside_tools_in(summary: str) -> tuple[str, ...]:
    """The tools that brought outside text into what this summary covers."""
    marks = filter(None, map(BROUGHT.fullmatch, summary.splitlines()))
    return tuple(name for mark in marks for name in (mark[1] or mark[2]).split(", "))


def with_outside_tools(summary: str, tools: Iterable[str]) -> str:
    """Add to the summary that these tools brought part of it. The mark survives further summaries,
    and a model's text can only add to it.
    """
    if not (names := sorted({*outside_tools_in(summary), *tools})):
        return summary
    lines = [line for line in summary.splitlines() if not BROUGHT.fullmatch(line)]
    words = ZH if is_chinese(summary) else EN
    return "\n".join([*lines, words.summary.brought.format(tools=", ".join(names))])


def _beginning(texts: Sequence[str]) -> str:
    text = " ".join(texts[-1].split()) if texts else "…"
    return text if len(text) <= MAX_HALF else text[: MAX_HALF - 1] + "…"


def _told(message: Message, bot: str) -> Iterator[str]:
    match message:
        case UserMessage(text=text):
            yield _ending(text)
        case AssistantMessage(text=text, tool_calls=calls):
            if text:
                yield f"{bot}: {indented(text, MAX_WORDS)}"
            for call in calls:
                yield f"{bot} -> {call.name}: {indented(call.arguments, MAX_ASIDE)}"
        case ToolMessage(name=name, content=content):
            yield f"{name} -> {bot}: {indented(content, MAX_ASIDE)}"
        case SystemMessage():
            pass
        case _:
            assert_never(message)


def _ending(text: str) -> str:
    """The end of a rendered message, which holds the question. No person's text begins a line."""
    if len(text) <= MAX_WORDS:
        return text
    cut, _, lines = text[-MAX_WORDS:].partition("\n")
    return f"…\n{lines}" if lines else f"…{cut}"
