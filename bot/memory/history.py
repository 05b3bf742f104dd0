"""The memory of conversations: rounds, messages overheard since the last round, and who sent which
message.

A round is a rendered user message with all that followed it. A stored round never changes: the next
prompt begins with the same bytes, so providers can cache it. When a conversation grows too long,
its window moves (`bot/memory/window.py`), rarely and never during a run: long tool results of older
rounds are shortened first; then the oldest rounds become a summary (`bot/memory/summaries.py`), or
a line each if no summary is ready in time. The store keeps the rounds and the state of the window.

This is a bounded cache over the store; a conversation is read once, when it is first needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import NO_IDS, MessageReceived
from bot.core.journal import MessageErased, Remembered
from bot.core.lru import LRU, DefaultLRU, WeightedLRU
from bot.core.ports import Store
from bot.core.redaction import OwnWords, lines_of_messages, redact_messages, redact_own, sources_of
from bot.memory.attachments import Attachments
from bot.memory.speakers import Speakers
from bot.memory.window import Fold, ToldRound, Window
from bot.policy.message_trimming import message_weight
from bot.prompt.summary import Prefix
from frostagent.types.messages import Message, ToolMessage, UserMessage, as_kept


class Overheard:
    """The last `most` overheard messages, each of which is taken once, and the number of earlier
    messages that were `missed`.

    If several people are answered in parallel, each has a read position: messages that only another
    person's unfinished run has taken are still new.
    """

    def __init__(self, most: int) -> None:
        self._messages: deque[MessageReceived] = deque(maxlen=most)
        self._untold: deque[tuple[MessageReceived, set[int]]] = deque(maxlen=most)  # with readers
        self.missed = 0

    def __len__(self) -> int:
        """Number of messages not taken, including missed ones."""
        return len(self._messages) + self.missed

    @property
    def is_read(self) -> bool:
        """Whether there is nothing left to take for any reader."""
        return not (self._messages or self._untold or self.missed)

    def add(self, message: MessageReceived) -> None:
        self.missed += len(self._messages) == self._messages.maxlen
        self._messages.append(message)

    def recall(self, remembered: Remembered) -> None:
        """Put the stored messages before the others, without duplicates."""
        stored = [message.identity for message in remembered.overheard]
        since = [message for message in self._messages if message.identity not in stored]
        self._messages.clear()
        self.missed = remembered.missed
        for message in (*remembered.overheard, *since):
            self.add(message)

    def take(self, reader: int | None = None) -> tuple[MessageReceived, ...]:
        """Take all messages, oldest first by server time. `reader` None takes them for everyone."""
        taken = list(self._messages)
        if reader is not None:
            for message, readers in self._untold:
                if reader not in readers:
                    readers.add(reader)
                    taken.append(message)
            self._untold.extend((message, {reader}) for message in self._messages)
        self._messages.clear()
        self.missed = 0
        return tuple(sorted(taken, key=lambda message: message.time))

    def told(self, message_ids: Collection[str]) -> None:
        """These messages are now part of a round."""
        if self._untold:
            untold = [one for one in self._untold if one[0].message_id not in message_ids]
            self._untold = deque(untold, self._untold.maxlen)

    def take_lines(
        self, wanted: Callable[[MessageReceived], bool], *, most: int
    ) -> tuple[MessageReceived, ...]:
        """Take the last `most` messages that are `wanted`, oldest first."""
        lines = tuple(message for message in self._messages if wanted(message))[-most:]
        for line in lines:
            self._messages.remove(line)
        return lines

    def forget(self, message_id: str) -> bool:
        """Remove a message. Returns True if it was present and unread."""
        self.told((message_id,))
        found = [message for message in self._messages if message.message_id == message_id]
        for message in found:
            self._messages.remove(message)
        return bool(found)


MAX_CONVERSATIONS = 5000
MAX_KNOWN = 20_000  # messages; a long one counts as several
MAX_OVERHEARD = 60  # messages
MAX_RECALLED = 1000  # recalled messages that runs under way may have read
MAX_TOKENS = 12_000.0  # estimated


Place: TypeAlias = tuple[Conversation, str]
"""A conversation and a message id."""
Telling: TypeAlias = Callable[[Conversation, tuple[Message, ...]], tuple[Message, ...]]
BeginSummary: TypeAlias = "Callable[[Conversation, History, Prefix | None], None]"


@dataclass(slots=True)
class _Memory:
    window: Window = field(default_factory=Window)
    overheard: Overheard = field(default_factory=lambda: Overheard(MAX_OVERHEARD))
    loaded: bool = False


class History:
    """The memory of all conversations. `room` is the prompt's size for one conversation, in
    estimated tokens.

    `told` renders a stored round for the model and must be deterministic. `begin_summary` is called
    when a turn made a conversation too long, with the prefix of the turn's requests; `stop_summary`
    is called when the next turn begins. Without them, surplus rounds leave without a summary.
    `by_member` is for people who are answered in parallel.
    """

    def __init__(
        self,
        *,
        store: Store,
        room: Callable[[], float] = lambda: MAX_TOKENS,
        told: Telling | None = None,
        begin_summary: BeginSummary | None = None,
        stop_summary: Callable[[Conversation], None] | None = None,
        speakers: Speakers | None = None,
        attachments: Attachments | None = None,
        by_member: bool = False,
    ) -> None:
        self._by_member = by_member
        self._store = store
        self.things = Attachments(store=store) if attachments is None else attachments
        self.speakers = Speakers(store=store) if speakers is None else speakers
        self._room = room
        self._told = told
        self._begin_summary = begin_summary
        self._stop_summary = stop_summary
        self._memories = DefaultLRU[Conversation, _Memory](MAX_CONVERSATIONS, _Memory)
        self._let_go: set[Conversation] = set()  # to be read from the store again
        self._doubted: set[Conversation] = set()  # to be read again after a recall
        self._recalled = LRU[Place, None](MAX_RECALLED)
        self._own = LRU[Place, OwnWords](MAX_KNOWN)
        self._unsaid = LRU[str, tuple[OwnWords, ...]](MAX_RECALLED)  # by turn id
        self._known = WeightedLRU[Place, MessageReceived](MAX_KNOWN, message_weight)
        self.times_let_go = 0

    async def load(self, conversation: Conversation) -> None:
        """Prepare the conversation for a turn; call it before `messages`."""
        if self._stop_summary is not None:
            self._stop_summary(conversation)
        if conversation in self._doubted and await self._store.commit():
            self._doubted.discard(conversation)
            self._let_go.add(conversation)
        # A turn that went on meanwhile has only journalled its round. While that entry cannot be
        # committed, the read lacks it, and the next turn reads again.
        whole = conversation not in self._let_go or await self._store.commit()
        if whole and conversation in self._let_go:  # another turn may have read it meanwhile
            self._let_go.discard(conversation)
            self._memories.pop(conversation, None)
        memory = self._memories.use(conversation)
        if not (memory.loaded and conversation in self.speakers and conversation in self.things):
            await self._read(conversation)
            memory = self._memories[conversation]
            memory.loaded &= whole
        room = self._room()
        if memory.window.tokens > room and memory.window.drop(room):
            self._moved(conversation, memory)

    def doubt(self, conversation: Conversation) -> None:
        """Have the next turn read the conversation from the store again."""
        self._doubted.add(conversation)

    async def reread(self) -> bool:
        """Clear the cache. Returns False, without a change, if the store cannot commit now."""
        if not await self._store.commit():
            return False
        self._let_go.update(self._memories)
        self._memories.clear()
        self.speakers.forget()
        self.things.forget()
        self._known.clear()
        self.times_let_go += 1
        return True

    async def _read(self, conversation: Conversation) -> None:
        remembered = await self._store.remember(conversation)
        if remembered is not None:  # rounds refer to people by number
            self.speakers.learn(conversation, remembered.members)
            self.things.learn(conversation, remembered.things)
        memory = self._memories[conversation]
        # Another task has read it meanwhile, or the next turn will try again.
        if memory.loaded or remembered is None:
            return
        memory.overheard.recall(remembered)
        window, known = memory.window, [round_.turn_id for round_ in remembered.rounds]
        told = [
            ToldRound.of(
                round_.turn_id,
                self._tell(conversation, round_.messages),
                light=place < remembered.light,
            )
            for place, round_ in enumerate(remembered.rounds)
        ]
        kept_since = [told for told in window.rounds if told.turn_id not in known]
        window.tell(remembered.summary, [*told, *kept_since])
        window.light_to = known[remembered.light - 1] if remembered.light else ""
        memory.loaded = True

    def know(self, message: MessageReceived) -> None:
        """Keep a message, the bot's own included, to resolve later quotes of it."""
        if message.has_identity:  # other messages cannot be quoted
            self._known.keep((message.conversation, message.message_id), message)

    def said(self, conversation: Conversation, message_id: str, own: OwnWords) -> None:
        """Remember what the bot sent as this message, in case it is recalled.

        A recall may arrive before the response to the send.
        """
        if not (message_id and own.turn_id):
            return
        place = (conversation, message_id)
        self._own.keep(place, own)
        if place in self._recalled:
            self._store.put(MessageErased(conversation, message_id))
            self._unsay(place, own)

    def _unsay(self, place: Place, own: OwnWords) -> None:
        before = self._unsaid.get(own.turn_id, ())
        earlier = own.earlier + sum(one.final == own.final for one in before)
        own = replace(own, earlier=earlier)
        self._own.keep(place, own)
        self._unsaid.keep(own.turn_id, (*before, own))
        self._doubted.add(place[0])

    def own(self, conversation: Conversation, message_id: str) -> OwnWords | None:
        return self._own.get((conversation, message_id))

    def known(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        return self._known.get((conversation, message_id))

    async def find(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        """Return a message from memory or the store."""
        if message_id in NO_IDS:
            return None
        known = self.known(conversation, message_id)
        return known or await self._store.find(conversation, message_id)

    def overhear(self, message: MessageReceived) -> None:
        """Keep a message that did not wake the bot, as context for the next run."""
        self._memories.use(message.conversation).overheard.add(message)

    def take_overheard(
        self, conversation: Conversation, reader: int = 0
    ) -> tuple[MessageReceived, ...]:
        """Take what was overheard since the last run (`by_member`: since this person's last)."""
        return self._memories[conversation].overheard.take(reader if self._by_member else None)

    def unread(self, conversation: Conversation) -> Overheard:
        return self._memories[conversation].overheard

    def forget_message(self, conversation: Conversation, message_id: str) -> None:
        """Remove a recalled message from prompts, whether or not a run has read it.

        If a summary may contain it, or the bot sent it, the conversation is read from the store
        again.
        """
        place = (conversation, message_id)
        self._known.drop(place)
        if place not in self._recalled and (own := self.own(conversation, message_id)):
            self._unsay(place, own)
        self.things.forget_message(conversation, message_id)
        memory = self._memories[conversation]
        if memory.overheard.forget(message_id):
            return  # no run had read it
        self._recalled.keep((conversation, message_id), None)
        if not memory.window.redact(message_id) and memory.window.summary:
            self._doubted.add(conversation)

    def window(self, conversation: Conversation) -> Window:
        """Return what prompts show of the conversation; it changes with the next round."""
        return self._memories.use(conversation).window

    def messages(self, conversation: Conversation) -> tuple[Message, ...]:
        """Return the rounds as one transcript, oldest first."""
        return self.window(conversation).messages

    def summary(self, conversation: Conversation) -> str:
        """Return the summary of all rounds before the first one shown, or an empty string."""
        return self.window(conversation).summary

    def add_round(
        self,
        conversation: Conversation,
        turn_id: str,
        user: UserMessage,
        answer: Sequence[Message],
        prefix: Prefix | None = None,
    ) -> tuple[Message, ...]:
        """Keep a finished round, whose requests began with `prefix`. Returns the stored round."""
        # Images were for this run only; messages recalled meanwhile are removed.
        messages = tuple(map(_kept, (user, *answer)))
        read = {id_ for message in messages for id_ in sources_of(message)}
        gone = frozenset(id_ for id_ in read if (conversation, id_) in self._recalled)
        messages = (
            redact_messages(messages, gone, lines_of_messages(messages, gone)) if gone else messages
        )
        for own in self._unsaid.get(turn_id, ()):
            messages = redact_own(messages, own)
        if conversation in self._let_go:
            return messages  # the turn began before `reread`: the next read decides
        memory = self._memories[conversation]
        memory.overheard.told(user.sources)
        window, room = memory.window, self._room()
        window.add(ToldRound.of(turn_id, self._tell(conversation, messages)))
        if memory.loaded and window.is_full(room):
            if window.lighten(room):
                self._moved(conversation, memory)
            elif self._begin_summary is not None:
                self._begin_summary(conversation, self, prefix)
        return messages

    def _tell(
        self, conversation: Conversation, messages: tuple[Message, ...]
    ) -> tuple[Message, ...]:
        return messages if self._told is None else self._told(conversation, messages)

    def fold(self, conversation: Conversation) -> Fold | None:
        """Return the part of a conversation to summarize, or None if it has room."""
        memory = self._memories.get(conversation)
        return memory.window.fold(self._room()) if memory is not None and memory.loaded else None

    def folded(self, conversation: Conversation, fold: Fold, summary: str) -> bool:
        """Replace rounds by their summary. Returns False if the rounds have changed.

        A run under way has read the rounds, and keeps them.
        """
        memory = self._memories.get(conversation)
        if memory is None or not memory.window.take(fold, summary, self._room()):
            return False
        self._moved(conversation, memory)
        return True

    def _moved(self, conversation: Conversation, memory: _Memory) -> None:
        if memory.loaded:  # earlier rounds are unknown otherwise
            self._store.put(memory.window.moved(conversation))


def _kept(message: Message) -> Message:
    kept = as_kept(message) if isinstance(message, ToolMessage) else message
    match kept:
        case UserMessage() | ToolMessage() if kept.images:
            return replace(kept, images=())
        case _:
            return kept
