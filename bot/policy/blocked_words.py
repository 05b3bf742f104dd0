"""The operator's words, and their effect on what is said: whose question is stopped, which sentence
is withheld. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from bot.core.actions import MergedForward, SendMessage, SentSegment
from bot.core.blocked_words import LONGEST, fold_text
from bot.core.events import MessageReceived
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.segments import (
    Card,
    Contact,
    Dice,
    File,
    Forward,
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    Picture,
    Poke,
    Record,
    Rps,
    Sticker,
    Transfer,
    Unsupported,
    Video,
)
from frostagent.types.speech import Attachment, Face, MentionAll, Quote, Text

POLITE = Phrase("（这句不方便说。）", "(I would rather not say that.)")
CATALOGUE.register(__name__, globals())
SENTENCE = re.compile(r"[^。！？!?；;\n]*[。！？!?；;\n]*")


def words_said(messages: Iterable[MessageReceived]) -> str:
    """All words of these lines, one behind the other: what is split in two is one."""
    return "".join(word for message in messages for word in _written(message))


def words_shown(messages: Iterable[MessageReceived]) -> str:
    """The same with all else that a prompt shows of these lines in somebody's words, in its place:
    names of people they mention, captions of pictures, addresses.
    """
    return "".join(word for message in messages for word in _shown(message))


def _written(message: MessageReceived) -> Iterator[str]:
    for segment in message.segments:
        match segment:
            case Text(text=text) | Markdown(content=text) | File(name=text):
                yield text
            case Card(prompt=prompt, title=title, description=more):
                yield from (prompt, title, more)
            case Link(title=title, content=more):
                yield from (title, more)
            case _:
                pass


def _shown(message: MessageReceived) -> Iterator[str]:
    for segment in message.segments:
        match segment:
            case Text(text=text) | Markdown(content=text) | Record(text=text):
                yield text
            case File(name=text) | Transfer(name=text) | Face(name=text):
                yield text
            case Mention(user_id=user_id, name=text):
                yield "" if user_id == message.self_id else text
            case Picture(summary=text) | Sticker(summary=text):
                yield text
            case Card(prompt=prompt, title=title, description=more, url=url):
                yield from (prompt, title, more, url)
            case Link(title=title, content=more, url=url):
                yield from (title, more, url)
            case Location(title=title, content=more):
                yield from (title, more)
            case Keyboard(labels=labels):
                yield from labels
            case MentionAll() | Quote() | Video() | Forward() | Dice() | Rps() | Poke():
                pass
            case Contact() | Unsupported():  # a prompt shows that they are there, nothing more
                pass
            case _:
                assert_never(segment)


def screen_messages(
    actions: tuple[SendMessage, ...],
    withholds: Callable[[str], object],
    tongue_of: Callable[[str], Language],
) -> tuple[SendMessage, ...]:
    """The same messages, with a polite line in their language for each sentence that is withheld;
    for all of one whose words are withheld only together, or of all where those of several are.
    """

    def polite(action: SendMessage) -> str:
        return POLITE.format(tongue_of(sent_words(action)))

    kept = tuple(
        _screened(action, withholds, polite(action)) if withholds(sent_words(action)) else action
        for action in actions
    )
    if len(kept) > 1 and withholds("".join(map(sent_words, kept))):
        return tuple(map(_nothing_of, kept, map(polite, actions)))
    return kept


def screen_continuation(
    earlier: str,
    actions: tuple[SendMessage, ...],
    withholds: Callable[[str], object],
    tongue_of: Callable[[str], Language],
) -> tuple[SendMessage, ...]:
    """The same messages, which go on from `earlier` words, with a polite line for each sentence
    that is withheld together with those; for all there is where that does not help.
    """
    told, tail = tuple(actions), fold_text(earlier)[-LONGEST:]

    def polite(action: SendMessage) -> str:
        return POLITE.format(tongue_of(sent_words(action)))

    def is_withheld() -> bool:
        return bool(withholds(tail + "".join(map(sent_words, told))))

    if not tail or not is_withheld() or withholds(tail):
        return told
    behind = _Behind(tail, withholds)
    told = tuple(_tidied(action, behind, polite(action)) for action in told)
    return tuple(_nothing_of(one, polite(one)) for one in actions) if is_withheld() else told


class _Behind:
    """Whether a sentence is withheld together with what stands before it, of which so much is
    looked at as a word can be long.
    """

    def __init__(self, tail: str, withholds: Callable[[str], object]) -> None:
        self._before = tail
        self._withholds = withholds
        self._left = LONGEST  # characters that may go on from the tail

    def __call__(self, sentence: str) -> bool:
        if self._left <= 0 or not self._before:
            return False
        words = fold_text(sentence)
        if self._withholds(self._before + words):
            self._before = ""  # a polite line stands between
            return True
        self._before, self._left = self._before + words, self._left - len(words)
        return False


def sent_words(action: SendMessage) -> str:
    """All that somebody reads of it, the names of files and of whoever speaks in a forward too."""
    return action.words + "".join(
        [part.name for part in action.segments if isinstance(part, Attachment | MergedForward)]
    )


def _screened(action: SendMessage, withholds: Callable[[str], object], polite: str) -> SendMessage:
    told = _tidied(action, withholds, polite)
    return _nothing_of(action, polite) if withholds(sent_words(told)) else told


def _tidied(action: SendMessage, withholds: Callable[[str], object], polite: str) -> SendMessage:
    def tidy(text: str) -> str:
        shown: list[str] = []
        for one in SENTENCE.findall(text):
            if not withholds(one):
                shown.append(one)
            elif not (shown and shown[-1] == polite):
                shown += [polite, one[len(one.rstrip("\n")) :]] if one.endswith("\n") else [polite]
        return "".join(shown)

    segments: list[SentSegment] = []
    for segment in action.segments:
        match segment:
            case Text(text=text):
                segments.append(Text(tidy(text)))
            case MergedForward(nodes=nodes):
                segments.append(replace(segment, nodes=tuple(map(tidy, nodes))))
            case _:
                segments.append(segment)
    return replace(action, segments=tuple(segments))


def _nothing_of(action: SendMessage, polite: str) -> SendMessage:
    quotes = (segment for segment in action.segments if isinstance(segment, Quote))
    return replace(action, segments=(*quotes, Text(polite)))
