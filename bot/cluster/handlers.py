"""Handles the announcements and queries of the other bots of a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, assert_never

from adapters.broker.queries import (
    ClusterHandlers,
    ClusterQuery,
    ClusterReply,
    ContextQuery,
    ContextReply,
    DecisionResult,
    OnAnnouncement,
    StatusQuery,
)
from bot.build import App
from bot.console.console_backend import decide, read_status, render_context
from bot.core import codec
from bot.core.console_views import OwnerDecision
from bot.core.conversation import NOWHERE
from bot.core.erasure import SubjectErased
from bot.core.journal import PlaceSet
from bot.core.other_bots import AlarmRaised, Announcement, PlaceChanged, RowChanged, UsageTaken
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.core.settlement import Settled

AT_WORK_WITHIN: Final = 5.0  # seconds; the querying bot waits for eight

logger = logging.getLogger(__name__)


def build_handlers(app: App, at_work: Callable[[], Awaitable[None]]) -> ClusterHandlers:
    """Build the handlers for announcements and queries of the other bots.

    `at_work` returns once this bot takes events. Before that its pending work is unknown: a query
    waits AT_WORK_WITHIN seconds, and is then answered as if no bot had the account.
    """

    async def answer(query: ClusterQuery) -> ClusterReply:
        try:
            async with asyncio.timeout(AT_WORK_WITHIN):
                await at_work()
        except TimeoutError:
            return DecisionResult(Settled("away", ""))
        return await answer_query(app, query)

    journal = app.journal
    suspects = Suspects(journal.scope.number, store=app.store, choices=journal.books)
    return ClusterHandlers(announcement_handler(app), answer, at_work, suspects.begin, suspects.end)


async def answer_query(app: App, query: ClusterQuery) -> ClusterReply:
    match query:
        case StatusQuery(with_drafts=with_drafts):
            return await read_status(app, with_drafts=with_drafts)
        case OwnerDecision():
            return DecisionResult(await decide(app, query))
        case ContextQuery(where=where):
            return ContextReply(render_context(app, where))
        case _:
            assert_never(query)


def announcement_handler(app: App) -> OnAnnouncement:
    """Return a function that applies an announcement of another bot and never raises."""

    async def handle(message: Announcement | None) -> None:
        try:
            await _apply(app, message)
        except Exception:  # another version, or a bug: later events must go on
            logger.exception("what another bot told is lost")

    return handle


async def _apply(app: App, note: Announcement | None) -> None:
    match note:
        case UsageTaken():
            app.spending.hear(note)
        case RowChanged() | PlaceChanged():
            app.settings_store.apply(note)
        case SubjectErased():
            await app.forgetting.elsewhere(note)
        case AlarmRaised():
            app.owner.hear(note)
        case None:  # announcements may have been missed
            await app.settings_store.reload()
            await app.spending.reread()
            await app.history.reread()


class Suspects:
    """Events that may crash the worker that handles them. The journal records each event as begun,
    for the worker that takes over the partition. While the journal is away, no event is suspected.
    """

    def __init__(self, partition: int, *, store: Store, choices: Choices) -> None:
        self._name = f"begun {partition}"
        self._store = store
        self._choices = choices
        self._begun: dict[str, int] | None = None  # how often each was begun without an end

    async def begin(self, event: str, /) -> int:
        """Journal an event's start. Returns the number of earlier ones; 0 without a journal."""
        if self._begun is None:
            if (stored := await self._choices.settings(self._name)) is None:
                return 0
            self._begun = _read(stored.get(NOWHERE, "{}"))
        before = self._begun.get(event, 0)
        self._begun[event] = before + 1
        return before if await self._store.commit(self._entry(self._begun)) else 0

    def end(self, event: str, /) -> None:
        """Remove the event; journalled after all its effects."""
        if self._begun and self._begun.pop(event, 0):
            self._store.put(self._entry(self._begun))

    def _entry(self, begun: dict[str, int]) -> PlaceSet:
        return PlaceSet(NOWHERE, self._name, codec.write(begun) if begun else "")


def _read(text: str) -> dict[str, int]:
    try:
        begun: dict[str, int] = codec.read(dict[str, int], text)
    except codec.Unreadable:  # written by another version
        return {}
    return begun
