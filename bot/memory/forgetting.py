"""Erases all data of a person or a group, from the journal and from memory.

The journal comes first: if that fails, memory is kept too. Work that began before memory was
cleared may journal erased text afterwards, so the erasure runs twice; the second pass keeps what
was said since the first.
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
    """Erases a person or a group. `cancel_questions` ends waiting questions, `cancel_join_requests`
    ends pending join requests, and `then` clears other state in memory. `announcer` has other bots
    do the same.

    `said` is the time of the request by the server's clock, in seconds since 1970: questions asked
    after it are still answered, even if they were received before. Without `said`, questions
    received after the erasure are answered.
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
        """Also call this function on each erasure."""
        self._followers.append(follower)

    async def person(self, user: int, *, said: float = math.inf) -> int:
        """Erase a person everywhere. Returns the number of deleted records. Raises BotError."""
        return await self._forget(SubjectErased(user=user, said=_finite(said)))

    async def group(self, group: int, *, said: float = math.inf) -> int:
        """Erase a group. Returns the number of deleted records. Raises BotError."""
        return await self._forget(SubjectErased(group=group, said=_finite(said)))

    async def elsewhere(self, note: SubjectErased) -> None:
        """Clear memory after another bot erased a person or group."""
        await self._cancel_questions(note)
        self._cancel_join_requests(note)
        for let_it_go in self._then:
            let_it_go()
        for follower in self._followers:
            follower(note)
        self._history.speakers.let_go(user=note.user, group=note.group)
        await self._history.reread()

    async def chat(self, where: Conversation) -> int:
        """Erase the group, or the person of a private chat. Raises BotError."""
        return await (self.group if where.is_group else self.person)(where.session_id)

    async def _forget(self, note: SubjectErased) -> int:
        rows = await self._once(note, since=math.inf)
        since = self._now()
        again = replace(note, since=since) if note.said is None else note
        rows += await self._once(again, since=since)
        await self._eraser.sweep()
        return rows

    async def _once(self, note: SubjectErased, *, since: float) -> int:
        await self._history.reread()  # loses nothing; later reads wait for the erasure
        rows = await self._erase(note, since)  # raises before anything in memory is cleared
        self._announcer.tell(note)
        await self.elsewhere(note)
        return rows

    async def _erase(self, note: SubjectErased, since: float) -> int:
        if note.user:
            return await self._eraser.forget_user(note.user, since=since)
        return await self._eraser.forget_group(note.group, since=since)


def _finite(said: float) -> float | None:
    return None if math.isinf(said) else said
