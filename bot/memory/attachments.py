"""Short names of attachments, such as `i7` in `[图片 i7]`, counted per conversation.

An attachment gets its name when a prompt first shows it, and the name is stored at once. While the
store cannot be read, no names are given, because the taken ones are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.journal import AttachmentNamed
from bot.core.lru import DefaultLRU
from bot.core.ports import Store
from bot.core.segments import File, Forward, Picture, Record, Segment

MAX_CONVERSATIONS = 5000
MAX_THINGS = 300  # attachments of a conversation that can be opened by name
MAX_CONTENT = 50_000  # characters; a longer forward is kept by its id alone
HANDLE = re.compile(r"\b([ivaf])(\d{1,9})\b")
ALL = frozenset("ivaf")
"""Images, voice messages, files and forwards."""

Known: TypeAlias = Picture | Record | File | Forward
KINDS = frozenset({Picture, Record, File, Forward})


@dataclass(slots=True)
class _Shelf:
    things: dict[int, AttachmentNamed] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    last: int = 0
    complete: bool = False

    def write(self, thing: AttachmentNamed) -> None:
        self.last = max(self.last, thing.number)
        if thing.segment is None:
            return
        self.things[thing.number] = thing
        self.numbers[thing.message_id, _mark(thing.segment)] = thing.number
        if len(self.things) > MAX_THINGS:
            self.drop(next(iter(self.things)))

    def drop(self, number: int) -> None:
        thing = self.things.pop(number)
        if thing.segment is not None:
            del self.numbers[thing.message_id, _mark(thing.segment)]


class Attachments:
    """`kinds` are the letters of the attachments that can be opened."""

    def __init__(self, *, store: Store, kinds: Collection[str] = ALL) -> None:
        self._store = store
        self._kinds = frozenset(kinds)
        self._books = DefaultLRU[Conversation, _Shelf](MAX_CONVERSATIONS, _Shelf)

    def __contains__(self, conversation: Conversation) -> bool:
        """Whether the conversation's names have been read from the store."""
        return conversation in self._books and self._books.use(conversation).complete

    def learn(self, conversation: Conversation, things: Iterable[AttachmentNamed]) -> None:
        """Add the stored names of a conversation."""
        book = self._books[conversation]
        for thing in things:
            if thing.number not in book.things:
                book.write(thing)
        book.complete = True

    def forget(self) -> None:
        """Drop all names, so that they are read from the store again."""
        self._books.clear()

    def forget_message(self, conversation: Conversation, message_id: str) -> None:
        """Drop the names in a recalled message."""
        book = self._books[conversation]
        gone = [n for n, thing in book.things.items() if thing.message_id == message_id]
        for number in gone:
            book.drop(number)

    def find(self, conversation: Conversation, handle: str) -> AttachmentNamed | None:
        """Return the attachment of a name such as `i7`; brackets around the name are ignored."""
        if (named := HANDLE.search(handle)) is None:
            return None
        thing = self._books[conversation].things.get(int(named[2]))
        return thing if thing is not None and _letter(thing.segment) == named[1] else None

    def named(
        self, message: MessageReceived, *, within: MessageReceived | None = None
    ) -> MessageReceived:
        """Return the message with a name for each attachment that can be opened. `within` is the
        message that forwards or quotes it: the names belong to that message, and their sender is
        unknown.
        """
        outer = message if within is None else within
        if message.is_own or KINDS.isdisjoint(map(type, message.segments)):
            return message  # the usual case
        if not any(map(self._may_be_named, message.segments)):
            return message
        book = self._books[outer.conversation]
        if not book.complete or not outer.message_id:
            return message
        author = message.sender if within is None else Sender(0, message.sender.name)
        return replace(
            message,
            segments=tuple(
                self._name(book, outer, author, segment) for segment in message.segments
            ),
        )

    def _may_be_named(self, segment: Segment) -> bool:
        match segment:
            case Picture() | Record() | File() | Forward():
                return _letter(segment) in self._kinds
            case _:
                return False

    def _name(
        self, book: _Shelf, outer: MessageReceived, author: Sender, segment: Segment
    ) -> Segment:
        match segment:
            case Picture() | Record() | File() | Forward() if self._may_be_named(segment):
                number = book.numbers.get((outer.message_id, _mark(segment)))
                if number is None:
                    number = book.last + 1
                    thing = AttachmentNamed(
                        conversation=outer.conversation,
                        number=number,
                        message_id=outer.message_id,
                        sender=author,
                        segment=_kept(segment),
                    )
                    book.write(thing)
                    self._store.put(thing)
                return replace(segment, handle=f"{_letter(segment)}{number}")
            case _:
                return segment


def again(thing: AttachmentNamed) -> Segment:
    """Return a stored attachment with its name. Raises ValueError if its message was recalled."""
    if thing.segment is None:
        raise ValueError("it was taken back")
    return replace(thing.segment, handle=f"{_letter(thing.segment)}{thing.number}")


def _letter(segment: Known | None) -> str:
    match segment:
        case Picture():
            return "i"
        case Record():
            return "v"
        case File():
            return "a"
        case Forward():
            return "f"
        case None:
            return ""
        case _:
            assert_never(segment)


def _mark(segment: Known) -> str:
    """Return the same key for the same attachment each time its message is read."""
    match segment:
        case Picture(file=file, url=url) | Record(file=file, url=url):
            return f"{_letter(segment)} {file or url}"
        case File(id=id_, name=name):
            return f"a {id_ or name}"
        case Forward(id=id_, content=content):
            return f"f {id_ or content[:MAX_CONTENT]}"
        case _:
            assert_never(segment)


def _kept(segment: Known) -> Known:
    if isinstance(segment, Forward) and len(segment.content) > MAX_CONTENT:
        return Forward(segment.id)
    return segment
