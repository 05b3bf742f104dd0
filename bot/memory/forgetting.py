"""Erases all that is kept of a person or a group, in the journal and in memory.

The journal first: where that fails, nothing was let go of. What was begun before memory had let go
had the words still, and what it put is behind that erasure: so all is done once more, but what was
said to the bot since the first time stays.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.other_bots import ALONE, Announcer
from bot.core.query_results import Eraser
from bot.memory.history import History


class Forgetting:
    """Of whoever is to be forgotten nothing stays. `cancel_questions` ends questions that wait for
    an answer, `cancel_join_requests` those that wait for an owner's word; `then` lets go of what
    else is in memory. Other bots let go of what they have
    in memory.

    When it was `said` is in seconds since 1970, by the server's clock: what is asked after that is
    answered, though a restart may have brought it here before. Where nobody said it, what is asked
    once all was erased is answered, by our own clock.
    """

    def __init__(
        self,
        eraser: Eraser,
        history: History,
        *,
        cancel_questions: Callable[[SubjectErased], Awaitable[None]],
        cancel_join_requests: Callable[[SubjectErased], None],
        now: Callable[[], float],
        then: Sequence[Callable[[], None]] = (),
        announcer: Announcer = ALONE,
    ) -> None:
        self._announcer = announcer
        self._eraser = eraser
        self._history = history
        self._cancel_questions = cancel_questions
        self._cancel_join_requests = cancel_join_requests
        self._now = now
        self._then = then
        self._followers: list[Callable[[SubjectErased], None]] = []

    def follow(self, follower: Callable[[SubjectErased], None]) -> None:
        """Tell this one, too, whoever is forgotten: it has words of people."""
        self._followers.append(follower)

    async def person(self, user: int, *, said: float = math.inf) -> int:
        """Of a person, everywhere; how many records there were. Raises BotError."""
        return await self._forget(SubjectErased(user=user, said=_finite(said)))

    async def group(self, group: int, *, said: float = math.inf) -> int:
        """Of a group; how many records there were. Raises BotError."""
        return await self._forget(SubjectErased(group=group, said=_finite(said)))

    async def elsewhere(self, note: SubjectErased) -> None:
        """Another bot has erased somebody, or a group: let go of it, too."""
        await self._cancel_questions(note)
        self._cancel_join_requests(note)
        for let_it_go in self._then:
            let_it_go()
        for follower in self._followers:
            follower(note)
        self._history.speakers.let_go(user=note.user, group=note.group)
        await self._history.reread()

    async def chat(self, where: Conversation) -> int:
        """Of a group, or of whom a private chat is with. Raises BotError."""
        return await (self.group if where.is_group else self.person)(where.session_id)

    async def _forget(self, note: SubjectErased) -> int:
        rows = await self._once(note, since=math.inf)
        since = self._now()
        again = replace(note, since=since) if note.said is None else note
        rows += await self._once(again, since=since)
        await self._eraser.sweep()
        return rows

    async def _once(self, note: SubjectErased, *, since: float) -> int:
        await self._history.reread()  # loses nothing; who reads it anew waits for the erasure
        rows = await self._erase(note, since)  # else nothing is let go of
        self._announcer.tell(note)
        await self.elsewhere(note)
        return rows

    async def _erase(self, note: SubjectErased, since: float) -> int:
        if note.user:
            return await self._eraser.forget_user(note.user, since=since)
        return await self._eraser.forget_group(note.group, since=since)


def _finite(said: float) -> float | None:
    return None if math.isinf(said) else said
