"""Queries from the bot with the console to the others, and what a bot does for the others."""

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
    """Asks for the bot's status; drafts with their text only on request."""

    with_drafts: bool = False


class ContextQuery(Struct, frozen=True, tag="around"):
    """Asks for the part of a prompt before this conversation."""

    where: Conversation


ClusterQuery: TypeAlias = StatusQuery | OwnerDecision | ContextQuery


class DecisionResult(Struct, frozen=True, tag="said"):
    """The outcome of an owner's decision."""

    settled: Settled


class ContextReply(Struct, frozen=True, tag="parts"):
    parts: tuple[str, ...]


ClusterReply: TypeAlias = BotStatus | DecisionResult | ContextReply

OnAnnouncement: TypeAlias = Callable[[Announcement | None], Awaitable[None]]
"""Handles another bot's announcement; None: some may have been missed."""

AnswerQuery: TypeAlias = Callable[[ClusterQuery], Awaitable[ClusterReply]]


@dataclass(frozen=True, slots=True)
class ClusterHandlers:
    """What a bot does for the others of its cluster: it handles announcements and answers queries;
    `at_work` returns once it takes events. `begin_event` records that an event is begun, and
    returns how often it was begun without an end (0 if unknown); `end_event` records that its
    worker has survived it.
    """

    hear: OnAnnouncement
    answer: AnswerQuery
    at_work: Callable[[], Awaitable[None]]
    begin_event: Callable[[str], Awaitable[int]]
    end_event: Callable[[str], None]
