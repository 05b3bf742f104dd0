"""What the bot that shows the console asks the other bots, which have other accounts, and what the
bot behind a worker does for the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from bot.core.console_views import BotStatus, OwnerDecision
from bot.core.conversation import Conversation
from bot.core.other_bots import Announcement
from bot.core.settlement import Settled


class StatusQuery(Struct, frozen=True, tag="look"):
    """How is everything now? With the words of drafts only where those are asked for."""

    with_drafts: bool = False


class ContextQuery(Struct, frozen=True, tag="around"):
    """The question what stands before this conversation in its prompt."""

    where: Conversation


ClusterQuery: TypeAlias = StatusQuery | OwnerDecision | ContextQuery


class DecisionResult(Struct, frozen=True, tag="said"):
    """The outcome of a word."""

    settled: Settled


class ContextReply(Struct, frozen=True, tag="parts"):
    """The messages before a conversation."""

    parts: tuple[str, ...]


ClusterReply: TypeAlias = BotStatus | DecisionResult | ContextReply

OnAnnouncement: TypeAlias = Callable[[Announcement | None], Awaitable[None]]
"""Hears a note of another bot; None: some may have been missed."""

AnswerQuery: TypeAlias = Callable[[ClusterQuery], Awaitable[ClusterReply]]
"""Answers another bot."""


@dataclass(frozen=True, slots=True)
class ClusterHandlers:
    """What a bot does for the others of its cluster: it hears notes, and answers; `at_work` returns
    once it takes events. Of an event that may end whoever handles it `begin_event` writes down that
    it is begun, and returns how often it was before without an end (0 if nobody knows); `end_event`
    says that whoever handled it is still there.
    """

    hear: OnAnnouncement
    answer: AnswerQuery
    at_work: Callable[[], Awaitable[None]]
    begin_event: Callable[[str], Awaitable[int]]
    end_event: Callable[[str], None]
