"""Records messages in the journal and in the memory of their conversation."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from bot.chat.active_conversations import ActiveConversations
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, MessageSent, Sender, quote_in, relayed
from bot.core.journal import (
    Judged,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    MessageTakenUp,
)
from bot.core.ports import Store
from bot.core.query_results import Ignored
from bot.memory.history import History
from bot.outbox.outbox import Outbox
from bot.policy.wake import Ignore, NeedsQuoted, Observe, Verdict, Wake, Why

IGNORED = 200  # ignored messages to show, the latest ones

Ends: TypeAlias = Callable[[MessageReceived, str], float]
"""When the reason against an answer ends, in seconds since 1970; 0 if unknown."""

logger = logging.getLogger(__name__)


class MessageLog:
    def __init__(
        self,
        *,
        store: Store,
        history: History,
        active_conversations: ActiveConversations,
        ends: Ends,
    ) -> None:
        self._store = store
        self._ends = ends
        self._history = history
        self._active_conversations = active_conversations
        self.ignored: deque[Ignored] = deque(maxlen=IGNORED)  # in memory only, without words

    def observe(
        self, message: MessageReceived, verdict: Verdict, *, overheard: bool = True
    ) -> None:
        """Record a message and its verdict; an `overheard` one gets no answer: the next run reads
        it.
        """
        self._active_conversations.note_message(message)
        self._store.put(MessageObserved(message, overheard, self._judged(message, verdict)))
        self._history.know(message)
        if overheard:
            self._history.overhear(message)

    def ignore(self, message: MessageReceived, reason: str) -> None:
        """Record only why a message was ignored and who sent it, for a while."""
        where, sender = message.conversation, message.sender.user_id
        logger.debug("ignored message %s in %s: %s", message.message_id, where, reason)
        self.ignored.append(Ignored(where, sender, reason, message.time))

    def observe_steering(self, message: MessageReceived, verdict: Verdict) -> None:
        """Record a line of a running turn. If no model reads it there, it becomes a question if it
        was for the bot, else overheard, also after a restart.
        """
        self._active_conversations.note_message(message)
        overheard = isinstance(verdict, Observe)
        self._store.put(MessageObserved(message, overheard, self._judged(message, verdict)))
        self._history.know(message)

    def overhear(self, message: MessageReceived, why: Why = "") -> None:
        """A recorded question is not answered: it is read like any other message."""
        self._store.put(MessageOverheard(message))
        self.judge(message, Observe(why))
        self._history.overhear(message)

    def judge(self, message: MessageReceived, verdict: Verdict) -> None:
        if entry := self._judged(message, verdict):
            self._store.put(entry)

    def quoted_by(self, message: MessageReceived) -> MessageReceived | None:
        """The message it quotes, if that is in memory."""
        quote = quote_in(message)
        return self._history.known(message.conversation, quote) if quote else None

    def claim_unread(
        self, where: Conversation, wanted: Callable[[MessageReceived], bool], *, most: int
    ) -> tuple[MessageReceived, ...]:
        """Take the last matching unread messages, which then belong to a question. Oldest first."""
        lines = self._history.unread(where).take_lines(wanted, most=most)
        if lines:
            self._store.put(*map(MessageTakenUp, lines))
        return lines

    def mark_joined(self, message: MessageReceived) -> None:
        """A message recorded as overheard belongs to a waiting question."""
        self._store.put(MessageTakenUp(message))

    def mark_gone(self, lines: Iterable[MessageReceived]) -> None:
        """The question of these lines was recalled: no run reads them."""
        self._store.put(*(MessageTakenUp(line, gone=True) for line in lines))

    def forget_answer(self, message: MessageReceived, *, kept: bool) -> None:
        """Record an owner's reply as received, but keep it out of prompts; `kept` if it was
        recorded before.
        """
        if message.has_identity:
            observed = () if kept else (MessageObserved(message, overheard=True),)
            self._store.put(*observed, MessageErased(message.conversation, message.message_id))

    def forget(self, where: Conversation, message_id: str) -> None:
        self._store.put(MessageErased(where, message_id))
        self._history.forget_message(where, message_id)

    def _judged(self, message: MessageReceived, verdict: Verdict) -> Judged | None:
        entry = judged(message, verdict)
        if entry is None or entry.wakes:
            return entry
        return replace(entry, until=self._ends(message, entry.reason))


def judged(message: MessageReceived, verdict: Verdict) -> Judged | None:
    """The verdict on a message for the bot; None for other messages, or while it is open."""
    match verdict:
        case Wake(reason=called, weak=weak, detail=detail):
            wakes, why = True, f"{called} {detail}" if detail else str(called)
        case Observe(reason="") | NeedsQuoted() | Ignore():
            return None
        case Observe(reason=reason):
            wakes, weak, why = False, False, str(reason)
        case _:
            assert_never(verdict)
    entry = Judged(
        conversation=message.conversation,
        message_id=message.message_id,
        sender=message.sender.user_id,
        wakes=wakes,
        reason=why,
        weak=weak,
    )
    if not wakes:
        logger.info("message %s in %s is only heard: %s", entry.message_id, entry.conversation, why)
    return entry


class SelfMessages:
    """The account's own messages, as some servers report them: kept for later quotes, and as
    confirmations of sends.
    """

    def __init__(self, history: History, outbox: Outbox) -> None:
        self._history = history
        self._outbox = outbox

    def record_sent(self, event: MessageSent) -> None:
        own = event.message
        if self._history.known(own.conversation, own.message_id) is None:
            self._history.know(relayed(own))  # until we know which of our messages it is
        self._outbox.seen(own)

    def claim(self, message: MessageReceived) -> bool:
        """Take a message as the account's own if it is a file that the bot has just sent there,
        attributed to another sender (SnowLuma#442); else return False.
        """
        if not self._outbox.tells(message):
            return False
        own = replace(message, sender=Sender(message.self_id))
        self._history.know(own)
        self._outbox.seen(own)
        return True
