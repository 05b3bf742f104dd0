"""Talks in which the bot had a part and facts were not looked for yet: known over a restart."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from bot.domain.books import Choices
from bot.domain.events import Conversation
from bot.domain.journal import PlaceSet
from bot.domain.ports import Clock, Store
from bot.memory.kept import KeptSettings

SETTING: Final = "talk"
RECENT: Final = 24 * 3600.0  # seconds for which a talk is still worth looking for


class OpenTalk(Struct, frozen=True):
    """A talk by its first turn, and since when it goes on, by the server's clock."""

    turn_id: str
    since: float

    def __str__(self) -> str:
        return f"{self.since:.0f} {self.turn_id}"


class OpenTalks(KeptSettings[OpenTalk]):
    """Keeps one for each conversation at most."""

    def __init__(self, *, store: Store, choices: Choices, clock: Clock) -> None:
        super().__init__(SETTING, read=_read, store=store, choices=choices, clock=clock)

    def begin(self, where: Conversation, talk: OpenTalk) -> None:
        """A talk goes on there, unless one did."""
        if where not in self._values:
            self.resume(where, talk)

    def resume(self, where: Conversation, talk: OpenTalk) -> None:
        """A talk goes on there that began before whatever goes on there now."""
        self._put(where, talk, str(talk))

    def end(self, where: Conversation) -> None:
        """Nothing of it is to be looked through any more."""
        self._values.pop(where, None)
        self._store.put(PlaceSet(where, SETTING, ""))

    def end_all(self) -> None:
        """The same everywhere."""
        for where in tuple(self._values):
            self.end(where)

    def of(self, where: Conversation) -> OpenTalk | None:
        """The one that goes on there."""
        return self._values.get(where)

    def recent(self, most: int) -> dict[Conversation, OpenTalk]:
        """The latest of those that go on, or did not long ago, oldest first; older ones are
        over.
        """
        begin = self._clock.now() - RECENT
        for where, talk in tuple(self._values.items()):
            if talk.since < begin:
                self.end(where)
        return dict(sorted(self._values.items(), key=lambda one: one[1].since)[-most:])


def _read(text: str) -> OpenTalk | None:
    since, _, turn_id = text.partition(" ")
    return OpenTalk(turn_id, float(since)) if since.isdecimal() and turn_id else None
