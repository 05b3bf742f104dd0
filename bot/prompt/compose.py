"""Turn + history -> transcript. Stable first, volatile last: nothing that changes stands before the
history.
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
from bot.prompt.render import MAX_NAME, MAX_TEXT, View, indented, label, line, plain, replying
from bot.prompt.wording import Wording
from frostagent.models.tokens import estimate_text
from frostagent.types.errors import Lack
from frostagent.types.messages import Message, SystemMessage, UserMessage
from frostagent.types.speech import Quote

DATE = re.compile(r"^\[(\d{4}-\d\d-\d\d)(?: [^\]\n]*)?\]$", re.MULTILINE)
INDENTED = re.compile(r"\A(?:  [^\n]*\n)+")
MAX_ASIDE = 800  # characters of a message that is only context: a flood must not fill the window
MAX_TALK = 1500  # tokens of what was overheard
MAX_LINES = 60  # of it: where members are answered side by side more may be new to one of them
NAME_TOKENS = 8.0  # in front of a line


class ForwardedMessage(Struct, frozen=True):
    """A message inside a merged forward; `depth` is 1, and one more for each forward around it."""

    message: MessageReceived
    depth: int = 1


class Forwarded(Struct, frozen=True):
    """The messages inside a merged forward, each before those inside it; so many more are left
    out.
    """

    lines: tuple[ForwardedMessage, ...] = ()
    left_out: int = 0


class Question(Struct, frozen=True):
    """A wake with what it refers to: the message it quotes, and the messages inside what it
    forwards.

    `lines` are what its asker said before it and what belongs to it, oldest first.
    `elsewhere`: what it quotes was said in another conversation, and is not to be told here.
    """

    message: MessageReceived
    quoted: MessageReceived | None = None
    forwarded: Forwarded = Forwarded()
    elsewhere: bool = False
    lines: tuple[MessageReceived, ...] = ()

    @property
    def said(self) -> tuple[MessageReceived, ...]:
        """All that its asker said, oldest first."""
        return (*self.lines, self.message)


class OverheardTalk(Struct, frozen=True):
    """The lines overheard since the last run, oldest first, and how many before it nobody kept.

    `replies` are messages that these quote, by their ids.
    """

    messages: Sequence[MessageReceived] = ()
    missed: int = 0
    replies: Mapping[str, MessageReceived] = field(default_factory=dict)


class PicturePlace(StrEnum):
    """Where in a question a picture stands."""

    QUESTION = "question"
    QUOTED = "quoted"
    FORWARDED = "forwarded"


@dataclass(frozen=True, slots=True)
class QuestionPicture:
    """A picture of a question as a data url, or what it shows in `words`, or why it is not shown;
    `handle` is its short name.
    """

    place: PicturePlace
    url: str = ""
    handle: str = ""
    words: str = ""
    lack: Lack | None = None

    def where(self, words: Wording) -> str:
        """Its place and its name."""
        return f"{words.places[self.place]} {self.handle}".strip()

    def told(self, words: Wording) -> str:
        """The words in its place; empty where it is shown."""
        if self.lack is None:
            return " ".join(self.words.split())
        return words.heading(words.segments.picture, words.lacks[self.lack])


NO_TALK = OverheardTalk()


@lru_cache(maxsize=256)
def system_prompt(persona: str, *, name: str, words: Wording, sees: bool = True) -> SystemMessage:
    """The persona and the rules of the chat; the same bytes for every run. Where nobody `sees`
    pictures, the model is told so.
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
    """The messages overheard since the last run, then the question. Rendered once and stored as
    rendered.

    `day` is the last date that the prompt has told before.
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
    sources, quotes = tuple(writer.sources), tuple(writer.quotes)
    return UserMessage("\n".join(writer.parts), sources=sources, quotes=quotes)


def _about_quote(message: MessageReceived, words: Wording) -> str:
    """What is told of a quote that nobody can read; empty if the message quotes nothing."""
    return words.unreadable if any(isinstance(one, Quote) for one in message.segments) else ""


class _Writer:
    """Puts lines behind each other, with a date where the day changes."""

    def __init__(self, view: View, day: str) -> None:
        self._view = view
        self._day = day
        self._last = ""
        self.parts: list[str] = []
        self.sources: list[str] = []
        self.quotes: list[tuple[str, str]] = []

    def record(self, talk: OverheardTalk) -> None:
        """Tell the newest of what was overheard, and how many there were before."""
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
        """A line with the date, where this was said on another day than what stands before it."""
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
        """A message with whom it replies to."""
        quoted = next((one.message_id for one in message.segments if isinstance(one, Quote)), "")
        known = replies.get(quoted)
        reply = replying(known, self._view, told=quoted == self._last) if known else ""
        about = "" if known else _about_quote(message, self._view.words)
        text = line(message, self._view, about=about, reply=reply, limit=limit)
        self.add(message, text, quoted=known)

    def add(
        self, message: MessageReceived, text: str, *, quoted: MessageReceived | None = None
    ) -> None:
        """A line that is this message's, and quotes that one."""
        self._last = message.message_id
        if quoted:
            self.quotes.append((message.message_id, quoted.message_id))
        self.parts.append(text)
        self.sources.append(message.message_id)


def last_day(rounds: Sequence[Message]) -> str:
    """The last date that these tell; empty where they tell none."""
    for message in reversed(rounds):
        if isinstance(message, UserMessage) and (found := DATE.findall(message.text)):
            return str(found[-1])
    return ""


def forwarded_lines(forwarded: Forwarded, view: View) -> Iterator[str]:
    """Lines that somebody passes on, each fenced one level deeper than what it is inside of."""
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
    """The transcript that a run begins with. The `summary` of what came before stands in the first
    user message: it is no round. The persona's `examples` stand before everything that changes.
    """
    messages = (*history, user)
    if summary and isinstance(first := messages[0], UserMessage):
        earlier = f"{words.heading(words.earlier)}\n  {indented(summary)}\n{first.text}"
        messages = (replace(first, text=earlier), *messages[1:])
    return (system, *examples, *messages)


def without_summary(messages: Sequence[Message], words: Wording) -> tuple[Message, ...]:
    """A transcript without the summary of what came before it."""
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
    """A transcript whose question, which stands last, is shown with these pictures and whose they
    are, and with the words of `moment` behind it (`now`).

    For the requests of one run: what is kept of it has neither.
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


def now_line(told: str, words: Wording, recalled: Sequence[str] = ()) -> str:
    """The line of `facts`, behind the heading `[此刻]`; then what is remembered, a line each, under
    `[记得]`.
    """
    now = f"{words.heading(words.now)} {told}"
    if not recalled:
        return now
    lines = [f"  {indented(line)}" for line in recalled]
    return "\n".join([now, words.heading(words.recalled), *lines])


def now_facts(question: MessageReceived, view: View) -> str:
    """The line of what is so at the moment: the date, where this is, and who asks."""
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
    """A group's name, the same in each of its questions."""
    return label(name, MAX_NAME)


def addition_line(
    message: MessageReceived, view: View, *, quoted: MessageReceived | None = None
) -> UserMessage:
    """The line under its heading, with the time."""
    words = view.words
    heading = words.heading(words.added, view.clock(message.time))
    text = line(message, view, quoted=quoted)
    quotes = ((message.message_id, quoted.message_id),) if quoted else ()
    return UserMessage(f"{heading}\n{text}", sources=(message.message_id,), quotes=quotes)


MAX_LOOKED = 9000  # characters: more than anybody gives of one thing


def opened_line(message: MessageReceived, forwarded: Forwarded, view: View) -> str:
    """Something that was opened, as the line of whoever sent it; of what is inside a forward nobody
    knows who that was.
    """
    if message.sender.user_id:
        return "\n".join((line(message, view, limit=MAX_LOOKED), *forwarded_lines(forwarded, view)))
    inner = indented(plain(message.segments, view, self_id=message.self_id), MAX_LOOKED)
    heading = view.words.heading(view.words.forwarded)
    return "\n".join(
        (heading, "  " + inner.replace("\n", "\n  "), *forwarded_lines(forwarded, view))
    )


def missing_words(segment: Segment, lack: Lack, words: Wording) -> str:
    """The words for something that cannot be had: `[图片 已过期]`."""
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
