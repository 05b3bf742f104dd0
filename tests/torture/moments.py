"""Which deaths, and what else goes wrong: drawn by a seed from what a life without death crosses, so that every kind
and every label has its turn.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice

from tests.torture.crossings import Death

AGAIN = 2  # every so many moments of a kind the next life dies, too
GENTLY = 3  # every so many moments of a kind the first life is asked to stop before the journal is in trouble


class Kind(StrEnum):
    """What a moment is about: a death alone, or the state of the journal when the next life begins."""

    KILL = "killed"
    STOP = "asked to stop"
    RECOVERY = "killed again while it recovers"
    AWAY = "the journal is elsewhere"
    UNREADABLE = "the journal's folder is closed"
    LOCKED = "the journal is locked"
    READ_ONLY = "the journal is read-only"
    SET_ASIDE = "the journal is damaged"
    GONE = "the journal is gone"
    TWO = "a second process on the journal"
    KEEPING = "killed while it remembers"
    DRAFTING = "killed while drafts are published"
    REMINDING = "killed while reminders are said"
    UNLIMITED = "killed where nothing has a limit"
    REFUSED = "killed while QQ refuses answers"
    RENUMBERED = "killed where histories have other ids"
    DEAF = "killed after no events came"
    RECALLED = "killed after an admin recalled its words"
    FORWARDED = "killed while forwards are confirmed late"

    @property
    def comes_back(self) -> bool:
        """Whether the journal is in trouble, and is the old one again afterwards."""
        return self in {Kind.AWAY, Kind.UNREADABLE, Kind.LOCKED, Kind.READ_ONLY}

    @property
    def has_limit(self) -> bool:
        """Whether a day has one; then nobody gets a tool until the journal is read."""
        return not self.comes_back and self is not Kind.UNLIMITED

    @property
    def is_lost(self) -> bool:
        """Whether another journal takes the place of the old one."""
        return self in {Kind.SET_ASIDE, Kind.GONE}


ROUND = (*[Kind.KILL] * 4, Kind.RECOVERY, Kind.KEEPING, *[kind for kind in Kind if kind is not Kind.KILL], Kind.KEEPING)
"""One turn round the kinds, some of them more often."""

SERVERS = (Kind.REFUSED, Kind.RENUMBERED, Kind.DEAF, Kind.RECALLED, Kind.FORWARDED)
"""Those in which the server does what real ones do (`servers`)."""

KILLED = frozenset({Kind.KILL, Kind.RECOVERY, Kind.KEEPING, Kind.DRAFTING, Kind.REMINDING, Kind.UNLIMITED, *SERVERS})
"""Those whose first life is never asked to stop."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When the service dies: in its first life, and perhaps in later ones. Without deaths it is a rehearsal.

    `early`: a journal that is in trouble comes back while the life that began without it goes on.
    """

    number: int
    deaths: tuple[Death, ...]
    kind: Kind = Kind.KILL
    early: bool = False

    def __str__(self) -> str:
        when = " (for a while)" if self.early else ""
        return f"{self.kind}{when}: {' then '.join(map(str, self.deaths)) or 'no death'}"


@dataclass(frozen=True, slots=True)
class Crossed:
    """What lives without death crossed: how often each label in a first life, how much in the next one, and how much
    of that before it took an event.
    """

    first: Mapping[str, int]
    second: int
    recovery: int


def draw(
    seed: int,
    number: int,
    usual: Crossed,
    special: Mapping[Kind, Crossed],
    *,
    only: Kind | None = None,
    without: Collection[Kind] = (),
) -> list[Moment]:
    """So many moments, going round the kinds (`without` some), or all of one.

    They go round the labels, so that the first ones cover as many as there are; where a kind has a script of its own,
    round those that no usual life crosses first.
    """
    chance = random.Random(f"{seed}")
    moments: list[Moment] = []
    labels: dict[Kind, list[str]] = {kind: [] for kind in (Kind.KILL, *special)}
    used: set[Death] = set()
    round_ = [only] if only else [kind for kind in ROUND if kind not in without]
    for kind in islice(cycle(round_), number):
        crossed, script = special.get(kind, usual), kind if kind in special else Kind.KILL
        if not labels[script]:
            labels[script] = sorted(crossed.first)
            chance.shuffle(labels[script])
            labels[script].sort(key=lambda label: kind in special and label not in usual.first)
        label = labels[script].pop()
        places = range(1, crossed.first[label] + 1)
        free = [place for place in places if Death(label, place) not in used] or list(places)
        again = sum(moment.kind is kind for moment in moments)
        gently = kind is Kind.STOP or (kind not in KILLED and again % GENTLY == GENTLY - 1)
        deaths = [Death(label, chance.choice(free), gently)]
        used.add(Death(label, deaths[0].number))
        dies_again = again % (2 * AGAIN) >= AGAIN
        if kind is Kind.RECOVERY:
            deaths += (Death("", chance.randint(1, crossed.recovery)) for _ in range(2 if dies_again else 1))
        elif dies_again:
            deaths.append(Death("", chance.randint(1, crossed.second), kind is Kind.STOP))
        early = kind.comes_back and again % 2 == 0
        moments.append(Moment(len(moments), tuple(deaths), kind, early))
    return moments
