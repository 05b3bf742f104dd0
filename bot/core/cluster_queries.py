"""Questions of the bot that shows the console to the others of a cluster, each of which has other
accounts: how theirs are, and to carry out a word that was said on a page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct, field

from bot.core.cluster_messages import OnClusterMessage
from bot.core.console_views import State, WaitingDraft
from bot.core.settlement import Settled
from frostagent.types.conversation import Conversation

WordKind: TypeAlias = Literal["A", "R", "D"]
"""Calls, requests of people, drafts: each bot numbers its own."""


class StatusQuery(Struct, frozen=True, tag="look"):
    """How is everything now? With the words of drafts only where those are asked for."""

    with_drafts: bool = False


class OwnerDecision(Struct, frozen=True, tag="word"):
    """An owner's word, said on a page, on what waits by this number at this account; of a draft the
    reason are other words.
    """

    account: int
    kind: WordKind
    number: int
    allows: bool
    reason: str = ""


class ContextQuery(Struct, frozen=True, tag="around"):
    """The question what stands before this conversation in its prompt."""

    where: Conversation


ClusterQuery: TypeAlias = StatusQuery | OwnerDecision | ContextQuery


class PartitionStatus(Struct, frozen=True, tag="glance"):
    """How a bot is that has this partition: `waiting` is how much waits there for a word on a page,
    `more` how many drafts beside those told, `personas` the chats of each by its key, `waits` how
    much of each kind waits for a word anywhere.
    """

    partition: int
    state: State
    waiting: int = 0
    drafts: tuple[WaitingDraft, ...] = ()
    more: int = 0
    personas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waits: Mapping[str, int] = field(default_factory=dict)


class DecisionResult(Struct, frozen=True, tag="said"):
    """The outcome of a word."""

    settled: Settled


class ContextReply(Struct, frozen=True, tag="parts"):
    """The messages before a conversation."""

    parts: tuple[str, ...]


ClusterReply: TypeAlias = PartitionStatus | DecisionResult | ContextReply

AnswerQuery: TypeAlias = Callable[[ClusterQuery], Awaitable[ClusterReply]]
"""Answers another bot."""


@dataclass(frozen=True, slots=True)
class ClusterHandlers:
    """What a bot does for the others of its cluster: it hears notes, and answers; `at_work` returns
    once it takes events. Of an event that may end whoever handles it `begin_event` writes down that
    it is begun, and returns how often it was before without an end (0 if nobody knows); `end_event`
    says that whoever handled it is still there.
    """

    hear: OnClusterMessage
    answer: AnswerQuery
    at_work: Callable[[], Awaitable[None]]
    begin_event: Callable[[str], Awaitable[int]]
    end_event: Callable[[str], None]


class ClusterClient(Protocol):
    """The other bots of a cluster, to be asked."""

    @property
    def count(self) -> int:
        """How many there are to be: one for each other partition."""
        ...

    async def ask_all(self, ask: ClusterQuery, /) -> tuple[ClusterReply, ...]:
        """Their answers, within a second; who says nothing by then is missing. Nothing raises."""
        ...

    async def ask(self, account: int, ask: ClusterQuery, /) -> ClusterReply:
        """The answer of the bot that has this account. Raises NotConnected (nobody has it just now,
        and nothing was done) and ActionUnanswered (nobody knows).
        """
        ...
