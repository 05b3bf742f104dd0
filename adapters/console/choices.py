"""The options of forms: chats, people, models and tools by their names, so that no number has to
be typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from adapters.console.language import Language
from adapters.console.sources import Sources
from bot.domain.console_views import TurnRow

DAYS: Final = 30  # whose people and models are offered
PERSON = re.compile(r"(?:.*\()?([0-9]{1,18})\)?", re.DOTALL)


class Choice(Struct, frozen=True):
    """An option of a form: its value and its label."""

    value: str
    words: str


async def places(sources: Sources, speech: Language, chosen: str = "") -> list[Choice]:
    """The chats with the latest messages, and the `chosen` one."""
    found = await sources.showing.chats(0)
    rows = () if found is None else found.rows
    has_several = len({row.where.platform_id for row in rows}) > 1
    offered = [
        Choice(
            str(one.where),
            speech.place(
                one.where, one.group if one.where.is_group else one.name, account=has_several
            ),
        )
        for one in rows
    ]
    if chosen and chosen not in {one.value for one in offered}:
        offered.append(Choice(chosen, speech.place_named(chosen)))
    return offered


async def people(sources: Sources, rows: Iterable[TurnRow] = ()) -> Mapping[int, str]:
    """Recent askers by number: those of these rows, and those with the highest cost."""
    known = {row.asker: row.name for row in rows if row.name}
    since = sources.midnight(sources.clock.now(), later=-DAYS)
    for one in await sources.showing.costs(since=since, by="asker") or ():
        if one.called and one.name.isdecimal() and int(one.name):
            known.setdefault(int(one.name), one.called)
    return known


async def models(sources: Sources, chosen: str = "") -> list[str]:
    """The models asked recently, and the `chosen` one."""
    since = sources.midnight(sources.clock.now(), later=-DAYS)
    names = {one.name for one in await sources.showing.costs(since=since, by="model") or ()}
    return sorted(filter(None, names | {chosen}))


def tools(sources: Sources, chosen: str = "") -> list[str]:
    """The names of all tools, and the `chosen` one."""
    return sorted(filter(None, {one.name for one in sources.tools()} | {chosen}))


def parse_person(typed: str, known: Mapping[int, str]) -> int:
    """The number of a person typed as `小红 (20003)`, `20003` or a known name; 0 if unknown."""
    typed = typed.strip()
    if found := PERSON.fullmatch(typed):
        return int(found[1])
    named = (number for number, name in known.items() if name.casefold() == typed.casefold())
    return next(named, 0) if typed else 0


def format_person(number: int, known: Mapping[int, str]) -> str:
    """A person as `parse_person` reads them; empty for 0."""
    if not number:
        return ""
    return f"{name} ({number})" if (name := known.get(number)) else str(number)
