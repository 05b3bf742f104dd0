"""Figures that are looked at only when somebody asks, not counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """The sum that everybody took since midnight, in US dollars and tokens; so much of the tokens
    is `reserved` for requests under way. `rung` is how much of what people may take is left out, as
    in docs/limits.md; `used` is the share of the limit of all, None where there is none, as `cost`
    is where no price is known.
    """

    cost: float | None
    tokens: float
    reserved: float
    rung: int
    used: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """How the bot is now. `duplicates`, `overflow`, `reconnects` and `withheld` are since the
    start; `waiting` is how much of each kind waits for an owner's word. Since the start, `ended`
    counts calls that did by outcome, `commands` those that were taken by name. `today` is None
    until what an earlier process took is known.
    """

    lanes: int
    queued: int
    online: int
    offline: int
    duplicates: int
    overflow: int
    reconnects: int
    withheld: int
    waiting: Mapping[str, int]
    ended: Mapping[str, int]
    commands: Mapping[str, int]
    today: Today | None


def together(bots: Sequence[Vitals]) -> Vitals:
    """Of all bots of a process, each of which has its own accounts. What is counted where the
    accounts are, or for everybody, each of them tells whole.
    """
    return Vitals(
        lanes=sum(one.lanes for one in bots),
        queued=sum(one.queued for one in bots),
        online=sum(one.online for one in bots),
        offline=sum(one.offline for one in bots),
        duplicates=sum(one.duplicates for one in bots),
        overflow=sum(one.overflow for one in bots),
        reconnects=max((one.reconnects for one in bots), default=0),
        withheld=sum(one.withheld for one in bots),
        waiting=_summed(one.waiting for one in bots),
        ended=_summed(one.ended for one in bots),
        commands=_summed(one.commands for one in bots),
        today=next((one.today for one in bots if one.today is not None), None),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total
