"""What is kept of a message beside its turn: in the journal and in its conversation's memory."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from bot.chat.active_conversations import ActiveConversations
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, MessageSent, Sender, quote_in
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

IGNORED = 200  # messages that are told, the last ones

Ends: TypeAlias = Callable[[MessageReceived, str], float]
"""When what stands against an answer to it ends, in seconds since 1970; 0 where nobody knows."""

logger = logging.getLogger(__name__)


class MessageLog:
    """Writes down what was heard, and what is to be forgotten again."""

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
        self.ignored: deque[Ignored] = deque(maxlen=IGNORED)  # in memory alone, without words

    def observe(
        self, message: MessageReceived, verdict: Verdict, *, overheard: bool = True
    ) -> None:
        """Keep a message, and the verdict on it; `overheard` is one that nobody answers: the next
        run reads it.
        """
        self._active_conversations.note_message(message)
        self._store.put(MessageObserved(message, overheard, self._judged(message, verdict)))
        self._history.know(message)
        if overheard:
            self._history.overhear(message)

    def ignore(self, message: MessageReceived, reason: str) -> None:
        """Nothing is kept of a message but for a while why, and whose it was."""
        where, sender = message.conversation, message.sender.user_id
        logger.debug("ignored message %s in %s: %s", message.message_id, where, reason)
        self.ignored.append(Ignored(where, sender, reason, message.time))

    def observe_steering(self, message: MessageReceived, verdict: Verdict) -> None:
        """Keep a line of a turn that goes on. Should no model read it there, it is a question where
        it was for the bot, else overheard, also after a restart.
        """
        self._active_conversations.note_message(message)
        overheard = isinstance(verdict, Observe)
        self._store.put(MessageObserved(message, overheard, self._judged(message, verdict)))
        self._history.know(message)

    def overhear(self, message: MessageReceived, why: Why = "") -> None:
        """A question that is kept is not answered after all: it is read like any other message."""
        self._store.put(MessageOverheard(message))
        self.judge(message, Observe(why))
        self._history.overhear(message)

    def judge(self, message: MessageReceived, verdict: Verdict) -> None:
        """Keep another verdict on a message."""
        if entry := self._judged(message, verdict):
            self._store.put(entry)

    def quoted_by(self, message: MessageReceived) -> MessageReceived | None:
        """The line it quotes, where that is at hand."""
        quote = quote_in(message)
        return self._history.known(message.conversation, quote) if quote else None

    def claim_unread(
        self, where: Conversation, wanted: Callable[[MessageReceived], bool], *, most: int
    ) -> tuple[MessageReceived, ...]:
        """The last of these messages that were overheard and nobody has read: from now on they
        belong to a question. Oldest first.
        """
        lines = self._history.unread(where).take_lines(wanted, most=most)
        if lines:
            self._store.put(*map(MessageTakenUp, lines))
        return lines

    def mark_joined(self, message: MessageReceived) -> None:
        """A message that is kept as overheard belongs to a question that waits."""
        self._store.put(MessageTakenUp(message))

    def mark_gone(self, lines: Iterable[MessageReceived]) -> None:
        """Their question was recalled: these are told to no run."""
        self._store.put(*(MessageTakenUp(line, gone=True) for line in lines))

    def forget_answer(self, message: MessageReceived, *, kept: bool) -> None:
        """An owner's answer to a request is known as taken, but is nothing that any prompt repeats;
        `kept` where it was observed before.
        """
        if message.has_identity:
            observed = () if kept else (MessageObserved(message, overheard=True),)
            self._store.put(*observed, MessageErased(message.conversation, message.message_id))

    def forget(self, where: Conversation, message_id: str) -> None:
        """A message was recalled."""
        self._store.put(MessageErased(where, message_id))
        self._history.forget_message(where, message_id)

    def _judged(self, message: MessageReceived, verdict: Verdict) -> Judged | None:
        entry = judged(message, verdict)
        if entry is None or entry.wakes:
            return entry
        return replace(entry, until=self._ends(message, entry.reason))


def judged(message: MessageReceived, verdict: Verdict) -> Judged | None:
    """The verdict on a message that was for the bot; None for any other, or while nobody knows."""
    match verdict:
        case Wake(reason=reason, weak=weak):
            wakes = True
        case Observe(reason="") | NeedsQuoted() | Ignore():
            return None
        case Observe(reason=reason):
            wakes, weak = False, False
        case _:
            assert_never(verdict)
    entry = Judged(
        conversation=message.conversation,
        message_id=message.message_id,
        sender=message.sender.user_id,
        wakes=wakes,
        reason=str(reason),
        weak=weak,
    )
    if not wakes:
        logger.info(
            "message %s in %s is only heard: %s", entry.message_id, entry.conversation, reason
        )
    return entry


class SelfMessages:
    """The account's own messages, as some servers report them: known for later quotes, and as the
    confirmation of a send.
    """

    def __init__(self, history: History, outbox: Outbox) -> None:
        self._history = history
        self._outbox = outbox

    def record_sent(self, event: MessageSent) -> None:
        """The account has said something."""
        self._history.know(event.message)
        self._outbox.seen(event.message)

    def claim(self, message: MessageReceived) -> bool:
        """Whether a message that is told as somebody's is a file the bot has just sent there
        (SnowLuma#442): then it is taken as the account's own.
        """
        if not self._outbox.tells(message):
            return False
        own = replace(message, sender=Sender(message.self_id))
        self._history.know(own)
        self._outbox.seen(own)
        return True
