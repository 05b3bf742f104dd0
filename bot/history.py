"""What a conversation remembers: rounds, what was overheard since the last one, and who said which message.

A round is a rendered user message and all that followed it, and is never changed once stored: the prompt of the
next run begins with the same bytes, so providers can cache it. When it grows too long, whole rounds leave the front
of the prompt (not the store) down to half, so that the front moves rarely; the store knows where it is.

This is a bounded cache over the store: a conversation is read once, when it is first needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache

from bot.domain.chat import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import Round, WindowMoved
from bot.domain.ports import Store

MAX_CONVERSATIONS = 5000
MAX_KNOWN = 20_000
MAX_OVERHEARD = 30  # messages
MAX_ROUNDS = 40
MAX_CHARACTERS = 24_000


@dataclass(slots=True)
class _Memory:
    rounds: list[Round] = field(default_factory=list)
    characters: int = 0
    overheard: deque[MessageReceived] = field(default_factory=lambda: deque(maxlen=MAX_OVERHEARD))
    loaded: bool = False


class History:
    """The memory of all conversations of the process."""

    def __init__(self, *, store: Store, max_rounds: int = MAX_ROUNDS, max_characters: int = MAX_CHARACTERS) -> None:
        self._store = store
        self._max_rounds = max_rounds
        self._max_characters = max_characters
        self._memories: LRUCache[Conversation, _Memory] = LRUCache(MAX_CONVERSATIONS)
        self._known: LRUCache[tuple[Conversation, str], MessageReceived] = LRUCache(MAX_KNOWN)

    def _memory(self, conversation: Conversation) -> _Memory:
        memory = self._memories.get(conversation)
        if memory is None:
            memory = self._memories[conversation] = _Memory()
        return memory

    async def load(self, conversation: Conversation) -> None:
        """Read what the store has of this conversation, unless that was done; call it before asking for messages."""
        memory = self._memory(conversation)
        if memory.loaded:
            return
        remembered = await self._store.remember(conversation)
        memory = self._memory(conversation)
        if memory.loaded:  # somebody else did it meanwhile
            return
        stored = [message.identity for message in remembered.overheard]
        since = [message for message in memory.overheard if message.identity not in stored]
        memory.overheard.clear()
        memory.overheard.extend((*remembered.overheard, *since))
        known = [round_.turn_id for round_ in remembered.rounds]
        memory.rounds = [*remembered.rounds, *(round_ for round_ in memory.rounds if round_.turn_id not in known)]
        memory.characters = sum(_characters(round_.messages) for round_ in memory.rounds)
        memory.loaded = True

    def know(self, message: MessageReceived) -> None:
        """Keep a message, the bot's own included, so that a later quote of it can be resolved."""
        if message.message_id:  # without an id nothing can quote it
            self._known[message.conversation, message.message_id] = message

    def known(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        """A message by its id, if it is remembered here."""
        return self._known.get((conversation, message_id))

    async def find(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        """A message by its id: remembered, or stored."""
        return self.known(conversation, message_id) or await self._store.find(conversation, message_id)

    def overhear(self, message: MessageReceived) -> None:
        """Keep a message that did not wake the bot, as context for the next run."""
        self._memory(message.conversation).overheard.append(message)

    def take_overheard(self, conversation: Conversation) -> tuple[MessageReceived, ...]:
        """What was overheard since the last run, oldest first; it now belongs to that run."""
        overheard = self._memory(conversation).overheard
        taken = tuple(overheard)
        overheard.clear()
        return taken

    def forget_message(self, conversation: Conversation, message_id: str) -> None:
        """Drop a recalled message that no run has read yet."""
        self._known.pop((conversation, message_id), None)
        memory = self._memory(conversation)
        kept = [message for message in memory.overheard if message.message_id != message_id]
        memory.overheard.clear()
        memory.overheard.extend(kept)

    def messages(self, conversation: Conversation) -> tuple[Message, ...]:
        """The rounds as one transcript, oldest first."""
        return tuple(message for round_ in self._memory(conversation).rounds for message in round_.messages)

    def add_round(
        self, conversation: Conversation, turn_id: str, user: UserMessage, answer: Sequence[Message]
    ) -> tuple[Message, ...]:
        """Keep a finished round: what the user said, and all that the run added to it. The round, as it is stored."""
        round_ = Round(turn_id, (user, *answer))
        memory = self._memory(conversation)
        memory.rounds.append(round_)
        memory.characters += _characters(round_.messages)
        if len(memory.rounds) > self._max_rounds or memory.characters > self._max_characters:
            self._shrink(conversation, memory)
        return round_.messages

    def _shrink(self, conversation: Conversation, memory: _Memory) -> None:
        while len(memory.rounds) > 1 and (
            len(memory.rounds) > self._max_rounds // 2 or memory.characters > self._max_characters // 2
        ):
            memory.characters -= _characters(memory.rounds.pop(0).messages)
        self._store.put(WindowMoved(conversation, memory.rounds[0].turn_id))


def _characters(messages: tuple[Message, ...]) -> int:
    total = 0
    for message in messages:
        match message:
            case SystemMessage(text=text) | UserMessage(text=text):
                total += len(text)
            case AssistantMessage(text=text, tool_calls=calls, reasoning=reasoning):
                total += len(text) + sum(len(call.name) + len(call.arguments) + len(call.extras) for call in calls)
                total += len(reasoning.text) + len(reasoning.details) if reasoning else 0
            case ToolMessage(content=content):
                total += len(content)
    return total
