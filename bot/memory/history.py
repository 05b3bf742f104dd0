"""The memory of conversations: rounds, what was overheard since the last one, and who said which
message.

A round is a rendered user message and all that followed it, and is never changed once stored: the
prompt of the next run begins with the same bytes, so providers can cache it. When it grows too
long, the window moves, rarely and never during a run: long tool results of older rounds are told
shortened, then the oldest rounds become a summary (`bot/memory/summaries.py`), or leave without one
where it does not come in time. The store keeps the rounds, and knows the window.

This is a bounded cache over the store: a conversation is read once, when it is first needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Protocol, TypeAlias

from cachetools import LRUCache
from msgspec.structs import replace

from bot.domain.chat import Message, ToolMessage, UserMessage
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import Round, WindowMoved
from bot.domain.ports import Store
from bot.policy.compaction import lighten
from bot.policy.lighten import weight_of
from bot.policy.tokens import estimate_messages, estimate_text

MAX_CONVERSATIONS = 5000
MAX_KNOWN = 20_000  # messages; a long one counts as several
MAX_OVERHEARD = 30  # messages
MAX_TOKENS = 12_000.0  # estimated

FULL = 0.85  # of its room: then the window moves,
EMPTIED = 0.5  # down to this, so that it moves rarely
FRESH = 2  # rounds whose tool results stay whole
SUMMARY = 450.0  # tokens that a new summary will have


class Folding(Protocol):
    """Makes summaries, while nobody waits for an answer."""

    def begin(self, conversation: Conversation, history: History) -> None:
        """Make a summary of this conversation, which became too long with its latest turn."""
        ...

    def stop(self, conversation: Conversation) -> None:
        """Give up a summary that is not there yet: the next turn begins."""
        ...


Telling: TypeAlias = Callable[[Conversation, tuple[Message, ...]], tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class Fold:
    """The part of a conversation that is to become a summary: rounds, oldest first, as they are
    told, and the summary before them.

    `turn_id` is the latest turn of the conversation: it is what made it too long.
    """

    rounds: tuple[Round, ...]
    before: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class _Told:
    """A round as the prompt tells it, and its estimated tokens."""

    turn_id: str
    messages: tuple[Message, ...]
    tokens: float

    @classmethod
    def of(cls, turn_id: str, messages: tuple[Message, ...], *, light: bool = False) -> _Told:
        messages = lighten(messages) if light else messages
        return cls(turn_id, messages, estimate_messages(messages))

    def lighter(self) -> _Told:
        messages = lighten(self.messages)
        return self if messages is self.messages else _Told.of(self.turn_id, messages)


@dataclass(slots=True)
class _Memory:
    """`tokens` are those of the summary and of all rounds."""

    rounds: list[_Told] = field(default_factory=list)
    light_to: str = ""
    summary: str = ""
    tokens: float = 0.0
    overheard: deque[MessageReceived] = field(default_factory=lambda: deque(maxlen=MAX_OVERHEARD))
    loaded: bool = False

    def tell(self, summary: str, rounds: list[_Told]) -> None:
        self.summary, self.rounds = summary, rounds
        self.tokens = estimate_text(summary) + _tokens(rounds)

    def add(self, told: _Told) -> None:
        self.rounds.append(told)
        self.tokens += told.tokens


class _Memories(LRUCache[Conversation, _Memory]):
    """Those that were needed last; a conversation that has none gets one."""

    def __missing__(self, conversation: Conversation) -> _Memory:
        memory = self[conversation] = _Memory()
        return memory


def as_stored(_where: Conversation, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The round as it is stored, unchanged."""
    return messages


class History:
    """The memory of all conversations of the process. `room` is how many estimated tokens of one
    are told.

    `told` makes of a stored round what the model is told of it; the same for the same round.
    Without `folding`, what is too much leaves without a summary.
    """

    def __init__(
        self,
        *,
        store: Store,
        room: Callable[[], float] = lambda: MAX_TOKENS,
        told: Telling = as_stored,
        folding: Folding | None = None,
    ) -> None:
        self._store = store
        self._room = room
        self._tell = told
        self._folding = folding
        self._memories = _Memories(MAX_CONVERSATIONS)
        self._let_go: set[Conversation] = set()  # by `reread`, and not loaded since
        self._known: LRUCache[tuple[Conversation, str], MessageReceived] = LRUCache(
            MAX_KNOWN, getsizeof=weight_of
        )

    async def load(self, conversation: Conversation) -> None:
        """A turn begins: have at hand what the store has of the conversation, in its room. Ask for
        messages then.
        """
        if self._folding is not None:
            self._folding.stop(conversation)
        # A turn that went on meanwhile has put its round, and kept none here. Where that cannot be
        # written just now, what is read lacks it: the next turn reads again.
        if whole := conversation not in self._let_go or await self._store.commit():
            self._let_go.discard(conversation)
        memory = self._memories[conversation]
        if not memory.loaded:
            await self._read(conversation)
            memory = self._memories[conversation]
            memory.loaded &= whole
        if memory.tokens > self._room():
            self._drop(conversation, memory)

    async def reread(self) -> bool:
        """Let go of everything, so that it is read from the store anew; False while that cannot
        promise to have it.
        """
        if not await self._store.commit():
            return False
        self._let_go.update(self._memories)
        self._memories.clear()
        self._known.clear()
        return True

    async def _read(self, conversation: Conversation) -> None:
        remembered = await self._store.remember(conversation)
        memory = self._memories[conversation]
        # Somebody else did it meanwhile; or the next turn will ask again.
        if memory.loaded or remembered is None:
            return
        stored = [message.identity for message in remembered.overheard]
        since = [message for message in memory.overheard if message.identity not in stored]
        memory.overheard.clear()
        memory.overheard.extend((*remembered.overheard, *since))
        known = [round_.turn_id for round_ in remembered.rounds]
        told = [
            _Told.of(
                round_.turn_id,
                self._tell(conversation, round_.messages),
                light=place < remembered.light,
            )
            for place, round_ in enumerate(remembered.rounds)
        ]
        memory.tell(
            remembered.summary,
            [*told, *(told for told in memory.rounds if told.turn_id not in known)],
        )
        memory.light_to = known[remembered.light - 1] if remembered.light else ""
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
        return self.known(conversation, message_id) or await self._store.find(
            conversation, message_id
        )

    def overhear(self, message: MessageReceived) -> None:
        """Keep a message that did not wake the bot, as context for the next run."""
        self._memories[message.conversation].overheard.append(message)

    def take_overheard(self, conversation: Conversation) -> tuple[MessageReceived, ...]:
        """Take the messages overheard since the last run, oldest first; they belong to that run
        now.

        What was missed and found later stands where it was said.
        """
        overheard = self._memories[conversation].overheard
        taken = tuple(sorted(overheard, key=lambda message: message.time))
        overheard.clear()
        return taken

    def forget_message(self, conversation: Conversation, message_id: str) -> None:
        """Drop a recalled message that no run has read yet."""
        self._known.pop((conversation, message_id), None)
        memory = self._memories[conversation]
        kept = [message for message in memory.overheard if message.message_id != message_id]
        memory.overheard.clear()
        memory.overheard.extend(kept)

    def messages(self, conversation: Conversation) -> tuple[Message, ...]:
        """The rounds as one transcript, oldest first, as they are told."""
        return tuple(
            chain.from_iterable([told.messages for told in self._memories[conversation].rounds])
        )

    def summary(self, conversation: Conversation) -> str:
        """The summary of all before the first of the rounds; empty where nothing was, or nobody
        knows.
        """
        return self._memories[conversation].summary

    def add_round(
        self, conversation: Conversation, turn_id: str, user: UserMessage, answer: Sequence[Message]
    ) -> tuple[Message, ...]:
        """Keep a finished round: what the user said, and all that the run added to it. The round,
        as it is stored.
        """
        # Pictures were for this run; the text says where they stood.
        round_ = Round(turn_id, tuple(map(_without_pictures, (user, *answer))))
        if conversation in self._let_go:
            # It began before: the store knows whether it is still to be told.
            return round_.messages
        memory = self._memories[conversation]
        memory.add(_Told.of(turn_id, self._tell(conversation, round_.messages)))
        if memory.loaded and memory.tokens > FULL * self._room():
            self._compact(conversation, memory)
        return round_.messages

    # --- the window -------------------------------------------------------------------------------

    def fold(self, conversation: Conversation) -> Fold | None:
        """The part of a conversation that is to become a summary; None where it has room."""
        memory = self._memories.get(conversation)
        if memory is None or not memory.loaded or memory.tokens <= FULL * self._room():
            return None
        lighter = _lighter(memory.rounds)
        surplus = _surplus(lighter, EMPTIED * self._room() - SUMMARY)
        rounds = tuple(Round(told.turn_id, told.messages) for told in lighter[:surplus])
        return Fold(rounds, memory.summary, lighter[-1].turn_id) if rounds else None

    def folded(self, conversation: Conversation, fold: Fold, summary: str) -> bool:
        """Put the summary in the place of these rounds; False where the window has moved since it
        was asked for.
        """
        memory = self._memories.get(conversation)
        gone = [round_.turn_id for round_ in fold.rounds]
        if memory is None or [told.turn_id for told in memory.rounds[: len(gone)]] != gone:
            return False
        self._move(conversation, memory, gone=len(gone), summary=summary)
        return True

    def _compact(self, conversation: Conversation, memory: _Memory) -> None:
        light = _tokens(_lighter(memory.rounds)) + estimate_text(memory.summary)
        if light <= EMPTIED * self._room():
            self._move(conversation, memory)
        elif self._folding is not None:
            self._folding.begin(conversation, self)

    def _drop(self, conversation: Conversation, memory: _Memory) -> None:
        """No summary came in time: the oldest rounds leave without one."""
        lighter = _lighter(memory.rounds)
        surplus = _surplus(lighter, EMPTIED * self._room() - estimate_text(memory.summary))
        if surplus or lighter != memory.rounds:
            self._move(conversation, memory, gone=surplus)

    def _move(
        self, conversation: Conversation, memory: _Memory, *, gone: int = 0, summary: str = ""
    ) -> None:
        older = memory.rounds[:-FRESH]
        memory.light_to = older[-1].turn_id if older else memory.light_to
        memory.tell(summary or memory.summary, _lighter(memory.rounds)[gone:])
        if memory.loaded:  # else nobody knows what came before
            first = memory.rounds[0].turn_id
            self._store.put(WindowMoved(conversation, first, memory.light_to, memory.summary))


def _tokens(rounds: list[_Told]) -> float:
    return sum(told.tokens for told in rounds)


def _lighter(rounds: list[_Told]) -> list[_Told]:
    """The rounds with the older ones told shortened."""
    return [*(told.lighter() for told in rounds[:-FRESH]), *rounds[-FRESH:]]


def _surplus(rounds: list[_Told], room: float) -> int:
    """How many rounds are too much, from the front on; the last one is not."""
    behind = list(accumulate(told.tokens for told in reversed(rounds)))
    return len(rounds) - max(1, sum(tokens <= room for tokens in behind))


def _without_pictures(message: Message) -> Message:
    match message:
        case UserMessage() | ToolMessage() if message.images:
            return replace(message, images=())
        case _:
            return message
