"""What the day's sums have beyond the journal's rows, which take a while to be read: requests begin
and end meanwhile, here and in other bots. Rather twice than never; nothing is taken off twice.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

from msgspec import Struct, field

from bot.domain.notes import Taken
from bot.memory.marks import Whose
from bot.policy.limits import NOTHING, Amount

LATE: Final = 1.0  # seconds after which what was told is in the journal


class ReadRows(Struct, frozen=True):
    """The journal's rows as they were at some moment from `since` to `by`."""

    since: float
    by: float = math.inf

    def lacking(self, note: Taken) -> Amount:
        """The amount of another bot's note that is to be added to what these rows tell: less than
        nothing only where they cannot tell it yet.
        """
        if note.told < self.since - LATE:
            return NOTHING
        amount = Amount(note.tokens, note.cost)
        return amount if note.told >= self.by else amount.or_nothing


class Rereading(Struct, frozen=True):
    """Rows that are being read: what was reserved `before`, and what is taken meanwhile."""

    rows: ReadRows
    before: frozenset[Hashable]
    taken: list[tuple[tuple[Whose, ...], Amount]] = field(default_factory=list)

    def take(self, keys: tuple[Whose, ...], amount: Amount, ends: Hashable) -> None:
        """An amount with which a reservation `ends`, if any does. One of before may have ended in
        what is read, too: it is not taken off twice, rather not at all.
        """
        self.taken.append((keys, amount.or_nothing if ends in self.before else amount))

    def hear(self, keys: tuple[Whose, ...], note: Taken) -> None:
        """Another bot took something."""
        self.taken.append((keys, self.rows.lacking(note)))
