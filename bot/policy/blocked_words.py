"""Applies the operator's word list: questions not answered, and sentences withheld. Pure."""

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
    """All text of these lines joined, so that a word split over two lines is found."""
    return "".join(word for message in messages for word in _written(message))


def words_shown(messages: Iterable[MessageReceived]) -> str:
    """Like `words_said`, with everything else that a prompt shows of the lines: mentioned names,
    captions of images, URLs.
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
            case Contact() | Unsupported():  # a prompt shows only that they are there
                pass
            case _:
                assert_never(segment)


def screen_messages(
    actions: tuple[SendMessage, ...],
    withholds: Callable[[str], object],
    language_of: Callable[[str], Language],
) -> tuple[SendMessage, ...]:
    """Replace each withheld sentence by a polite line in its language. A message whose sentences
    are only withheld together is replaced as a whole; so are all, if several are only withheld
    together.
    """

    def polite(action: SendMessage) -> str:
        return POLITE.format(language_of(sent_words(action)))

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
    language_of: Callable[[str], Language],
) -> tuple[SendMessage, ...]:
    """Like `screen_messages`, for messages that continue `earlier` text and are withheld together
    with it. If replacing sentences is not enough, all messages are replaced.
    """
    told, tail = tuple(actions), fold_text(earlier)[-LONGEST:]

    def polite(action: SendMessage) -> str:
        return POLITE.format(language_of(sent_words(action)))

    def is_withheld() -> bool:
        return bool(withholds(tail + "".join(map(sent_words, told))))

    if not tail or not is_withheld() or withholds(tail):
        return told
    behind = _Behind(tail, withholds)
    told = tuple(_tidied(action, behind, polite(action)) for action in told)
    return tuple(_nothing_of(one, polite(one)) for one in actions) if is_withheld() else told


class _Behind:
    """Whether a sentence is withheld with the text before it, as far as a word may reach."""

    def __init__(self, tail: str, withholds: Callable[[str], object]) -> None:
        self._before = tail
        self._withholds = withholds
        self._left = LONGEST  # characters that may continue the tail

    def __call__(self, sentence: str) -> bool:
        if self._left <= 0 or not self._before:
            return False
        words = fold_text(sentence)
        if self._withholds(self._before + words):
            self._before = ""  # a polite line separates them
            return True
        self._before, self._left = self._before + words, self._left - len(words)
        return False


def sent_words(action: SendMessage) -> str:
    """All text that people see, including names of files and of speakers in a forward."""
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
