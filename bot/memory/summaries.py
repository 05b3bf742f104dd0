"""Summaries of what leaves the prompts, made by the model after a turn has ended: nobody waits for
one.

One at a time for each conversation, few over all. Turns go on meanwhile; only where the server
answers one request at a time the next turn ends the work, since the person would be answered later:
then there is a pause, and the third attempt is let through. Whatever goes wrong leaves everything
as it was: `bot/memory/history.py` does without.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.domain.errors import ModelError
from bot.domain.events import Conversation
from bot.domain.journal import UsageAdded
from bot.domain.ports import ChatModel, Clock, Store
from bot.memory.history import History
from bot.memory.window import Fold
from bot.prompt.summary import read_summary, summary_request

logger = logging.getLogger(__name__)

DEADLINE = 90.0  # seconds
AT_ONCE = 2  # over all conversations
PAUSE = 60.0  # seconds after one that was given up
GIVEN_UP = 2  # so many; the next is let through


class Summaries:
    """Fits `Folding`. What a summary costs is written down against the turn that made the
    conversation too long. `one_by_one`: the server answers one request at a time.
    """

    def __init__(
        self, *, model: ChatModel, store: Store, clock: Clock, one_by_one: bool = False
    ) -> None:
        self._model = model
        self._store = store
        self._clock = clock
        self._one_by_one = one_by_one
        self._given_up: dict[Conversation, tuple[int, float]] = {}  # how often, and when last
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[Conversation, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the work while the block runs; what is not done at its end is left."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks.values():
                    task.cancel()

    def begin(self, conversation: Conversation, history: History) -> None:
        """Make a summary, unless one is being made, or was given up just now."""
        _, last = self._given_up.get(conversation, (0, -PAUSE))
        if self._clock.monotonic() < last + PAUSE:
            return
        if self._group is not None and conversation not in self._tasks:
            task = self._group.create_task(self._guarded(conversation, history))
            self._tasks[conversation] = task
            task.add_done_callback(lambda task: self._forget(conversation, task))

    def stop(self, conversation: Conversation) -> None:
        """The next turn begins: where the server has no room for both, the summary is given up."""
        times, _ = self._given_up.get(conversation, (0, 0.0))
        if self._one_by_one and times < GIVEN_UP and (task := self._tasks.pop(conversation, None)):
            self._given_up[conversation] = (times + 1, self._clock.monotonic())
            task.cancel()

    async def wait_idle(self) -> None:
        """Return once no summary is being made."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _forget(self, conversation: Conversation, task: asyncio.Task[None]) -> None:
        if self._tasks.get(conversation) is task:
            del self._tasks[conversation]
            self._given_up.pop(conversation, None)

    async def _guarded(self, conversation: Conversation, history: History) -> None:
        try:
            async with self._places, asyncio.timeout(DEADLINE):
                if fold := history.fold(conversation):
                    await self._summarise(conversation, history, fold)
        except ModelError as error:
            logger.warning("no summary of %s: %s (%s)", conversation, error.kind, error)
        except TimeoutError:
            logger.warning("no summary of %s: it took longer than %g s", conversation, DEADLINE)
        except Exception:
            logger.exception("no summary of %s", conversation)

    async def _summarise(self, conversation: Conversation, history: History, fold: Fold) -> None:
        request = summary_request([round_.messages for round_ in fold.rounds], fold.before)
        completion = await self._model.complete(request)
        if usage := completion.usage:
            model = completion.endpoint or completion.model
            self._store.put(
                UsageAdded(turn_id=fold.turn_id, model=model, usage=usage, at=self._clock.now())
            )
        summary = read_summary(completion)
        if not summary:
            logger.warning("no summary of %s: the model gave none", conversation)
        elif history.folded(conversation, fold, summary):
            cost = f", ${usage.cost:.6f}" if usage and usage.cost is not None else ""
            tokens = (usage.prompt, usage.completion) if usage else (0, 0)
            text = "%d rounds of %s are a summary now: %d + %d tokens%s"
            logger.info(text, len(fold.rounds), conversation, *tokens, cost)
