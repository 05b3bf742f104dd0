"""Which runs go on in which session: one question after the other, and people can say something
into them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from bot.engine.running import RunState


class Sessions:
    """The sessions in which something goes on; nothing is kept of the others."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: dict[str, list[RunState]] = {}

    def turn(self, session: str) -> asyncio.Lock:
        """The lock that a question of the session holds while it is answered."""
        return self._turns.setdefault(session, asyncio.Lock())

    @contextmanager
    def running(self, session: str | None, state: RunState) -> Iterator[None]:
        """The run goes on in the session while the block runs; where that is None, nobody can say
        anything into it.
        """
        if session is None:
            yield
            return
        states = self._running.setdefault(session, [])
        states.append(state)
        try:
            yield
        finally:
            states[:] = [each for each in states if each is not state]
            if not states:
                self._running.pop(session, None)

    def runs(self, session: str) -> tuple[RunState, ...]:
        """The runs that go on in the session, the oldest first."""
        return tuple(self._running.get(session, ()))
