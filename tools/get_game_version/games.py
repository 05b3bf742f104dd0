"""`Games`, the port of this tool: the table, the operator's rows, and recent answers."""

from __future__ import annotations

import asyncio
import heapq
import logging
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cachetools import LRUCache, TTLCache

from bot.core.language import CATALOGUE, Phrase
from frostagent.types.errors import Problem
from frostagent.types.ports import Clock
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
from tools.get_game_version.releases import Release
from tools.get_game_version.rows import MEND, SETTING, Game, Source, known_games, read_rows

SUGGESTED = 3


UNREADABLE = Phrase("{file} 读不了（{why}）", "{file} cannot be read ({why})")
NOT_UTF8 = Phrase("{file} 不是 UTF-8 文本", "{file} is not UTF-8 text")
NOT_TOML = Phrase("{file} 不是正确的 TOML：{why}", "{file} is not TOML: {why}")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of a lookup: one `game`, or similar ones, which fit equally if `ambiguous`."""

    game: Game | None = None
    near: tuple[Game, ...] = ()
    ambiguous: bool = False


class GameTable:
    """Rows by name. An earlier row wins a shared name, so the operator's rows come first."""

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
        """The game with this name, or with a name that it abbreviates or misspells. Strict, because
        a wrong game is worse than none: numbers must agree, each word may have its own typo only,
        and two matching games are none.
        """
        wanted = fold(name)
        if exact := self._named.get(wanted):
            return Looked(exact)
        begun = tuple(self._beginning_with(wanted)) if may_begin(wanted) else ()
        found = self._decide(begun)
        # A number may follow the only game that begins like this: 文明6 is not every 文明.
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


logger = logging.getLogger(__name__)

STALE = 24 * 3600.0
MISS = 600.0


@dataclass(frozen=True, slots=True)
class KeptReleases:
    """A source's releases, and when they were fetched, on the monotonic clock."""

    releases: tuple[Release, ...]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The answer to a name without a game."""

    near: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


class Games:
    """One per process. `file` has an operator's rows (GAMES_FILE), which replace built-in ones of
    the same key.

    Files are read on demand: the table at first use, the operator's file also by `check` and
    `reload`.
    """

    def __init__(self, *, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file
        self._table: GameTable | None = None
        self._added: tuple[Game, ...] = ()
        self._kept: LRUCache[Source, KeptReleases] = LRUCache(512)
        self._missed: TTLCache[tuple[str, str], Missed] = TTLCache(512, MISS, timer=clock.monotonic)

    def check(self) -> tuple[Problem, ...]:
        """Problems of the operator's rows, also logged as warnings. Their rows are skipped."""
        _, problems = self._read()
        for problem in problems:
            logger.warning("%s", problem)
        return problems

    def reload(self) -> tuple[Problem, ...]:
        """Read the operator's rows again; returns problems. With any problem, the old rows stay."""
        rows, problems = self._read()
        if rows is not None and not problems:
            self._added = rows
            self._missed.clear()
            if self._table is not None:
                self._table = build(rows)
        return problems

    async def table(self) -> GameTable:
        """The table, read at first use, in a thread."""
        if self._table is None:
            table, rows = await asyncio.to_thread(self._load)
            if self._table is None:
                self._table, self._added = table, rows
        return self._table

    def keep(self, source: Source, releases: tuple[Release, ...]) -> None:
        """Remember a source's answer."""
        self._kept[source] = KeptReleases(releases, self._clock.monotonic())

    def kept(self, source: Source, *, younger: float = STALE) -> KeptReleases | None:
        """A source's releases, if fetched less than `younger` seconds ago."""
        kept = self._kept.get(source)
        return kept if kept is not None and self._clock.monotonic() - kept.at < younger else None

    def age(self, kept: KeptReleases) -> float:
        """How long ago they were fetched, in seconds."""
        return self._clock.monotonic() - kept.at

    def miss(self, game: str, name_en: str, missed: Missed) -> None:
        """Remember for a while that there is no such game, to avoid repeated searches."""
        self._missed[game, name_en] = missed

    def missed(self, game: str, name_en: str) -> Missed | None:
        return self._missed.get((game, name_en))

    def _load(self) -> tuple[GameTable, tuple[Game, ...]]:
        rows, _ = self._read()
        rows = self._added if rows is None else rows
        return build(rows), rows

    def _read(self) -> tuple[tuple[Game, ...] | None, tuple[Problem, ...]]:
        """The operator's valid rows (None if the file cannot be read), and the problems."""
        if self._file is None:
            return (), ()
        try:
            return read_rows(self._file.read_text("utf-8-sig"), file=self._file.name)
        except OSError as error:
            what = UNREADABLE.fill(file=self._file, why=error.strerror)
        except UnicodeDecodeError:
            what = NOT_UTF8.fill(file=self._file)
        except tomllib.TOMLDecodeError as error:
            what = NOT_TOML.fill(file=self._file, why=error)
        return None, (Problem(SETTING, what, MEND),)


def build(added: tuple[Game, ...]) -> GameTable:
    """The operator's rows, then the built-in ones with other keys."""
    keys = {game.key for game in added}
    return GameTable((*added, *(game for game in known_games() if game.key not in keys)))
