"""Passes each event of each connection to its handler. Never waits: it runs in the connection's
receive loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, assert_never

from bot.approvals.join_requests import JoinRequests
from bot.chat.active_conversations import ActiveConversations
from bot.chat.active_work import ActiveWork
from bot.chat.backfill import DeafnessWatch, ExpiredEvents
from bot.chat.cancellation import Reason, Selector
from bot.chat.deduplicator import SeenMessages
from bot.chat.message_log import MessageLog, SelfMessages
from bot.chat.mute_handler import MuteHandler
from bot.chat.mutes import Mutes
from bot.chat.pokes import Pokes
from bot.chat.question_queue import DeferredQuestions
from bot.core.conversation import Conversation
from bot.core.events import (
    AccountChanged,
    Connected,
    Event,
    Heartbeat,
    MemberChanged,
    MessageLost,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    MessageWaited,
    Muted,
    Noticed,
    Poked,
    Requested,
)
from bot.core.ports import EventSink
from bot.memory.history import History
from bot.outbox.gestures import Gestures
from bot.outbox.outbox import Outbox
from bot.outbox.owner_alerts import Owner
from bot.outbox.sender import UnreachablePlaces
from bot.welcome import Greetings


class StartupBarrier:
    """An `EventSink` that holds events back until it is opened; they keep the order of their
    connection.
    """

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._is_open = asyncio.Event()

    def open(self) -> None:
        self._is_open.set()

    async def opened(self) -> None:
        await self._is_open.wait()

    def handle(self, event: Event) -> Coroutine[Any, Any, None]:
        """Pass an event on, once it is open."""
        return self._sink.handle(event) if self._is_open.is_set() else self._hold(event)

    async def _hold(self, event: Event) -> None:
        await self._is_open.wait()
        await self._sink.handle(event)


class ConnectedHandler:
    """Informs all parts that an account has (re)connected, in the order that matters."""

    def __init__(
        self,
        *,
        mutes: Mutes,
        owner: Owner,
        outbox: Outbox,
        gestures: Gestures,
        active_conversations: ActiveConversations,
        deferred: DeferredQuestions,
        deafness: DeafnessWatch,
        greetings: Greetings,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """`then` is called when all parts are informed."""
        self._greetings = greetings
        self._mutes = mutes
        self._owner = owner
        self._outbox = outbox
        self._gestures = gestures
        self._active_conversations = active_conversations
        self._deferred = deferred
        self._deafness = deafness
        self._then = then

    def pass_on(self, account: int) -> None:
        self._mutes.forget(account)
        self._outbox.unreachable.forget(account)
        self._owner.connected(account)
        self._gestures.connected(account)
        self._outbox.connected()
        self._active_conversations.connected(account)
        self._deafness.connected(account)
        self._greetings.connected(account)
        self._deferred.enqueue_of(account)
        self._then()


logger = logging.getLogger(__name__)


class Dispatcher:
    """The `EventSink` of all connections."""

    def __init__(
        self,
        *,
        way: ExpiredEvents,
        message_log: MessageLog,
        seen: SeenMessages,
        history: History,
        active_work: ActiveWork,
        mute_handler: MuteHandler,
        active_conversations: ActiveConversations,
        on_connected: ConnectedHandler,
        pokes: Pokes,
        join_requests: JoinRequests,
        self_messages: SelfMessages,
        unreachable: UnreachablePlaces,
        deafness: DeafnessWatch,
        greetings: Greetings,
        left: Callable[[MemberChanged], None] = lambda _: None,
    ) -> None:
        """`left` receives that a person left a group, perhaps the account itself."""
        self._greetings = greetings
        self._way = way
        self._message_log = message_log
        self._seen = seen
        self._history = history
        self._active_work = active_work
        self._mute_handler = mute_handler
        self._active_conversations = active_conversations
        self._on_connected = on_connected
        self._pokes = pokes
        self._join_requests = join_requests
        self._self_messages = self_messages
        self._unreachable = unreachable
        self._left = left
        self._deafness = deafness

    async def handle(self, event: Event) -> None:
        self._active_conversations.accounts.add(event.self_id)
        match event:
            case MessageReceived():
                self._deafness.hear(event)
                self._way.take(event)
            case MessageWaited(message=message):
                self._deafness.hear(message)
                self._way.take_waited(event)
            case MessageLost(message=message):
                self._deafness.hear(message)
                self._way.take_lost(message)
            case MessageSent():
                self._self_messages.record_sent(event)
            case MessageRecalled():
                self._recall(event)
            case Muted():
                self._mute_handler.take(event)
            case MemberChanged(change="promoted" | "demoted"):
                self._mute_handler.change_role(event)
            case AccountChanged(online=online, reason=reason):
                level, state = (logging.INFO, "online") if online else (logging.ERROR, "offline")
                logger.log(level, "account %d is %s %s", event.self_id, state, reason)
            case Connected(self_id=account):
                self._on_connected.pass_on(account)
            case Poked():
                self._pokes.answer(event)
            case Requested():
                self._join_requests.receive(event)
            case MemberChanged(change="joined", user_id=joined) if joined == event.self_id:
                self._unreachable.end(event.conversation)
            case Noticed(kind="friend_add", user_id=friend):
                self._unreachable.end(Conversation(event.self_id, "private", friend))
            case MemberChanged(conversation=group, user_id=user_id, change=change):
                self._greetings.receive(event)
                match change:
                    case "joined":
                        self._join_requests.joined(group, user_id)
                    case "left":
                        self._left(event)
                    case _:
                        pass
            case Heartbeat() | Noticed():
                logger.debug("%s of %d", event.type, event.self_id)
            case _:
                assert_never(event)

    def _recall(self, event: MessageRecalled) -> None:
        """Forget a recalled message, and cancel its work."""
        where, message_id = event.conversation, event.message_id
        self._message_log.forget(where, message_id)
        self._seen.forget(where, message_id)
        if event.user_id == event.self_id:  # said by this or an earlier process
            self._history.doubt(where)
        recalled = Selector(where=where, message_id=message_id)
        self._active_work.cancel(recalled, Reason.RECALLED)
