"""Mentions, quotes and faces in a model's words: `@name#number`, and CQ codes. Pure.

Code and addresses mention no one, nor does a number without the person's name. At most three people
are mentioned at a time; others are called by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeAlias

from bot.core.actions import MergedForward, SentSegment
from bot.core.conversation import Conversation
from bot.core.segments import Mention
from bot.memory.history import History
from bot.outbox.layout import verbatim_parts
from bot.policy.cq_codes import Code, may_contain_codes, replace_codes
from frostagent.types.speech import Face, Quote, Text

Who: TypeAlias = Callable[[int, str], tuple[int, str] | None]
"""Resolves a number to an account and the name last seen; None if it is unknown, or if the given
name, unless empty, belongs to another person.
"""

MOST: Final = 3  # people mentioned at a time
NUMBER: Final = re.compile(r"[#＃](\d{1,7})(?!\d)(?:[#＃]\1(?!\d))*")  # models repeat the number
LONGEST: Final = 32  # characters of a name, including the text before it
CALLED: Final = re.compile(r"(?<![A-Za-z0-9._-])@([^\s@#＃]+)$")
JOINED: Final = re.compile(r"[a-z0-9._-]$")  # an address, not a mention


def with_mentions(
    messages: Sequence[tuple[SentSegment, ...]],
    *,
    where: Conversation,
    history: History,
    words: str,
    keeps_codes: bool,
) -> Sequence[tuple[SentSegment, ...]]:
    """Resolve the people and the quoted message in `words`, as far as they are known there. Other
    CQ codes are removed, unless `keeps_codes`.
    """
    has_codes = may_contain_codes(words) and not keeps_codes
    has_numbers = any(map(words.__contains__, "#＃")) and NUMBER.search(words) is not None
    if not (has_codes or has_numbers):
        return messages  # the usual case
    kept = verbatim_parts(words)
    if has_codes:
        messages = list(_without_codes(messages, where, history, kept))
    if has_numbers:
        messages = list(_with_numbers(messages, where, history, kept))
    return messages


def mentioning(
    text: str, who: Who, *, most: int = MOST, but: Collection[str] = ()
) -> list[Text | Mention]:
    """The text with at most `most` mentions; further people are called by name. References inside a
    text of `but`, which is code or an address, are left alone.
    """
    parts: list[Text | Mention] = []
    words, done, left = "", 0, most
    for number in NUMBER.finditer(text):
        words += text[done : number.start()]
        done = number.end()
        found = who(int(number[1]), "")
        name = _name(words, found[1] if found else "")
        found = who(int(number[1]), name) if name else None
        if not name or any(f"@{name}{number[0]}" in one for one in but):
            words += number[0]
        elif found is not None and left:
            left -= 1
            parts += [Text(words[: -len(name) - 1]), Mention(found[0], name)]
            words = "" if text[done : done + 1].isspace() or done == len(text) else " "
    parts.append(Text(words + text[done:]))
    return [part for part in parts if not isinstance(part, Text) or part.text]


def naming(text: str, *, but: Collection[str] = ()) -> str:
    """The text with people called by name, for places without mentions."""
    said = mentioning(text, lambda *_: None, but=but)
    return "".join(part.text for part in said if isinstance(part, Text))


def _name(words: str, known: str) -> str:
    """The name called at the end of these words; empty if there is none."""
    called, known = words[-LONGEST:].casefold(), f"@{known}".casefold()
    if len(known) > 1 and called.endswith(known) and not JOINED.search(called[: -len(known)]):
        return words[1 - len(known) :]
    match = CALLED.search(words[-LONGEST:])
    return match[1] if match else ""


def _without_codes(
    messages: Sequence[tuple[SentSegment, ...]],
    where: Conversation,
    history: History,
    kept: Collection[str],
) -> Iterator[tuple[SentSegment, ...]]:
    """Resolve CQ codes: mention people of a group, quote one known message; remove the rest."""
    left = MOST if where.is_group else 0
    for message in messages:
        parts: list[SentSegment] = []

        def means(code: Code, parts: list[SentSegment] = parts) -> Text | Code | None:
            nonlocal left
            match code:
                case Mention(user_id=number):
                    if (found := _called(where, history, number)) is None or left:
                        left -= found is not None
                        return found
                    return Text(f"@{found.name}") if found.name else None
                case Quote(message_id=message_id) if history.known(where, message_id):
                    return None if any(isinstance(one, Quote) for one in parts) else code
                case Face():
                    return code
                case _:
                    return None

        for segment in message:
            match segment:
                case Text(text=text):
                    parts += replace_codes(text, means, but=kept)
                case MergedForward(nodes=nodes, name=name):
                    parts.append(MergedForward(tuple(_in_words(nodes, where, history, kept)), name))
                case _:
                    parts.append(segment)
        if any(not isinstance(part, Quote) for part in parts):
            yield tuple(parts)


def _in_words(
    nodes: Sequence[str], where: Conversation, history: History, kept: Collection[str]
) -> Iterator[str]:
    """`_without_codes` for places without mentions and quotes: people are called by name."""

    def means(code: Code) -> Text | None:
        if not isinstance(code, Mention):
            return None
        found = _called(where, history, code.user_id)
        return Text(f"@{found.name}") if found is not None and found.name else None

    for node in nodes:
        said = replace_codes(node, means, but=kept)
        if words := "".join(part.text for part in said if isinstance(part, Text)):
            yield words


def _with_numbers(
    messages: Sequence[tuple[SentSegment, ...]],
    where: Conversation,
    history: History,
    kept: Collection[str],
) -> Iterator[tuple[SentSegment, ...]]:
    """Resolve people called by name and number: mentioned in groups, else by name. References
    inside `kept` texts are left alone.
    """
    called = (isinstance(part, Mention) for message in messages for part in message)
    left = max(0, MOST - sum(called)) if where.is_group else 0

    def who(number: int, name: str) -> tuple[int, str] | None:
        user_id = history.speakers.user_id(where, number, name)
        return None if user_id is None else (user_id, history.speakers.name(where, user_id))

    for message in messages:
        parts: list[SentSegment] = []
        for segment in message:
            match segment:
                case Text(text=text):
                    named = mentioning(text, who, most=left, but=kept)
                    left -= sum(isinstance(part, Mention) for part in named)
                    parts += named
                case MergedForward(nodes=nodes, name=name):
                    named_nodes = tuple(naming(node, but=kept) for node in nodes)
                    parts.append(MergedForward(named_nodes, name))
                case _:
                    parts.append(segment)
        yield tuple(parts)


def _called(where: Conversation, history: History, number: int) -> Mention | None:
    """Resolve an account's number, or a number of the prompt: models know both."""
    speakers = history.speakers
    user_id = number if speakers.knows(where, number) else speakers.user_id(where, number)
    return None if user_id is None else Mention(user_id, speakers.name(where, user_id))
