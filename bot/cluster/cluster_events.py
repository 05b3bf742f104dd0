"""Handles the messages and queries of the other bots of a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bot.build import App
from bot.console.console_backend import answer_query
from bot.core.cluster_messages import (
    AlarmRaised,
    ClusterMessage,
    OnClusterMessage,
    PlaceChanged,
    RowChanged,
    SubjectErased,
    UsageTaken,
)
from bot.core.cluster_queries import ClusterHandlers, ClusterQuery, ClusterReply, DecisionResult
from bot.core.settlement import Settled
from bot.memory.suspects import Suspects

AT_WORK_WITHIN: Final = 5.0  # seconds; the querying bot waits for eight

logger = logging.getLogger(__name__)


def build_handlers(app: App, at_work: Callable[[], Awaitable[None]]) -> ClusterHandlers:
    """What handles messages and queries of the other bots.

    `at_work` returns once this bot takes events. Before that it does not know what waits here: a
    query waits AT_WORK_WITHIN seconds, and is then answered as if no bot had the account.
    """

    async def answer(query: ClusterQuery) -> ClusterReply:
        try:
            async with asyncio.timeout(AT_WORK_WITHIN):
                await at_work()
        except TimeoutError:
            return DecisionResult(Settled("away", ""))
        return await answer_query(app, query)

    journal = app.journal
    suspects = Suspects(journal.share.partition, store=app.store, choices=journal.books)
    return ClusterHandlers(message_handler(app), answer, at_work, suspects.begin, suspects.end)


def message_handler(app: App) -> OnClusterMessage:
    """The function that applies a message of another bot. It never raises."""

    async def handle(message: ClusterMessage | None) -> None:
        try:
            await _apply(app, message)
        except Exception:  # from another version, or a bug: later events must go on
            logger.exception("what another bot told is lost")

    return handle


async def _apply(app: App, note: ClusterMessage | None) -> None:
    match note:
        case UsageTaken():
            app.spending.hear(note)
        case RowChanged() | PlaceChanged():
            app.settings_store.apply(note)
        case SubjectErased():
            await app.forgetting.elsewhere(note)
        case AlarmRaised():
            app.owner.hear(note)
        case None:  # messages may have been missed
            await app.settings_store.reload()
            await app.spending.reread()
            await app.history.reread()
