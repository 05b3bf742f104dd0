"""The table as it is searched: by exact name, by most of one, by nearly one; else what it may have
been.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.get_game_version.names import (
    ALIKE,
    closeness,
    fold,
    is_slip,
    may_begin,
    may_stand_for,
    same_numbers,
    words_of,
)
from tools.get_game_version.rows import Game

SUGGESTED = 3


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of looking up a name: one `game`; or none, and the games it may have meant, all of
    them equally if `ambiguous`.
    """

    game: Game | None = None
    near: tuple[Game, ...] = ()
    ambiguous: bool = False


class GameTable:
    """Rows by name. Where two rows share a name, the earlier one has it; so an operator's rows come
    first.
    """

    def __init__(self, games: Iterable[Game]) -> None:
        self.games = tuple(games)
        self._named: dict[str, Game] = {}
        self._words: dict[str, tuple[str, ...]] = {}
        for game in self.games:
            for name in game.called:
                self._named.setdefault(fold(name), game)
                self._words.setdefault(fold(name), words_of(name))
        self._names = sorted(self._named)

    def find(self, name: str) -> Looked:
        """The game of this name, of most of it, or of nearly this name. A wrong one is worse than
        none: numbers must agree, each word may have its own slip only, and two games that would do
        are none."""
        wanted = fold(name)
        if exact := self._named.get(wanted):
            return Looked(exact)
        begun = tuple(self._beginning_with(wanted)) if may_begin(wanted) else ()
        found = self._decide(begun)
        # Behind the only game that begins so may stand a number: 文明6 is not every 文明.
        if found is not None and (
            found.ambiguous or any(self._stands_for(wanted, known) for known in begun)
        ):
            return found
        words = words_of(name)
        found = self._decide(known for known, parts in self._words.items() if is_slip(words, parts))
        return found or Looked(near=self._nearest(wanted))

    def _stands_for(self, wanted: str, known: str) -> bool:
        return same_numbers(wanted, known) and may_stand_for(wanted, self._words[known])

    def _decide(self, names: Iterable[str]) -> Looked | None:
        games = tuple({self._named[name].key: self._named[name] for name in names}.values())
        if not games:
            return None
        return Looked(games[0]) if len(games) == 1 else Looked(near=games[:5], ambiguous=True)

    def _beginning_with(self, wanted: str) -> Iterator[str]:
        for index in range(bisect_left(self._names, wanted), len(self._names)):
            if not self._names[index].startswith(wanted):
                return
            yield self._names[index]

    def _nearest(self, wanted: str) -> tuple[Game, ...]:
        best: dict[str, tuple[float, Game]] = {}
        for known in self._names:
            game, score = self._named[known], closeness(wanted, known)
            if score >= ALIKE and score > best.get(game.key, (0.0, game))[0]:
                best[game.key] = (score, game)
        return tuple(
            game for _, game in heapq.nlargest(SUGGESTED, best.values(), key=lambda pair: pair[0])
        )
