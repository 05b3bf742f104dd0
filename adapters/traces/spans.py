"""The spans of turns: those of their runs (`frostagent.tracing`), and in each run a `delivery` if
its answer did not arrive, or not for certain, with another one once its fate is known.
"""

from __future__ import annotations

from typing import Final

from bot.core.journal import Entry, TurnClosed, Undelivered
from frostagent.tracing import SpanObserver


class TurnSpans(SpanObserver):
    """A `TurnFollower`."""

    sees: Final = frozenset({TurnClosed})

    def see(self, entry: Entry) -> None:
        """The end of a turn: its answer's fate is known, or follows in `settled`."""
        if not isinstance(entry, TurnClosed):
            return
        if entry.undelivered is None:
            self.forget(entry.turn_id)
        else:
            self.settled(entry.turn_id, entry.undelivered)

    def settled(self, turn_id: str, outcome: str) -> None:
        """Record the fate of an answer that did not arrive, or not for certain."""
        error = outcome if outcome == Undelivered.NOT_DELIVERED else ""
        self.tell_later(turn_id, "delivery", outcome, error=error)
