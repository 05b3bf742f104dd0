"""`Games`, the port of this tool: the table, the operator's rows in it, and what was last said of
each source.
"""

from __future__ import annotations

import asyncio
import logging
import tomllib
from dataclasses import dataclass
from pathlib import Path

from cachetools import LRUCache, TTLCache

from bot.domain.errors import Problem
from bot.domain.ports import Clock
from tools.get_game_version.lookup import GameTable
from tools.get_game_version.releases import Release
from tools.get_game_version.rows import MEND, SETTING, Game, Source, known_games, read_rows

logger = logging.getLogger(__name__)

STALE = 24 * 3600.0
MISS = 600.0


@dataclass(frozen=True, slots=True)
class KeptReleases:
    """A source's releases, and when it told them, on the clock's monotonic scale."""

    releases: tuple[Release, ...]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The answer to a name that no game was found for."""

    near: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


class Games:
    """One for the process. `file` holds an operator's rows (GAMES_FILE): those of a built-in key
    replace it.

    Nothing is read before it is needed: the table at its first use, the operator's file also by
    `check` and `reload`.
    """

    def __init__(self, *, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file
        self._table: GameTable | None = None
        self._added: tuple[Game, ...] = ()
        self._kept: LRUCache[Source, KeptReleases] = LRUCache(512)
        self._missed: TTLCache[tuple[str, str], Missed] = TTLCache(512, MISS, timer=clock.monotonic)

    def check(self) -> tuple[Problem, ...]:
        """The problems of the operator's rows; each problem is logged as a warning, and its row
        left out.
        """
        _, problems = self._read()
        for problem in problems:
            logger.warning("%s", problem)
        return problems

    def reload(self) -> tuple[Problem, ...]:
        """Read the operator's rows again; what is wrong with them. Where anything is, all the old
        ones stay.
        """
        rows, problems = self._read()
        if rows is not None and not problems:
            self._added = rows
            self._missed.clear()
            if self._table is not None:
                self._table = build(rows)
        return problems

    async def table(self) -> GameTable:
        """The table, read at first use, off the loop."""
        if self._table is None:
            table, rows = await asyncio.to_thread(self._load)
            if self._table is None:
                self._table, self._added = table, rows
        return self._table

    def keep(self, source: Source, releases: tuple[Release, ...]) -> None:
        """Remember what a source said."""
        self._kept[source] = KeptReleases(releases, self._clock.monotonic())

    def kept(self, source: Source, *, younger: float = STALE) -> KeptReleases | None:
        """The releases a source told less than so many seconds ago."""
        kept = self._kept.get(source)
        return kept if kept is not None and self._clock.monotonic() - kept.at < younger else None

    def age(self, kept: KeptReleases) -> float:
        """How long ago that was, in seconds."""
        return self._clock.monotonic() - kept.at

    def miss(self, game: str, name_en: str, missed: Missed) -> None:
        """Remember for a while that there is no such game, so that nobody is asked for it over and
        over.
        """
        self._missed[game, name_en] = missed

    def missed(self, game: str, name_en: str) -> Missed | None:
        """The remembered answer to these names."""
        return self._missed.get((game, name_en))

    def _load(self) -> tuple[GameTable, tuple[Game, ...]]:
        rows, _ = self._read()
        rows = self._added if rows is None else rows
        return build(rows), rows

    def _read(self) -> tuple[tuple[Game, ...] | None, tuple[Problem, ...]]:
        """The operator's good rows, None where the file as a whole cannot be read; and what is
        wrong.
        """
        if self._file is None:
            return (), ()
        try:
            return read_rows(self._file.read_text("utf-8-sig"), file=self._file.name)
        except OSError as error:
            what = f"{self._file} cannot be read ({error.strerror})"
        except UnicodeDecodeError:
            what = f"{self._file} is not UTF-8 text"
        except tomllib.TOMLDecodeError as error:
            what = f"{self._file} is not TOML: {error}"
        return None, (Problem(SETTING, what, MEND),)


def build(added: tuple[Game, ...]) -> GameTable:
    """The operator's rows, then the built-in ones whose key they do not have."""
    keys = {game.key for game in added}
    return GameTable((*added, *(game for game in known_games() if game.key not in keys)))
