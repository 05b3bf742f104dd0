"""The sends of each conversation, in order: one queue and one worker each, one send unanswered at a
time.

What cannot leave at once is a row from the moment it is queued: it outlives the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, field

from bot.core.actions import SendMessage, send_prefix_of_person
from bot.core.cluster_messages import SubjectErased
from bot.core.journal import SendState
from bot.outbox.sender import Carrier
from bot.outbox.sends import Rows, Send
from frostagent.types.conversation import Conversation
from frostagent.types.speech import Receipt

MAX_WAITING = 30  # sends of one conversation
FORGOTTEN = "who it is about is forgotten"


class _Queue(Struct):
    sends: deque[Send] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None


class Queues:
    """The queues of all conversations; owns their workers while it is open."""

    def __init__(self, *, rows: Rows, carrier: Carrier) -> None:
        self._rows = rows
        self._carrier = carrier
        self._queues: dict[Conversation, _Queue] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Own the workers; at the end they are cancelled, and what is queued stays so in the
        store.
        """
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for queue in self._queues.values():
                    if queue.worker is not None:
                        queue.worker.cancel()

    async def finish(self, *, within: float) -> None:
        """Put nothing more on the wire, and wait so many seconds for what is there; the rest stays
        in the store.
        """
        self._carrier.close()
        sends = self.sends
        for send in sends:
            self._rows.queued(send)
        if unanswered := [
            send.receipt for send in sends if send.state in (SendState.SENDING, SendState.UNKNOWN)
        ]:
            await asyncio.wait(unanswered, timeout=within)

    async def wait_idle(self) -> None:
        """Return once nothing is left to be sent."""
        await self._idle.wait()

    def post(self, action: SendMessage) -> asyncio.Future[Receipt] | None:
        """Say a line of no turn as soon as it can be; its receipt, None where too many wait."""
        send = self._rows.new(action)
        return send.receipt if self.append((send,)) else None

    def append(self, sends: Sequence[Send], *, most: int | None = MAX_WAITING) -> bool:
        """Queue the sends of one conversation, all of them; or none, where so many wait there, or
        nothing is sent any more.
        """
        where = sends[0].action.conversation
        queue = self._queues.get(where)
        is_full = most is not None and queue is not None and len(queue.sends) >= most
        if self._group is None or self._carrier.is_closed or is_full:
            return False
        if queue is None:
            queue = self._queues[where] = _Queue()
            self._idle.clear()
            queue.worker = self._group.create_task(
                self._work_off(where, queue), name=f"outbox {where}"
            )
        for send in sends:
            if queue.sends:  # the first one leaves at once, and is written down on its way
                self._rows.queued(send)
            queue.sends.append(send)
        return True

    @property
    def sends(self) -> list[Send]:
        """All that wait, or are on the wire."""
        return [send for queue in self._queues.values() for send in queue.sends]

    def on_wire(self, where: Conversation) -> list[Send]:
        """The sends there that may have been delivered and have no receipt yet."""
        queue = self._queues.get(where)
        sends = queue.sends if queue else ()
        return [send for send in sends if send.state is not SendState.QUEUED]

    def unsent(self, where: Conversation) -> list[Send]:
        """The sends there that have not been on the wire."""
        queue = self._queues.get(where)
        sends = queue.sends if queue else ()
        return [send for send in sends if send.state is SendState.QUEUED]

    def forget(self, note: SubjectErased) -> None:
        """Withdraw the lines of no turn that wait and are about who is forgotten. Their rows are
        erased; one that has no row yet is leaving already.
        """
        tagged = send_prefix_of_person(note.user) if note.user else None
        for send in self.sends:
            if send.turn_id or not send.recorded:
                continue
            by_id = tagged is not None and send.send_id.startswith(tagged)
            if by_id or note.is_named_in(send.action.words):
                self._rows.withdraw(send, FORGOTTEN)

    def _next(self, sends: deque[Send]) -> Send:
        """The one whose turn it is: what repeats what was just said lets others pass, but never
        what comes later of its own turn; and nothing goes between the pieces of one answer.
        """
        if len(sends) == 1:
            return sends[0]
        for send in sends:
            if send.after is not None and send.after not in sends:
                return send
        passed: set[str] = set()
        for send in sends:
            is_bound = send.after is not None or send.turn_id in passed
            if not is_bound and not self._carrier.repeats(send):
                return send
            if send.turn_id:
                passed.add(send.turn_id)
        return sends[0]

    async def _work_off(self, where: Conversation, queue: _Queue) -> None:
        try:
            while queue.sends and not self._carrier.is_closed:
                send = self._next(queue.sends)
                await self._carrier.deliver(send)
                queue.sends.remove(send)
        finally:
            del self._queues[where]
            if not self._queues:
                self._idle.set()
