"""Errands: requests to the cheap model outside any turn, such as a recap or a welcome. They offer
no tools, so instructions in the text they read cannot have effects.

Each request is reserved before it is made and counted to its payer: a person in a conversation, or
the conversation alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Final

from bot.budget.limits import LimitLevel
from bot.budget.spending import Spending
from bot.core.conversation import Conversation
from bot.core.journal import ERRAND, UsageAdded
from bot.core.ports import Store
from bot.core.task_context import current_run, early_payer
from frostagent.cancellation import BROKEN, isolate
from frostagent.types.errors import DaySpent, ModelRejected
from frostagent.types.messages import FinishReason, ModelRequest
from frostagent.types.ports import ChatModel, Clock, Ids

AT_ONCE: Final = 4  # requests
MOST: Final = 200  # background tasks; further ones are refused

logger = logging.getLogger(__name__)


class Errands:
    """Makes errands' requests, and runs their background tasks while it is open."""

    def __init__(
        self, *, model: ChatModel, store: Store, spending: Spending, clock: Clock, ids: Ids
    ) -> None:
        self._model = model
        self._store = store
        self._spending = spending
        self._clock = clock
        self._ids = ids
        self._places = asyncio.Semaphore(AT_ONCE)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def level(self, where: Conversation, who: int = 0) -> LimitLevel:
        """How much of its daily limit the payer has used: a person there, or the conversation alone
        (`who` 0).
        """
        return self._spending.rung(where, who)

    async def ask(
        self, request: ModelRequest, *, where: Conversation, who: int = 0, within: float
    ) -> str:
        """The model's text, possibly empty. `within` is in seconds, including the wait for a place.
        Raises ModelError (DaySpent if the payer's daily limit is used up) and TimeoutError.
        """
        if self.level(where, who) >= LimitLevel.SPENT:
            raise DaySpent("what may be spent in a day is spent")
        if request.tools:
            raise ModelRejected("an errand offers no tools")
        turn_id = f"{ERRAND}{self._ids.trace()}"
        # Set in this task only: the meter reads from them which request to count and to whom.
        run, payer = current_run.set(turn_id), early_payer.set((where, who))
        try:
            async with asyncio.timeout(within), self._places:
                completion = await self._model.complete(request)
            if usage := completion.usage:
                added = UsageAdded(
                    turn_id=turn_id,
                    model=completion.endpoint or completion.model,
                    usage=usage,
                    at=self._clock.now(),
                    payer=(where, who),
                )
                self._store.put(added)
        finally:
            early_payer.reset(payer)
            current_run.reset(run)
        if completion.refusal or completion.finish is FinishReason.CONTENT_FILTER:
            return ""
        return completion.message.text.strip()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run started tasks while the block runs; at its end those left are cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks:
                    task.cancel()

    def start(self, work: Coroutine[None, None, None], what: str) -> bool:
        """Run the work in the background; `what` names it in the log. Returns False if too many
        tasks are running or this is not open. Never waits.
        """
        if self._group is None or len(self._tasks) >= MOST:
            work.close()
            return False
        task = self._group.create_task(_guarded(work, what))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def wait_idle(self) -> None:
        """Return once no background task is running."""
        while self._tasks:
            await asyncio.wait(self._tasks)


async def _guarded(work: Coroutine[None, None, None], what: str) -> None:
    try:
        await work
    except BROKEN as failure:
        isolate(failure)
        logger.exception("%s has failed", what)
