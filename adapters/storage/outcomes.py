"""How turns ended for their askers, in SQL.

A turn that was closed while QQ had not confirmed its answer has UNCONFIRMED in `runs.stop`, for
good: what became of the answer since then, its sends say. So a confirmation that comes late
rewrites no run, and a crash in between loses nothing.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Label, case, exists, func, literal_column, select

from adapters.storage.tables import runs, sends, turns
from bot.domain.journal import SendState, Undelivered, Unfinished
from bot.domain.run import Stop

OPEN = (SendState.QUEUED, SendState.SENDING, SendState.UNKNOWN)
LOST = (SendState.REFUSED, SendState.DROPPED)


def outcome_of(run: Any = runs) -> Label[Any]:
    """How the turn of this run ended, `outcome`: what its row says, or its sends since."""
    unconfirmed = _text(Undelivered.UNCONFIRMED)
    turn = turns.alias("whose")
    # What was refused before the end had been said in another form, or the model knew.
    later = sends.c.changed > turn.c.closed
    lost = (_is(*LOST) & later) | (_is(SendState.WITHDRAWN) & sends.c.final)
    since = case(
        (_has(run, turn, lost), _text(Undelivered.NOT_DELIVERED)),
        (_has(run, turn, _is(*OPEN)), unconfirmed),
        (_has(run, turn, _is(SendState.CONFIRMED)), _text(Stop.ANSWERED)),
        # It waited too long for its caller, and was refused before the end.
        (_has(run, turn, _is(*LOST)), _text(Undelivered.NOT_DELIVERED)),
        else_=unconfirmed,  # its sends are gone
    )
    return case((run.c.stop == unconfirmed, since), else_=run.c.stop).label("outcome")


def ending_of(run: Any = runs) -> Label[Any]:
    """What became of the turn of this run, `ending`: an `Ending` in any case, also where the turn
    has no run yet.
    """
    has_ended = func.coalesce(run.c.stop, _text("")) != _text("")
    return case(
        (has_ended, outcome_of(run).element),
        (run.c.state.is_not(None), _text(Unfinished.WAITING)),
        else_=_text(Unfinished.RUNNING),
    ).label("ending")


def _has(run: Any, turn: Any, which: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether the turn has such a send in its own conversation."""
    here = (sends.c.turn_id == run.c.turn_id, turn.c.turn_id == sends.c.turn_id)
    found = select(sends.c.id).where(*here, sends.c.conversation == turn.c.conversation, which)
    return exists(found.correlate(run))


def _is(*states: SendState) -> ColumnElement[bool]:
    return sends.c.state.in_([_text(state) for state in states])


def _text(word: str) -> ColumnElement[str]:
    """Written out: PostgreSQL groups by an expression only if it has no parameters."""
    return literal_column(f"'{word}'")
