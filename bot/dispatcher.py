"""One event -> known already? whose lane?

Never awaits anything slow: it runs on the connection's own reading loop, so whatever needs an answer from the
server (a quote nobody remembers) is decided in the lane.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from cachetools import TTLCache

from bot.domain.events import (
    AccountChanged,
    Connected,
    Conversation,
    Event,
    Heartbeat,
    MemberChanged,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
    Noticed,
    Poked,
    Requested,
    Sender,
)
from bot.domain.ports import Clock
from bot.history import History
from bot.lanes import Lanes
from bot.perception import Perception
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Rules, Verdict, Wake, judge
from bot.turn import Turns

logger = logging.getLogger(__name__)

DEDUPLICATION = 600.0  # seconds an event is remembered: longer than any reconnect replays
MAX_IDENTITIES = 50_000
NO_IDENTITY = ("", "0")

Identity: TypeAlias = tuple[int, str, int, str]


@dataclass(frozen=True, slots=True)
class Task:
    """What a lane does: answer the message, or first find out whether it is for us."""

    message: MessageReceived
    verdict: Wake | NeedsQuoted


class Dispatcher:
    """The `EventSink` of all connections."""

    def __init__(
        self,
        *,
        rules: Rules,
        turns: Turns,
        perception: Perception,
        history: History,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._turns = turns
        self._perception = perception
        self._history = history
        self._clock = clock
        self._seen: TTLCache[Identity, None] = TTLCache(MAX_IDENTITIES, DEDUPLICATION, timer=clock.monotonic)
        self._news = asyncio.Event()
        self._muted: dict[Conversation, float] = {}
        self.lanes: Lanes[Task] = Lanes(work=self._do)

    async def handle(self, event: Event) -> None:
        """Take one event of any kind."""
        match event:
            case MessageReceived():
                self._message(event)
            case MessageSent():
                self._history.know(_as_received(event))
            case MessageRecalled(conversation=where, message_id=message_id):
                self._history.forget_message(where, message_id)
                if self.lanes.drop(where, lambda task: task.message.message_id == message_id):
                    logger.info("message %s in %s was recalled: not answered", message_id, where)
            case Muted():
                self._mute(event)
            case AccountChanged(online=online, reason=reason):
                level = logging.INFO if online else logging.ERROR
                logger.log(level, "account %d is %s %s", event.self_id, "online" if online else "offline", reason)
            case Connected() | Heartbeat() | Poked() | MemberChanged() | Requested() | Noticed():
                logger.debug("%s of %d", event.type, event.self_id)
            case _:
                assert_never(event)

    async def wait_settled(self, identity: Identity) -> None:
        """Return once the message of this identity has been taken and no lane has anything to do."""
        while identity not in self._seen:
            await self._news.wait()
        await self.lanes.wait_idle()

    def _message(self, message: MessageReceived) -> None:
        if message.is_own:
            return
        if message.message_id not in NO_IDENTITY:
            if message.identity in self._seen:
                logger.debug("message %s in %s came again", message.message_id, message.conversation)
                return
            self._seen[message.identity] = None
            self._news.set()
            self._news.clear()
        verdict = judge(message, self._rules)
        if isinstance(verdict, Wake | NeedsQuoted) and self._is_muted(message.conversation):
            verdict = Observe()
        self._follow(message, verdict)

    def _follow(self, message: MessageReceived, verdict: Verdict) -> None:
        where = message.conversation
        match verdict:
            case Ignore(reason=reason):
                logger.debug("ignored message %s in %s: %s", message.message_id, where, reason)
            case Observe():
                self._history.know(message)
                self._history.overhear(message)
            case Wake() | NeedsQuoted():
                self._history.know(message)
                if not self.lanes.put(where, Task(message, verdict)):
                    logger.warning("message %s in %s is not answered: too many are waiting", message.message_id, where)
                    self._history.overhear(message)
            case _:
                assert_never(verdict)

    async def _do(self, task: Task) -> None:
        match task.verdict:
            case NeedsQuoted(message_id=message_id):
                if not await self._perception.quotes_the_bot(task.message, message_id):
                    self._history.overhear(task.message)
                    return
            case Wake():
                pass
            case _:
                assert_never(task.verdict)
        await self._turns.take(task.message)

    def _mute(self, event: Muted) -> None:
        """A muted bot cannot answer: it must not run up a bill thinking either."""
        if not event.mutes_the_bot:
            return
        if event.seconds == 0:
            self._muted.pop(event.conversation, None)
            logger.info("the mute in %s is lifted", event.conversation)
            return
        until = float("inf") if event.seconds < 0 else self._clock.monotonic() + event.seconds
        self._muted[event.conversation] = until
        logger.warning("muted in %s: messages there are only observed until it is lifted", event.conversation)

    def _is_muted(self, where: Conversation) -> bool:
        return self._muted.get(where, 0.0) > self._clock.monotonic()


def _as_received(event: MessageSent) -> MessageReceived:
    return MessageReceived(
        self_id=event.self_id,
        time=event.time,
        conversation=event.conversation,
        message_id=event.message_id,
        sender=Sender(event.self_id),
        segments=event.segments,
    )
