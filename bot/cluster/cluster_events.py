"""Handles the notes and requests of the other bots of a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bot.console.cluster_console import answering
from bot.console.console_backend import ConsoleBackend
from bot.domain.cluster_messages import (
    AlarmRaised,
    ClusterMessage,
    OnClusterMessage,
    PlaceChanged,
    RowChanged,
    SubjectErased,
    UsageTaken,
)
from bot.domain.cluster_queries import ClusterHandlers, ClusterQuery, ClusterReply, DecisionResult
from bot.domain.suspension import Settled
from bot.memory.own_limits import SETTING as LIMITS
from bot.memory.personas import SETTING as TEXTS
from bot.memory.quiet_overrides import SETTING as HUSH
from bot.memory.suspects import Suspects
from bot.web import Shown

AT_WORK_WITHIN: Final = 5.0  # seconds; the asking bot waits for eight

logger = logging.getLogger(__name__)


def ears_of(seen: ConsoleBackend, at_work: Callable[[], Awaitable[None]]) -> ClusterHandlers:
    """The ears of a bot for the others. Before it is `at_work` it does not know yet what waits
    there, and answers nothing; a word waits for that, for a while.
    """
    answer = answering(seen)

    async def answer_at_work(ask: ClusterQuery) -> ClusterReply:
        try:
            async with asyncio.timeout(AT_WORK_WITHIN):
                await at_work()
        except TimeoutError:
            return DecisionResult(Settled("away", ""))
        return await answer(ask)

    journal = seen.journal
    suspects = Suspects(journal.share.partition, store=seen.rooms.on.store, choices=journal.books)
    return ClusterHandlers(note_handler(seen.shown), answer_at_work, at_work, suspects)


def note_handler(shown: Shown) -> OnClusterMessage:
    """The function that lets a bot know; nothing raises."""

    async def hear(note: ClusterMessage | None) -> None:
        try:
            await _hear(shown, note)
        except Exception:  # from another version, or a bug: later events must go on
            logger.exception("what another bot told is lost")

    return hear


async def _hear(shown: Shown, note: ClusterMessage | None) -> None:
    spending, personas = shown.spending, shown.rooms.keeping.personas
    match note:
        case UsageTaken():
            spending.hear(note)
        case RowChanged(name=name, value=value) if name == LIMITS:
            spending.own.hear(value)
        case RowChanged(name=name, value=value) if name == TEXTS:
            personas.hear(value)
        case RowChanged():
            pass
        case PlaceChanged(where=where, name=name, value=value) if name == HUSH:
            shown.rooms.on.quiet_overrides.hear(where, value)
        case PlaceChanged():
            pass
        case SubjectErased():
            await shown.rooms.forgetting.elsewhere(note)
        case AlarmRaised():
            shown.rooms.owner.hear(note)
        case None:  # whatever it was
            await spending.own.reread()
            await spending.reread()
            await personas.reread()
            await shown.rooms.on.quiet_overrides.reread()
            await shown.rooms.on.history.reread()
