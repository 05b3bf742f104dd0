"""The memory of an agent's sessions, behind one port; and the memory that ships: a bounded
one in the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cachetools import LRUCache

from bot.domain.chat import Message, UserMessage

SESSIONS = 1000
ROUNDS = 50


class Memory(Protocol):
    """Where sessions are kept. What is given to `append` is a whole round: a question and all that
    came of it.
    """

    async def load(self, session: str) -> Sequence[Message]:
        """The messages of the session, oldest first; valid as a transcript."""
        ...

    async def append(self, session: str, messages: Sequence[Message]) -> None:
        """Add a round at the end."""
        ...


class InMemory:
    """Keeps the latest sessions, and the latest rounds of each; a call is never parted from its
    result.
    """

    def __init__(self, *, rounds: int = ROUNDS, sessions: int = SESSIONS) -> None:
        self._rounds = rounds
        self._sessions: LRUCache[str, tuple[tuple[Message, ...], ...]] = LRUCache(sessions)

    async def load(self, session: str) -> tuple[Message, ...]:
        """The messages of the session, oldest first."""
        return tuple(message for each in self._sessions.get(session, ()) for message in each)

    async def append(self, session: str, messages: Sequence[Message]) -> None:
        """Add a round; the oldest ones beyond the limit are forgotten. Raises ValueError for one
        without a question.
        """
        if not messages or not isinstance(messages[0], UserMessage):
            raise ValueError("a round begins with what somebody asked")
        self._sessions[session] = (*self._sessions.get(session, ()), tuple(messages))[
            -self._rounds :
        ]
