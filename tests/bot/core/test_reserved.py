from __future__ import annotations

from bot.core import codec
from bot.core.journal import Entry, UsageReleased, UsageReserved
from frostagent.types.messages import Usage


def test_they_are_entries_of_the_journal() -> None:
    reserved = UsageReserved(turn_id="t1", number=7, model="m", usage=Usage(10, 300, cost=0.1), at=1.0)
    for entry in (reserved, UsageReleased(turn_id="t1", number=7)):
        assert codec.read(Entry, codec.write(entry)) == entry
