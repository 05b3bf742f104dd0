"""Figures that are looked at only when somebody asks, not counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What everybody took since midnight, in US dollars and tokens; so much of the tokens is
    `reserved` for requests under way. `rung` is how much of what people may take is left out, as in
    docs/limits.md; `used` is the share of the limit of all, None where there is none, as `cost` is
    where no price is known.
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
