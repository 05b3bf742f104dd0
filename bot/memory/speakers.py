"""The `Members` port: numbers such as `#2` of the people in a conversation, and their latest names.

A number is given once, and journalled with the turn that first shows it. If the store cannot be
read, the taken numbers are unknown, so temporary ones are given from FAR on. They are the same for
the same person in every process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

from bot.core.conversation import Conversation
from bot.core.journal import MemberNumbered
from bot.core.lru import DefaultLRU
from bot.core.ports import Store
from bot.prompt.render import MAX_NAME, person_name

MAX_CONVERSATIONS = 5000
AROUND = "@*_` "  # characters that models put around a name
FAR = 10**6  # above the size of any conversation


@dataclass(slots=True)
class _Book:
    numbers: dict[int, int] = field(default_factory=dict)
    people: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    last: int = 0
    complete: bool = False
    stale: bool = False  # to be read again; runs under way use it until then
    given: list[tuple[int, int, str]] = field(default_factory=list)  # since it is stale

    def write(self, number: int, user_id: int, name: str) -> None:
        self.last = max(self.last, number) if number < FAR else self.last
        self.people[number] = user_id
        if user_id:
            # The lower number wins; a person may also have a temporary one.
            self.numbers[user_id] = min(number, self.numbers.get(user_id, number))
            self.names[user_id] = name

    def is_anothers(self, name: str, user_id: int, number: int) -> bool:
        own = _key(self.names.get(user_id, ""))
        if own and _squeezed(name.casefold()).strip(AROUND) == own:
            return False  # the name as prompts show it, even if others use it too
        whole = _squeezed(f"{name}#{number}")
        if any(whole == _squeezed(known) for one, known in self.names.items() if one != user_id):
            return True  # a person named "Ann##2" is not Ann, who is #2
        key = _key(name)
        if not key:
            return bool(name.strip(AROUND))
        return key != own and any(key == _key(known) for known in self.names.values())


@lru_cache(maxsize=4096)
def _key(name: str) -> str:
    """The name as prompts show it, without spaces, which models leave out."""
    return "".join(person_name(name, MAX_NAME).casefold().split()).strip(AROUND)


def _squeezed(name: str) -> str:
    return "".join(name.replace("＃", "#").split())


class Speakers:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self._books = DefaultLRU[Conversation, _Book](MAX_CONVERSATIONS, _Book)

    def __contains__(self, conversation: Conversation) -> bool:
        """Whether all numbers of the conversation are loaded."""
        if conversation not in self._books:
            return False
        book = self._books.use(conversation)
        return book.complete and not book.stale

    def learn(self, conversation: Conversation, members: Iterable[MemberNumbered]) -> None:
        book = self._books[conversation]
        if book.stale:
            given, book = book.given, _Book()
            self._books[conversation] = book
            for number, user_id, name in given:  # given after the store was read, perhaps
                book.write(number, user_id, name)
        for member in members:
            if member.number not in book.people:
                book.write(member.number, member.user_id, member.name)
        book.complete = True

    def forget(self) -> None:
        """Have the store read again. Runs under way can still look up people until then."""
        for book in self._books.values():
            book.stale = True

    def let_go(self, *, user: int = 0, group: int = 0) -> None:
        """Drop the data of a person, or of all people in a group."""
        for where in [one for one in self._books if one.is_group and one.session_id == group]:
            del self._books[where]
        for book in self._books.values():
            if (number := book.numbers.pop(user, None)) is not None:
                book.people[number] = 0
                del book.names[user]

    def number(self, conversation: Conversation, user_id: int) -> int:
        """Return the person's number, giving one if needed."""
        known = self._books[conversation].numbers.get(user_id)
        return known or self._enter(conversation, user_id, "")

    def user_id(self, conversation: Conversation, number: int, name: str = "") -> int | None:
        """Return who has this number. None if it is free, or if `name` belongs only to another
        person.

        An unknown name is taken for an older or shortened one.
        """
        book = self._books[conversation]
        user_id = book.people.get(number) or None
        return None if user_id and name and book.is_anothers(name, user_id, number) else user_id

    def meet(self, conversation: Conversation, user_id: int, name: str) -> int:
        """Return the number of a person, and keep the person's current name."""
        book = self._books[conversation]
        if (known := book.numbers.get(user_id)) is None:
            return self._enter(conversation, user_id, name)
        if name and book.names[user_id] != name:
            self._write(conversation, known, user_id, name)
        return known

    def knows(self, conversation: Conversation, user_id: int) -> bool:
        return user_id in self._books[conversation].numbers

    def name(self, conversation: Conversation, user_id: int) -> str:
        """Return the person's latest name, or an empty string."""
        return self._books[conversation].names.get(user_id, "")

    def _enter(self, conversation: Conversation, user_id: int, name: str) -> int:
        book = self._books[conversation]
        number = book.last + 1
        if not book.complete:
            number = FAR + crc32(f"{conversation} {user_id}".encode()) % FAR
            while number in book.people:
                number += 1
        self._write(conversation, number, user_id, name)
        return number

    def _write(self, conversation: Conversation, number: int, user_id: int, name: str) -> None:
        book = self._books[conversation]
        book.write(number, user_id, name)
        if book.stale:
            book.given.append((number, user_id, name))
        self._store.put(
            MemberNumbered(conversation=conversation, number=number, user_id=user_id, name=name)
        )
