"""Builds the transcript of a run from history and question. Stable parts come first: nothing that
changes stands before the history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.segments import Forward, Picture, Record, Segment
from bot.core.urls import links_in
from bot.prompt.render import (
    MAX_NAME,
    MAX_TEXT,
    View,
    address,
    indented,
    label,
    line,
    plain,
    replying,
)
from bot.prompt.wording import Wording
from frostagent.models.tokens import estimate_text
from frostagent.types.errors import Lack
from frostagent.types.messages import Message, SystemMessage, UserMessage
from frostagent.types.speech import Quote

DATE = re.compile(r"^\[(\d{4}-\d\d-\d\d)(?: [^\]\n]*)?\]$", re.MULTILINE)
INDENTED = re.compile(r"\A(?:  [^\n]*\n)+")
MAX_ASIDE = 800  # characters of a context message, so that a flood cannot fill the window
MAX_TALK = 1500  # tokens of overheard messages
MAX_LINES = 60  # overheard lines; a person answered in parallel may have more that are new
MAX_LINKS = 3
MAX_LINK = 400  # characters of a URL
NAME_TOKENS = 8.0  # for the name before a line


class ForwardedMessage(Struct, frozen=True):
    """A message in a merged forward; `depth` counts the forwards around it, from 1."""

    message: MessageReceived
    depth: int = 1


class Forwarded(Struct, frozen=True):
    """Messages of a merged forward, each before those nested in it; number of omitted ones."""

    lines: tuple[ForwardedMessage, ...] = ()
    left_out: int = 0


class Question(Struct, frozen=True):
    """A wake with the message it quotes and the messages it forwards.

    `lines` are the asker's earlier lines that belong to it, oldest first. `elsewhere`: the quoted
    message is from another conversation and must not be shown. `links` are URLs in it that may be
    read and summed up (BOT_LINKS).
    """

    message: MessageReceived
    quoted: MessageReceived | None = None
    forwarded: Forwarded = Forwarded()
    elsewhere: bool = False
    lines: tuple[MessageReceived, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def said(self) -> tuple[MessageReceived, ...]:
        """All lines of the asker, oldest first."""
        return (*self.lines, self.message)


class OverheardTalk(Struct, frozen=True):
    """The messages overheard since the last run, oldest first, and the number of earlier ones not
    kept.

    `replies` are the messages they quote, by id.
    """

    messages: Sequence[MessageReceived] = ()
    missed: int = 0
    replies: Mapping[str, MessageReceived] = field(default_factory=dict)


class PicturePlace(StrEnum):
    QUESTION = "question"
    QUOTED = "quoted"
    FORWARDED = "forwarded"


@dataclass(frozen=True, slots=True)
class QuestionPicture:
    """An image of a question: a data URL, a description in `words`, or the reason it is missing.
    `handle` is its short name.
    """

    place: PicturePlace
    url: str = ""
    handle: str = ""
    words: str = ""
    lack: Lack | None = None

    def where(self, words: Wording) -> str:
        return f"{words.places[self.place]} {self.handle}".strip()

    def told(self, words: Wording) -> str:
        """The text shown instead of the image; empty if the image itself is shown."""
        if self.lack is None:
            return " ".join(self.words.split())
        return words.heading(words.segments.picture, words.lacks[self.lack])


NO_TALK = OverheardTalk()


@lru_cache(maxsize=256)
def system_prompt(persona: str, *, name: str, words: Wording, sees: bool = True) -> SystemMessage:
    """Persona and rules, byte-identical in every run. Without `sees`, the model is told that it
    cannot see images.
    """
    headings = {
        "earlier": words.heading(words.earlier),
        "record": words.heading(words.record),
        "forwarded": words.heading(words.forwarded),
        "question": words.heading(words.question),
        "added": words.heading(words.added),
        "notes": words.heading(words.notes),
        "now": words.heading(words.now),
        "recalled": words.heading(words.recalled),
        "own": words.own,
    }
    rules = words.rules.format(name=name, **headings) + ("" if sees else f"\n{words.blind}")
    return SystemMessage(f"{persona.strip()}\n\n{rules}")


def user_message(
    question: Question, view: View, talk: OverheardTalk = NO_TALK, *, day: str = ""
) -> UserMessage:
    """Render the messages overheard since the last run, then the question. Stored as rendered.

    `day` is the last date shown in the prompt so far.
    """
    writer = _Writer(view, day)
    writer.record(talk)
    words, asked = view.words, question.message
    writer.parts += forwarded_lines(question.forwarded, view)
    first = question.lines[0] if question.lines else asked
    writer.date(first)
    writer.parts.append(words.heading(words.question, view.clock(asked.time)))
    for message in question.lines:
        writer.line(message, talk.replies)
    about = words.elsewhere if question.elsewhere else _about_quote(asked, words)
    text = line(asked, view, quoted=question.quoted, about=about)
    writer.add(asked, text, quoted=question.quoted)
    if question.links:  # whole: a quotation is cut after some characters
        writer.parts.append(" ".join((words.heading(words.links), *question.links)))
    sources, quotes = tuple(writer.sources), tuple(writer.quotes)
    return UserMessage("\n".join(writer.parts), sources=sources, quotes=quotes)


def _about_quote(message: MessageReceived, words: Wording) -> str:
    """The note on a quoted message that cannot be read; empty if the message quotes nothing."""
    return words.unreadable if any(isinstance(one, Quote) for one in message.segments) else ""


class _Writer:
    """Collects lines, with a date line whenever the day changes."""

    def __init__(self, view: View, day: str) -> None:
        self._view = view
        self._day = day
        self._last = ""
        self.parts: list[str] = []
        self.sources: list[str] = []
        self.quotes: list[tuple[str, str]] = []

    def record(self, talk: OverheardTalk) -> None:
        """Add the latest overheard messages, and the number of omitted ones."""
        if not talk.messages:
            return
        shown = self._room(talk)
        first, last = shown[0], shown[-1]
        begin, end = self._view.clock(first.time), self._view.clock(last.time)
        self.date(first)
        words = self._view.words
        span = f"{begin}-{end}" if begin and end and begin != end else begin or end
        self.parts.append(words.heading(words.record, span))
        if left_out := talk.missed + len(talk.messages) - len(shown):
            self.parts.append(words.more.format(number=left_out))
        for message in shown:
            self.date(message)
            self.line(message, talk.replies, limit=MAX_ASIDE)

    def _room(self, talk: OverheardTalk) -> Sequence[MessageReceived]:
        tokens, first = 0.0, max(0, len(talk.messages) - MAX_LINES)
        for place in reversed(range(first, len(talk.messages))):
            message = talk.messages[place]
            words = plain(message.segments, self._view, self_id=message.self_id)[:MAX_ASIDE]
            tokens += NAME_TOKENS + estimate_text(words)
            if tokens > MAX_TALK and place < len(talk.messages) - 1:
                return talk.messages[place + 1 :]
        return talk.messages[first:]

    def date(self, message: MessageReceived) -> None:
        """Add a date line if this message is from another day than the line before."""
        day = self._view.day(message.time)
        if day and day != self._day:
            self._day = day
            self.parts.append(self._view.words.heading(self._view.date(message.time)))

    def line(
        self,
        message: MessageReceived,
        replies: Mapping[str, MessageReceived],
        *,
        limit: int = MAX_TEXT,
    ) -> None:
        quoted = next((one.message_id for one in message.segments if isinstance(one, Quote)), "")
        known = replies.get(quoted)
        reply = replying(known, self._view, told=quoted == self._last) if known else ""
        about = "" if known else _about_quote(message, self._view.words)
        text = line(message, self._view, about=about, reply=reply, limit=limit)
        self.add(message, text, quoted=known)

    def add(
        self, message: MessageReceived, text: str, *, quoted: MessageReceived | None = None
    ) -> None:
        self._last = message.message_id
        if quoted:
            self.quotes.append((message.message_id, quoted.message_id))
        self.parts.append(text)
        self.sources.append(message.message_id)


def last_day(rounds: Sequence[Message]) -> str:
    """Return the last date shown in these messages, or an empty string."""
    for message in reversed(rounds):
        if isinstance(message, UserMessage) and (found := DATE.findall(message.text)):
            return str(found[-1])
    return ""


def forwarded_lines(forwarded: Forwarded, view: View) -> Iterator[str]:
    """The lines of a merged forward, indented by one more level for each nested forward."""
    if not forwarded.lines:
        return
    yield view.words.heading(view.words.forwarded)
    for passed in forwarded.lines:
        fence = "  " * passed.depth
        yield fence + line(passed.message, view, limit=MAX_ASIDE).replace("\n", f"\n{fence}")
    if forwarded.left_out:
        yield f"  {view.words.more.format(number=forwarded.left_out)}"


def transcript(
    system: SystemMessage,
    history: Sequence[Message],
    user: UserMessage,
    *,
    words: Wording,
    summary: str = "",
    examples: tuple[Message, ...] = (),
) -> tuple[Message, ...]:
    """Build the transcript of a run. The `summary` of earlier rounds goes into the first user
    message; the persona's `examples` go before everything that changes.
    """
    messages = (*history, user)
    if summary and isinstance(first := messages[0], UserMessage):
        earlier = f"{words.heading(words.earlier)}\n  {indented(summary)}\n{first.text}"
        messages = (replace(first, text=earlier), *messages[1:])
    return (system, *examples, *messages)


def without_summary(messages: Sequence[Message], words: Wording) -> tuple[Message, ...]:
    heading = f"{words.heading(words.earlier)}\n"
    return tuple(
        replace(one, text=INDENTED.sub("", one.text.removeprefix(heading)))
        if isinstance(one, UserMessage) and one.text.startswith(heading)
        else one
        for one in messages
    )


def with_pictures(
    messages: tuple[Message, ...],
    pictures: Sequence[QuestionPicture],
    *,
    words: Wording,
    now: str = "",
) -> tuple[Message, ...]:
    """Return the transcript with images and the facts of the moment (`now`) added to its last
    message, the question. They are sent in this run's requests only and never stored.
    """
    if not isinstance(question := messages[-1], UserMessage):
        return messages
    if not pictures:
        text = f"{question.text}\n{now}" if now else question.text
        return (*messages[:-1], replace(question, text=text, images=()))
    parts, shown = [question.text], [picture for picture in pictures if picture.url]
    told = [f"  {one.where(words)}: {text}" for one in pictures if (text := one.told(words))]
    if shown:
        places = ", ".join(picture.where(words) for picture in shown)
        parts.append(f"{words.heading(words.pictures)} {places}")
    parts += [words.heading(words.described), *told] if told else []
    parts += [now] if now else []
    images = tuple(picture.url for picture in shown)
    return (*messages[:-1], replace(question, text="\n".join(parts), images=images))


def links_in_question(question: Question) -> tuple[str, ...]:
    """The URLs that a question may be about: those in the message it quotes, else its own; at most
    MAX_LINKS, in the form that the prompt shows.
    """
    quoted = () if question.quoted is None else question.quoted.segments
    own = (one for message in question.said for one in message.segments)
    found = dict.fromkeys(links_in(quoted)) or dict.fromkeys(links_in(own))
    return tuple(address(url, len(url)) for url in found if len(url) <= MAX_LINK)[:MAX_LINKS]


def now_line(
    told: str, words: Wording, recalled: Sequence[str] = (), *, has_links: bool = False
) -> str:
    """The line of facts under `[此刻]`, then the remembered facts, a line each, under `[记得]`;
    before them what to do if the question is about its links.
    """
    now = f"{words.heading(words.now)} {told}"
    parts = [words.about_links, now] if has_links else [now]
    if recalled:
        parts += [words.heading(words.recalled), *(f"  {indented(line)}" for line in recalled)]
    return "\n".join(parts)


def now_facts(question: MessageReceived, view: View) -> str:
    """The facts of the moment in one line: date, place, and who asks."""
    return view.words.comma.join(filter(None, _facts(question, view)))


def _facts(question: MessageReceived, view: View) -> tuple[str, ...]:
    words, date = view.words, view.date(question.time)
    if not question.conversation.is_group:
        return date, words.private
    name = _place(question.group_name)
    here = words.here.format(name=name) if name else ""
    return date, here, words.roles.get(question.sender.role, "")


@lru_cache(maxsize=1024)
def _place(name: str) -> str:
    return label(name, MAX_NAME)


def addition_line(
    message: MessageReceived, view: View, *, quoted: MessageReceived | None = None
) -> UserMessage:
    words = view.words
    heading = words.heading(words.added, view.clock(message.time))
    text = line(message, view, quoted=quoted)
    quotes = ((message.message_id, quoted.message_id),) if quoted else ()
    return UserMessage(f"{heading}\n{text}", sources=(message.message_id,), quotes=quotes)


MAX_LOOKED = 9000  # characters; above the limit of any single attachment


def opened_line(message: MessageReceived, forwarded: Forwarded, view: View) -> str:
    """Render an opened attachment as its sender's line; in a forward, the sender is unknown."""
    if message.sender.user_id:
        return "\n".join((line(message, view, limit=MAX_LOOKED), *forwarded_lines(forwarded, view)))
    inner = indented(plain(message.segments, view, self_id=message.self_id), MAX_LOOKED)
    heading = view.words.heading(view.words.forwarded)
    return "\n".join(
        (heading, "  " + inner.replace("\n", "\n  "), *forwarded_lines(forwarded, view))
    )


def missing_words(segment: Segment, lack: Lack, words: Wording) -> str:
    """The text for an attachment that cannot be read, such as `[图片 已过期]`."""
    match segment:
        case Picture():
            kind = words.segments.picture
        case Record():
            kind = words.segments.voice
        case Forward():
            kind = words.segments.forward
        case _:
            kind = words.segments.file
    return words.heading(kind, words.lacks[lack])
