"""Who hears what the other bots of a cluster tell, and ask."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bot.domain.cluster_messages import Alarmed, Forgotten, Hear, Note, PlaceTold, RowSet, Taken
from bot.domain.cluster_queries import Ask, Ears, Said, Told
from bot.domain.suspension import Settled
from bot.memory.own_limits import SETTING as LIMITS
from bot.memory.personas import SETTING as TEXTS
from bot.memory.suspects import Suspects
from bot.memory.wishes import SETTING as HUSH
from bot.wiring.cluster_console import answering
from bot.wiring.console_backend import ConsoleBackend
from bot.wiring.web import Shown

AT_WORK_WITHIN: Final = 5.0  # seconds; who asks waits for eight

logger = logging.getLogger(__name__)


def ears_of(seen: ConsoleBackend, at_work: Callable[[], Awaitable[None]]) -> Ears:
    """The ears of a bot for the others. Before it is `at_work` it does not know yet what waits
    there, and answers nothing; a word waits for that, for a while.
    """
    answer = answering(seen)

    async def answer_at_work(ask: Ask) -> Told:
        try:
            async with asyncio.timeout(AT_WORK_WITHIN):
                await at_work()
        except TimeoutError:
            return Said(Settled("away", ""))
        return await answer(ask)

    journal = seen.journal
    suspects = Suspects(journal.share.partition, store=seen.rooms.on.store, choices=journal.books)
    return Ears(note_handler(seen.shown), answer_at_work, at_work, suspects)


def note_handler(shown: Shown) -> Hear:
    """The function that lets a bot know; nothing raises."""

    async def hear(note: Note | None) -> None:
        try:
            await _hear(shown, note)
        except Exception:  # of another version, or a bug: the events behind it are not to wait
            logger.exception("what another bot told is lost")

    return hear


async def _hear(shown: Shown, note: Note | None) -> None:
    spending, personas = shown.spending, shown.rooms.keeping.personas
    match note:
        case Taken():
            spending.hear(note)
        case RowSet(name=name, value=value) if name == LIMITS:
            spending.own.hear(value)
        case RowSet(name=name, value=value) if name == TEXTS:
            personas.hear(value)
        case RowSet():
            pass
        case PlaceTold(where=where, name=name, value=value) if name == HUSH:
            shown.rooms.on.wishes.hear(where, value)
        case PlaceTold():
            pass
        case Forgotten():
            await shown.rooms.forgetting.elsewhere(note)
        case Alarmed():
            shown.rooms.owner.hear(note)
        case None:  # whatever it was
            await spending.own.reread()
            await spending.reread()
            await personas.reread()
            await shown.rooms.on.wishes.reread()
            await shown.rooms.on.history.reread()
