"""Gestures beside messages: an emoji on a message, "typing" in a private chat.

They are best effort: never awaited, never repeated, and an unsupported one is tried only once per
connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from msgspec import Struct

from bot.core.actions import Gesture, React, ShowTyping
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnsupported, TransportError
from bot.core.events import MessageReceived
from bot.core.ports import Transport
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

WORKING: Final = "212"  # QQ's face 托腮: thinking about the question
NOT_NOW: Final = "27"  # QQ's face 流汗: too many questions, this one is not answered

LONG: Final = 3.0  # seconds of a run after which its asker sees a gesture
MOST: Final = 200  # gestures in flight; further ones are dropped


class _Work(Struct, eq=False):
    """A question being answered, and when to show a gesture."""

    message: MessageReceived
    due: float


class Gestures:
    """Makes gestures while it is open, except in conversations that are `unseen`."""

    def __init__(
        self,
        *,
        transport: Transport,
        clock: Clock,
        unseen: Callable[[Conversation], bool] | None = None,
    ) -> None:
        self._unseen = unseen
        self._transport = transport
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: dict[_Work, None] = {}  # oldest first
        self._watch: asyncio.Task[None] | None = None
        self._unsupported: set[tuple[int, type[Gesture]]] = set()  # by account

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the gestures in flight; on exit they are cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for task in self._tasks:
                    task.cancel()

    def connected(self, account: int) -> None:
        """Forget what the account's server could not do: it may be another server now."""
        self._unsupported = {known for known in self._unsupported if known[0] != account}

    def react(self, message: MessageReceived, emoji_id: str = WORKING) -> None:
        """Put an emoji on the message. Never waits, never raises."""
        self._make(React(message.conversation, message.message_id, emoji_id))

    def typing(self, where: Conversation) -> None:
        """Show the person there that something is being written. Never waits, never raises."""
        self._make(ShowTyping(where))

    @contextmanager
    def while_working(self, message: MessageReceived) -> Iterator[None]:
        """Show the asker a gesture once the block has taken LONG seconds."""
        work = _Work(message, self._clock.monotonic() + LONG)
        self._working[work] = None
        if self._watch is None or self._watch.done():
            self._watch = self._start(self._show_work())
        try:
            yield
        finally:
            self._working.pop(work, None)

    async def _show_work(self) -> None:
        # One task for all: work rarely takes so long, and a timer for each would cost more.
        while self._working:
            work = next(iter(self._working))
            if (left := work.due - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
                continue
            del self._working[work]
            if work.message.conversation.is_group:
                self.react(work.message)
            else:
                self.typing(work.message.conversation)

    def _make(self, gesture: Gesture) -> None:
        where = gesture.conversation
        is_known = (where.platform_id, type(gesture)) in self._unsupported
        if not (is_known or (self._unseen and self._unseen(where))):
            self._start(self._carry(gesture))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None] | None:
        if self._group is None or len(self._tasks) >= MOST:
            work.close()
            return None
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _carry(self, gesture: Gesture) -> None:
        where = gesture.conversation
        try:
            await self._transport.gesture(gesture)
        except ActionUnsupported as error:
            self._unsupported.add((where.platform_id, type(gesture)))
            logger.info("account %d makes no such sign from now on: %s", where.platform_id, error)
        except TransportError as error:
            logger.debug("no sign in %s: %s", where, error)
        except Exception:  # a gesture must never fail its caller
            logger.exception("no sign in %s", where)
