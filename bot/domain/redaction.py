"""Messages that were recalled, taken out of the rounds that tell them: `[已撤回]` stands in their
place. Pure.

What is rendered says by `UserMessage.sources` which message each line of people is: the lines that
begin at column 0 and are no heading, with the further lines of the same message, indented, below.
The bot's own words have no such marks, and left in another layout than the model wrote: they are
found by their letters and digits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import reduce

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bot.domain.chat import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

RECALLED = "[已撤回]"
SPEAKER = re.compile(r"[^#:\n]*#\d+|[^():\n]*\(\d+\)|[^:\s]+(?=:)")
REPLYING = re.compile(r"(?: ↩[^「」:\n]*(?:「[^」\n]*」)?)?: (?:\[(?:引用|quoting) [^\n]*?」\] )?")
QUOTATION = r"(?P<who>{who}(?: 的| )?)「(?P<words>[^」\n]*)」"
QUOTED = re.compile(r"「[^」\n]*」")
SPEAKING = "send_message"
COMPARABLE = 8
"""Letters and digits from which on a part of a text is told from the same words by chance."""
COMPARABLE_IN_ITS_TURN = 4
"""The same in what the turn itself said: less is a part of other words, as 好 of 你好."""
INNER_QUOTES = str.maketrans("「」", "『』")


class OwnWords(Struct, frozen=True):
    """A message of the bot: its words, the turn that said them, and whether as its answer."""

    turn_id: str
    words: str
    final: bool


def unsaid(messages: tuple[Message, ...], own: OwnWords) -> tuple[Message, ...]:
    """The messages of the turn that said this without it; the very same object if it is not in
    them. A layout that keeps none of the words is no way out: then all of its kind are taken out,
    unless some were already. It may be taken out once more, with nothing else lost.
    """
    after = tuple(
        _unsaid(message, own.words, least=COMPARABLE_IN_ITS_TURN, by_line=True)
        for message in messages
    )
    if after != messages:
        return after
    if not own.final:
        if any(call.arguments == "{}" for call in _speeches(messages)):
            return messages
        return tuple(_without_speech(message) for message in messages)
    last = next(
        (
            place
            for place, message in reversed(list(enumerate(messages)))
            if isinstance(message, AssistantMessage) and message.text and not message.tool_calls
        ),
        None,
    )
    if last is None or RECALLED in messages[last].text:
        return messages
    return (*messages[:last], AssistantMessage(RECALLED), *messages[last + 1 :])


def unsaid_anywhere(messages: tuple[Message, ...], own: OwnWords) -> tuple[Message, ...]:
    """The messages of several turns without it, wherever its words are surely those."""
    after = tuple(_unsaid(message, own.words, least=COMPARABLE) for message in messages)
    return messages if after == messages else after


def _unsaid(message: Message, words: str, *, least: int, by_line: bool = False) -> Message:
    letters = _letters(words)
    if not isinstance(message, AssistantMessage) or not letters:
        return message

    def left(text: str) -> str:
        return _text_without(text, words, least=least, by_line=by_line)

    calls = tuple(
        replace(call, arguments="{}")
        if call.name == SPEAKING and left(told := _told_by(call)) != told
        else call
        for call in message.tool_calls
    )
    text, thoughts = left(message.text), message.reasoning
    if text != message.text:
        thoughts = thoughts if message.tool_calls else None  # they may hold the same words
    if calls == message.tool_calls and text == message.text:
        return message
    return replace(message, text=text, tool_calls=calls, reasoning=thoughts)


def _text_without(text: str, words: str, *, least: int, by_line: bool) -> str:
    """The text without these words, all of it where they are in another layout. Short ones are all
    of it or, `by_line`, a line of their own: as a part of others they say something else.
    """
    letters, whole, short = _letters(words), _letters(text), words.strip()
    if whole == letters or (len(letters) >= least and letters in whole):
        return text.replace(short, RECALLED) if short in text else RECALLED
    if not by_line:
        return text
    return "\n".join(RECALLED if _letters(line) == letters else line for line in text.split("\n"))


def _told_by(call: ToolCall) -> str:
    """All words of a call, whatever escapes its JSON has, each on lines of their own."""
    try:
        return "\n".join(_strings(msgspec.json.decode(call.arguments)))
    except msgspec.DecodeError:
        return call.arguments


def _strings(value: object) -> Iterable[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _strings(each)
        case dict():
            for name, each in value.items():
                if name != "type":  # of a segment: no words
                    yield from _strings(each)
        case _:
            return


def _speeches(messages: Iterable[Message]) -> Iterable[ToolCall]:
    return (
        call
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
        if call.name == SPEAKING
    )


def _without_speech(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    ids = [call.id for call in message.tool_calls if call.name == SPEAKING]
    return without_arguments(message, ids)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def sources_of(message: Message) -> tuple[str, ...]:
    """The messages whose words it tells, or quotes."""
    match message:
        case UserMessage():
            return (*message.sources, *(quoted for _, quoted in message.quotes))
        case ToolMessage():
            return message.sources
        case _:
            return ()


def lines_of(messages: Iterable[Message], message_ids: frozenset[str]) -> tuple[str, ...]:
    """The lines of these messages, further lines included, as they stand there."""
    return tuple(
        line
        for message in messages
        if isinstance(message, UserMessage) and not message_ids.isdisjoint(message.sources)
        for line, source in _told(message)
        if source in message_ids
    )


def redacted(
    messages: tuple[Message, ...], message_ids: frozenset[str], gone: Collection[str]
) -> tuple[Message, ...]:
    """The messages without the words of these recalled ones, and with none of the lines `gone`
    quoted; the very same object where they are not in it.

    A result of a tool that told them is gone as a whole, and with it what its call was given.
    """
    after = tuple(_redacted(message, message_ids, gone) for message in messages)
    if after == messages:
        return messages
    calls = frozenset(
        message.call_id
        for message in messages
        if isinstance(message, ToolMessage) and not message_ids.isdisjoint(message.sources)
    )
    return tuple(without_arguments(message, calls) for message in after) if calls else after


def without_arguments(message: Message, call_ids: Collection[str]) -> Message:
    """The message without what it gave these calls; the very same object where it made none."""
    if not isinstance(message, AssistantMessage):
        return message
    if not any(call.id in call_ids for call in message.tool_calls):
        return message
    calls = tuple(
        replace(call, arguments="{}") if call.id in call_ids else call
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


def _redacted(message: Message, message_ids: frozenset[str], gone: Collection[str]) -> Message:
    match message:
        case UserMessage():
            text = message.text
            if not message_ids.isdisjoint(sources_of(message)):
                quoting = {by for by, quoted in message.quotes if quoted in message_ids}
                text = "\n".join(
                    _recalled(line)
                    if source in message_ids
                    else _quoting_nothing(line)
                    if source in quoting
                    else line
                    for line, source in _told(message)
                )
            text = reduce(_unquoted, gone, text)
            return message if text == message.text else replace(message, text=text)
        case ToolMessage() if not message_ids.isdisjoint(message.sources):
            return replace(message, content=RECALLED, kept="")
        case _:
            return message


def _told(message: UserMessage) -> list[tuple[str, str]]:
    """The lines of the text, each with what is indented below it, and their sources; a heading has
    none.
    """
    lines: list[str] = []
    for line in message.text.split("\n"):
        if line.startswith("  ") and lines:
            lines[-1] += f"\n{line}"
        else:
            lines.append(line)
    sources = iter(message.sources)
    return [(line, next(sources, "") if _is_said(line) else "") for line in lines]


def _is_said(line: str) -> bool:
    return line == RECALLED or (bool(line) and line[0] not in " [(")


def _recalled(line: str) -> str:
    who = SPEAKER.match(line)
    return f"{who[0]}: {RECALLED}" if who else RECALLED


def _quoting_nothing(line: str) -> str:
    """The line without the words that its beginning quotes."""
    who = SPEAKER.match(line)
    end = who.end() if who else 0
    if (about := REPLYING.match(line, end)) is None:
        return line
    return f"{line[:end]}{QUOTED.sub(f'「{RECALLED}」', about[0])}{line[about.end() :]}"


def _unquoted(text: str, line: str) -> str:
    """The text with the line quoted no more: a quotation is how its words begin."""
    who = SPEAKER.match(line)
    if who is None or "「" not in text:
        return text
    words = REPLYING.sub("", line[who.end() :], count=1)
    said = " ".join(words.split()).translate(INNER_QUOTES)

    def instead(found: re.Match[str]) -> str:
        is_it = said.startswith(found["words"].rstrip("…"))
        return f"{found['who']}「{RECALLED}」" if is_it else found[0]

    return re.sub(QUOTATION.format(who=re.escape(who[0])), instead, text)
