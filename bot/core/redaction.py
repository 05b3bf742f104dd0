"""Replaces recalled messages in stored rounds by `[已撤回]`. Pure.

`UserMessage.sources` says which message each line of people came from: the lines that begin at
column 0 and are not headings; further lines of a message are indented below. The bot's own words
have no such marks, and were sent in another layout than the model wrote: they are found by their
letters and digits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import reduce

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

RECALLED = "[已撤回]"
SPEAKER = re.compile(r"[^#:\n]*#\d+|[^():\n]*\(\d+\)|[^:\s]+(?=:)")
REPLYING = re.compile(r"(?: ↩[^「」:\n]*(?:「[^」\n]*」)?)?: (?:\[(?:引用|quoting) [^\n]*?」\] )?")
QUOTATION = r"(?P<who>{who}(?: 的| )?)「(?P<words>[^」\n]*)」"
QUOTED = re.compile(r"「[^」\n]*」")
SPEAKING = "send_message"
COMPARABLE = 8
"""From this many letters and digits on, a match inside a text is not a coincidence."""
COMPARABLE_IN_ITS_TURN = 4
"""The same inside the turn that said it: fewer are part of other words, as 好 is of 你好."""
INNER_QUOTES = str.maketrans("「」", "『』")


class OwnWords(Struct, frozen=True):
    """A message of the bot: its words, its turn, and whether it was the answer. For a recalled
    message `earlier` is the number of such messages of that turn recalled before it.
    """

    turn_id: str
    words: str
    final: bool
    earlier: int = 0


def redact_own(messages: tuple[Message, ...], own: OwnWords) -> tuple[Message, ...]:
    """Remove a message of the bot from the messages of its turn; returns the same object if it is
    not in them. If its layout kept none of the words, all messages of its kind are removed, unless
    more were removed before than were recalled `earlier`. Repeating it removes nothing else.
    """
    after = tuple(_unsaid(message, own.words, in_its_turn=True) for message in messages)
    if _own(after) != _own(messages):
        return after
    if not own.final:
        blank = sum(call.arguments == "{}" for call in _speeches(messages))
        if blank > own.earlier:
            return _same(messages, after)
        return tuple(_without_speech(message) for message in after)
    last = next(
        (
            place
            for place, message in reversed(list(enumerate(messages)))
            if isinstance(message, AssistantMessage) and message.text and not message.tool_calls
        ),
        None,
    )
    if last is None or messages[last].text.count(RECALLED) > own.earlier:
        return _same(messages, after)
    return (*after[:last], AssistantMessage(RECALLED), *after[last + 1 :])


def redact_own_anywhere(messages: tuple[Message, ...], own: OwnWords) -> tuple[Message, ...]:
    """Remove a message of the bot from several turns, wherever the words certainly match."""
    after = tuple(_unsaid(message, own.words, in_its_turn=False) for message in messages)
    return _same(messages, after)


def redact_own_in_subagent(message: AssistantMessage, own: OwnWords) -> AssistantMessage:
    """Remove it from a subagent's message of the same turn; the same object if it is not there."""
    text = _brought_without(message.text, own.words, in_its_turn=True)
    calls = _calls_without(message.tool_calls, own.words, in_its_turn=True)
    if (text, calls) == (message.text, message.tool_calls):
        return message
    return replace(message, text=text, tool_calls=calls, reasoning=None)


def redact_own_in_result(result: ToolMessage, own: OwnWords) -> ToolMessage:
    """Remove it from a tool's result of the same turn; the same object if it is not there."""
    return _result_without(result, own.words, in_its_turn=True)


def contains_words(text: str, own: OwnWords) -> bool:
    """Whether the text contains these words, comparing letters and digits."""
    return _letters(own.words) in _letters(text)


def _own(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if isinstance(message, AssistantMessage)]


def _same(messages: tuple[Message, ...], after: tuple[Message, ...]) -> tuple[Message, ...]:
    return messages if after == messages else after


def _unsaid(message: Message, words: str, *, in_its_turn: bool) -> Message:
    match message:
        case ToolMessage():
            return _result_without(message, words, in_its_turn=in_its_turn)
        case AssistantMessage():
            calls = _calls_without(message.tool_calls, words, in_its_turn=in_its_turn)
            text = _text_without(message.text, words, in_its_turn=in_its_turn)
            if (text, calls) == (message.text, message.tool_calls):
                return message
            keeps_thoughts = text == message.text or bool(calls)  # else they may contain the words
            thoughts = message.reasoning if keeps_thoughts else None
            return replace(message, text=text, tool_calls=calls, reasoning=thoughts)
        case _:
            return message


def _calls_without(
    calls: tuple[ToolCall, ...], words: str, *, in_its_turn: bool
) -> tuple[ToolCall, ...]:
    """The calls, without the arguments of those that contain the words."""

    def gave_them(call: ToolCall) -> bool:
        told = _told_by(call)
        if call.name == SPEAKING:
            return _text_without(told, words, in_its_turn=in_its_turn) != told
        return _is_in(told, words)

    return tuple(replace(call, arguments="{}") if gave_them(call) else call for call in calls)


def _result_without(result: ToolMessage, words: str, *, in_its_turn: bool) -> ToolMessage:
    content, kept = (
        _brought_without(text, words, in_its_turn=in_its_turn)
        for text in (result.content, result.kept)
    )
    if (content, kept) == (result.content, result.kept):
        return result
    return replace(result, content=content, kept=kept)


def _brought_without(text: str, words: str, *, in_its_turn: bool) -> str:
    """Text that the bot may have repeated, without these words: if they are long enough to be no
    coincidence, and in their own turn also without each line that is part of them.
    """
    if _is_in(text, words):
        return _instead(text, words)
    if not in_its_turn:
        return text
    return "\n".join(RECALLED if _is_in(words, line) else line for line in text.split("\n"))


def _text_without(text: str, words: str, *, in_its_turn: bool) -> str:
    """The bot's text without these words. Short words must be all of it or, in their own turn, a
    line of their own: inside other text they mean something else.
    """
    letters = _letters(words)
    if not letters:
        return text
    least = COMPARABLE_IN_ITS_TURN if in_its_turn else COMPARABLE
    if _letters(text) == letters or _is_in(text, words, least=least):
        return _instead(text, words)
    if not in_its_turn:
        return text
    return "\n".join(RECALLED if _letters(line) == letters else line for line in text.split("\n"))


def _is_in(text: str, words: str, *, least: int = COMPARABLE) -> bool:
    letters = _letters(words)
    return len(letters) >= least and letters in _letters(text)


def _instead(text: str, words: str) -> str:
    """The text without the words it contains; all of it if they have another layout there."""
    short = words.strip()
    return text.replace(short, RECALLED) if short in text else RECALLED


def _told_by(call: ToolCall) -> str:
    """All strings of a call's arguments, unescaped, each on lines of its own."""
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
                if name != "type":  # a segment's tag, not words
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
    """The messages whose words it contains or quotes."""
    match message:
        case UserMessage():
            return (*message.sources, *(quoted for _, quoted in message.quotes))
        case ToolMessage():
            return message.sources
        case _:
            return ()


def lines_of_messages(messages: Iterable[Message], message_ids: frozenset[str]) -> tuple[str, ...]:
    """The lines of these messages, including continuation lines, as they are rendered."""
    return tuple(
        line
        for message in messages
        if isinstance(message, UserMessage) and not message_ids.isdisjoint(message.sources)
        for line, source in _told(message)
        if source in message_ids
    )


def redact_messages(
    messages: tuple[Message, ...], message_ids: frozenset[str], gone: Collection[str]
) -> tuple[Message, ...]:
    """Remove the words of these recalled messages, and quotations of the lines `gone`; returns the
    same object if there are none. A tool's result that contains them is removed as a whole, with
    the arguments of its call.
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
    """Remove the arguments of these calls; returns the same object if the message made none of
    them.
    """
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
    """The lines of the text, each with the indented ones below it, and their sources, empty for
    headings.
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
    """The line without the words quoted at its beginning."""
    who = SPEAKER.match(line)
    end = who.end() if who else 0
    if (about := REPLYING.match(line, end)) is None:
        return line
    return f"{line[:end]}{QUOTED.sub(f'「{RECALLED}」', about[0])}{line[about.end() :]}"


def _unquoted(text: str, line: str) -> str:
    """The text without quotations of the line; a quotation is the beginning of its words."""
    who = SPEAKER.match(line)
    if who is None or "「" not in text:
        return text
    words = REPLYING.sub("", line[who.end() :], count=1)
    said = " ".join(words.split()).translate(INNER_QUOTES)

    def instead(found: re.Match[str]) -> str:
        is_it = said.startswith(found["words"].rstrip("…"))
        return f"{found['who']}「{RECALLED}」" if is_it else found[0]

    return re.sub(QUOTATION.format(who=re.escape(who[0])), instead, text)
