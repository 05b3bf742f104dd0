"""Summarizes in the background what no longer fits into prompts.

At most one summary per conversation runs at a time, and few overall. Turns go on meanwhile. If the
server answers only one request at a time, the next turn cancels the summary, so that the person is
not kept waiting; after a pause it is tried again, and the third attempt is not cancelled. A failure
changes nothing: `bot/memory/history.py` then works without a summary.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bot.core.conversation import Conversation
from bot.core.journal import RequestPurpose, UsageAdded
from bot.core.ports import Store
from bot.core.task_context import current_errand, current_run
from bot.memory.history import History
from bot.memory.window import Fold
from bot.prompt.summary import Prefix, read_summary, summary_of_prefix, summary_request
from frostagent.types.errors import ModelError, ModelRejected
from frostagent.types.messages import Completion
from frostagent.types.ports import ChatModel, Clock

logger = logging.getLogger(__name__)

SUMMED_UP_WITHIN = 90.0  # seconds of one request
AT_ONCE = 2  # over all conversations
PAUSE = 60.0  # seconds after a cancelled attempt
GIVEN_UP = 2  # cancelled attempts; the next one is not cancelled


class Summaries:
    """Makes summaries. The cost is charged to the turn that made the conversation too long; while
    `is_spent` is true for that turn, there is no summary. `one_by_one`: the server answers one
    request at a time. `continues`: `model` is the one that answers people, so a summary can extend
    the prefix of the turn's requests.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        store: Store,
        clock: Clock,
        one_by_one: bool = False,
        continues: bool = False,
        is_spent: Callable[[str], bool] | None = None,
        patience: float = SUMMED_UP_WITHIN,
    ) -> None:
        self._patience = patience  # seconds of one request
        self._is_spent = is_spent
        self._model = model
        self._store = store
        self._clock = clock
        self._one_by_one = one_by_one
        self._continues = continues
        self._given_up: dict[Conversation, tuple[int, float]] = {}  # count, time of the last
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[Conversation, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run the tasks while the block runs; unfinished ones are cancelled at the end."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks.values():
                    task.cancel()

    def begin(
        self, conversation: Conversation, history: History, prefix: Prefix | None = None
    ) -> None:
        """Start a summary, unless one is running or was cancelled less than PAUSE ago."""
        _, last = self._given_up.get(conversation, (0, -PAUSE))
        if self._clock.monotonic() < last + PAUSE:
            return
        if self._group is not None and conversation not in self._tasks:
            task = self._group.create_task(self._guarded(conversation, history, prefix))
            self._tasks[conversation] = task
            task.add_done_callback(lambda task: self._forget(conversation, task))

    def stop(self, conversation: Conversation) -> None:
        """The next turn begins: cancel the summary if the server has no room for both."""
        times, _ = self._given_up.get(conversation, (0, 0.0))
        if self._one_by_one and times < GIVEN_UP and (task := self._tasks.pop(conversation, None)):
            self._given_up[conversation] = (times + 1, self._clock.monotonic())
            task.cancel()

    async def wait_idle(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _forget(self, conversation: Conversation, task: asyncio.Task[None]) -> None:
        if self._tasks.get(conversation) is task:
            del self._tasks[conversation]
            self._given_up.pop(conversation, None)

    async def _guarded(
        self, conversation: Conversation, history: History, prefix: Prefix | None
    ) -> None:
        try:
            async with self._places, asyncio.timeout(self._patience):
                fold = history.fold(conversation)
                if fold is not None and not (self._is_spent and self._is_spent(fold.turn_id)):
                    current_run.set(fold.turn_id)  # charges the request to that turn
                    current_errand.set(RequestPurpose.SUMMARY)
                    completion = await self._asked(fold, prefix if self._continues else None)
                    self._take(conversation, history, fold, completion)
        except ModelError as error:
            logger.warning("no summary of %s: %s (%s)", conversation, error.kind, error)
        except TimeoutError:
            logger.warning(
                "no summary of %s: it took longer than %g s", conversation, self._patience
            )
        except Exception:
            logger.exception("no summary of %s", conversation)

    async def _asked(self, fold: Fold, prefix: Prefix | None) -> Completion:
        """Extend the cached prefix by one instruction; if there is none, or it is rejected, send a
        separate request.
        """
        if prefix and (request := summary_of_prefix(prefix, fold.told, fold.before)):
            try:
                return await (prefix.model or self._model).complete(request)
            except ModelRejected as error:
                logger.info("a summary is asked for without tools: %s", error)
        request = summary_request([round_.messages for round_ in fold.rounds], fold.before)
        return await self._model.complete(request)

    def _take(
        self, conversation: Conversation, history: History, fold: Fold, completion: Completion
    ) -> None:
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
