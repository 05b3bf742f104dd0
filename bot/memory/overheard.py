"""The lines of a conversation since the last run, which nobody has read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from bot.domain.events import MessageReceived
from bot.domain.journal import Remembered


class Overheard:
    """The last `most` messages, each of which leaves with the first who takes it, and how many were
    `missed` before them.

    Where some people are answered side by side, each reads from where he has read to: what another
    run has read, which no round tells yet, is new to him.
    """

    def __init__(self, most: int) -> None:
        self._messages: deque[MessageReceived] = deque(maxlen=most)
        self._untold: deque[tuple[MessageReceived, set[int]]] = deque(maxlen=most)  # and by whom
        self.missed = 0

    def __len__(self) -> int:
        """How many wait to be taken, or counted."""
        return len(self._messages) + self.missed

    @property
    def is_read(self) -> bool:
        """Whether nobody has anything to take."""
        return not (self._messages or self._untold or self.missed)

    def add(self, message: MessageReceived) -> None:
        """It was overheard."""
        self.missed += len(self._messages) == self._messages.maxlen
        self._messages.append(message)

    def recall(self, remembered: Remembered) -> None:
        """Put the store's lines before all others; some of it may be known already."""
        stored = [message.identity for message in remembered.overheard]
        since = [message for message in self._messages if message.identity not in stored]
        self._messages.clear()
        self.missed = remembered.missed
        for message in (*remembered.overheard, *since):
            self.add(message)

    def take(self, reader: int | None = None) -> tuple[MessageReceived, ...]:
        """Take all, oldest first: what was missed and found later stands where it was said. None
        reads for everybody.
        """
        taken = list(self._messages)
        if reader is not None:
            for message, readers in self._untold:
                if reader not in readers:
                    readers.add(reader)
                    taken.append(message)
            self._untold.extend((message, {reader}) for message in self._messages)
        self._messages.clear()
        self.missed = 0
        return tuple(sorted(taken, key=lambda message: message.time))

    def told(self, message_ids: Collection[str]) -> None:
        """A round tells these from now on."""
        if self._untold:
            untold = [one for one in self._untold if one[0].message_id not in message_ids]
            self._untold = deque(untold, self._untold.maxlen)

    def take_lines(
        self, wanted: Callable[[MessageReceived], bool], *, most: int
    ) -> tuple[MessageReceived, ...]:
        """Take the last of these, oldest first."""
        lines = tuple(message for message in self._messages if wanted(message))[-most:]
        for line in lines:
            self._messages.remove(line)
        return lines

    def forget(self, message_id: str) -> bool:
        """Forget a message; whether it was there, and nobody has read it."""
        self.told((message_id,))
        found = [message for message in self._messages if message.message_id == message_id]
        for message in found:
            self._messages.remove(message)
        return bool(found)
