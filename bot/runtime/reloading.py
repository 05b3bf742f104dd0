"""Reloads files while the bot runs: `python -m bot reload`, or SIGHUP.

What cannot be used is reported with its remedy, and the previous content is kept. Nothing here
ends the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from bot.core.language import CATALOGUE, Bilingual, Phrase
from frostagent.types.errors import Problem

logger = logging.getLogger(__name__)

Reload: TypeAlias = Callable[[], tuple[Problem, ...]]
"""Reloads something and returns its problems; if there are any, nothing of it is used."""


PERSONA: Final = Phrase("人设", "the persona")
PERSONAS: Final = Phrase("人设目录", "the folder of personas")
GROUPS: Final = Phrase("群的设置文件", "the file of groups")
GAMES: Final = Phrase("游戏表", "the table of games")
SUBAGENTS: Final = Phrase("子代理的文件", "the file of subagents")
SERVERS: Final = Phrase("MCP 服务器的文件", "the file of MCP servers")
WORDS: Final = Phrase("词表", "the word list")
JOURNAL_READ: Final = Phrase(
    "数据库会在需要时重新读取", "the journal is read again as it is needed"
)
JOURNAL_KEPT: Final = Phrase(
    "数据库暂时写不进去，说过的话先留在内存里",
    "what was said stays in memory: the journal cannot be written at the moment",
)
READ: Final = Phrase("{name}已重新读取", "{name} was read again")
KEPT: Final = Phrase(
    "{name}保持原样：{setting} {what}。{fix}",
    "{name} is kept as it was: {setting}: {what}. {fix}",
)
FAILED: Final = Phrase(
    "{name}没能重新读取，保持原样", "{name} could not be read again and is kept as it was"
)
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The outcome, a line for each; `whole` if everything was read."""

    lines: tuple[Bilingual, ...] = ()
    whole: bool = True

    def and_then(self, level: int, line: Bilingual) -> ReloadResult:
        """With one more line, which is logged."""
        logger.log(level, line)
        return ReloadResult((*self.lines, line), self.whole and level < logging.WARNING)


def reload_all(reloads: Mapping[str, Reload]) -> ReloadResult:
    """Read everything again, each on its own; the names are for people, in both languages."""
    told = ReloadResult()
    for name, reload in reloads.items():
        try:
            problems = reload()
        except Exception:
            line = FAILED.fill(name=name)
            logger.exception(line)
            told = ReloadResult((*told.lines, line), whole=False)
            continue
        for problem in problems:
            told = told.and_then(
                logging.ERROR,
                KEPT.fill(name=name, setting=problem.name, what=problem.what, fix=problem.fix),
            )
        if not problems:
            told = told.and_then(logging.INFO, READ.fill(name=name))
    return told
