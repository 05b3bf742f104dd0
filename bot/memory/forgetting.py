"""Erases all that is kept of a person or a group, in the journal and in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from bot.domain.books import Eraser
from bot.domain.events import Conversation
from bot.domain.notes import ALONE, Forgotten, Neighbours
from bot.domain.petitions import Waiting
from bot.memory.history import History


class Questions(Protocol):
    """Those that wait for an answer."""

    def forget(self, *, user: int = 0, group: int = 0, said: float) -> None:
        """Those that this person, or anybody in this group, had asked by then wait no more."""
        ...


class Forgetting:
    """Of whoever is to be forgotten nothing stays. `asked` are questions that wait for an answer,
    `waiting` what waits for an owner's word; `then` lets go of what else is in memory. What
    `neighbours` have in memory they let go of themselves.

    When it was `said` is in seconds since 1970, by the server's clock: what is asked after that is
    answered, though a restart may have brought it here before.
    """

    def __init__(
        self,
        eraser: Eraser,
        history: History,
        *,
        asked: Questions,
        waiting: Waiting,
        then: Sequence[Callable[[], None]] = (),
        neighbours: Neighbours = ALONE,
    ) -> None:
        self._neighbours = neighbours
        self._eraser = eraser
        self._history = history
        self._asked = asked
        self._waiting = waiting
        self._then = then

    async def person(self, user: int, *, said: float = math.inf) -> int:
        """Of a person, everywhere; how many records there were. Raises BotError."""
        note = Forgotten(user=user, said=_finite(said))
        self._neighbours.tell(note)
        self._asked.forget(user=user, said=said)
        let_go = partial(self._waiting.forget, user=user)
        await self._let_go(let_go)  # else what is just being made of it would come behind its end
        rows = await self._eraser.forget_user(user)
        await self._let_go(let_go)
        self._neighbours.tell(note)
        return rows

    async def group(self, group: int, *, said: float = math.inf) -> int:
        """Of a group; how many records there were. Raises BotError."""
        note = Forgotten(group=group, said=_finite(said))
        self._neighbours.tell(note)
        self._asked.forget(group=group, said=said)
        let_go = partial(self._waiting.forget, group=group)
        await self._let_go(let_go)
        rows = await self._eraser.forget_group(group)
        await self._let_go(let_go)
        self._neighbours.tell(note)
        return rows

    async def elsewhere(self, note: Forgotten) -> None:
        """Another bot of the cluster has erased somebody, or a group: let go of it, too."""
        said = math.inf if note.said is None else note.said
        self._asked.forget(user=note.user, group=note.group, said=said)
        await self._let_go(partial(self._waiting.forget, user=note.user, group=note.group))

    async def chat(self, where: Conversation) -> int:
        """Of a group, or of whom a private chat is with. Raises BotError."""
        return await (self.group if where.is_group else self.person)(where.session_id)

    async def _let_go(self, first: Callable[[], None]) -> None:
        for let_it_go in (first, *self._then):
            let_it_go()
        await self._history.reread()


def _finite(said: float) -> float | None:
    return None if math.isinf(said) else said
