"""The table of games, and how a game is found in it by the name somebody types."""

from __future__ import annotations

import difflib
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, TypeAdapter

Kind: TypeAlias = Literal["json", "hoyoplay", "steam_news"]
Form: TypeAlias = Literal["", "league", "counter_strike"]

CLOSE = 0.86  # of difflib's ratio: one slip in seven letters

CHATTER = re.compile(r"(?:的?(?:最新|当前|现在)?的?版本号?|的?最新版|(?:latest)?version)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One question to one place; the fields are explained in `games.toml`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")  # a misspelt field is an error

    kind: Kind
    ref: str
    channel: str
    pick: str = ""
    date: str = ""
    form: Form = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A row: the names of a game and where its versions are told."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    key: str
    zh: str
    en: str
    sources: tuple[Source, ...]
    aliases: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.zh} / {self.en}"

    @property
    def names(self) -> frozenset[str]:
        """All it is called, folded."""
        return frozenset(map(fold, (self.key, self.zh, self.en, *self.aliases)))


@cache
def known_games() -> tuple[Game, ...]:
    """The table, read once: it belongs to the program and does not change while that runs."""
    text = files(__package__).joinpath("games.toml").read_text("utf-8")
    return TypeAdapter(tuple[Game, ...]).validate_python(tomllib.loads(text)["game"])


def find_game(name: str, games: tuple[Game, ...]) -> Game | None:
    """The game of this name, of this beginning of a name, or of nearly this name; None if there is not exactly one."""
    wanted = fold(name)
    exact = [game for game in games if wanted in game.names]
    begun = [game for game in games if any(known.startswith(wanted) for known in game.names)]
    close = [game for game in games if any(_is_close(wanted, known) for known in game.names)]
    for found in (exact, begun if len(wanted) >= 2 else [], close):
        if found:
            return found[0] if len(found) == 1 else None
    return None


def fold(name: str) -> str:
    """A name as it compares: no case, spaces, punctuation or width, and without the word "version" behind it."""
    spread = unicodedata.normalize("NFKC", name).casefold()
    bare = "".join(char for char in spread if char.isalnum())
    return CHATTER.sub("", bare) or bare


def _is_close(wanted: str, known: str) -> bool:
    """A slip of the finger, but never in a number: Persona 3 is not Persona 5."""
    same_numbers = re.findall(r"\d+", wanted) == re.findall(r"\d+", known)
    return same_numbers and difflib.SequenceMatcher(None, wanted, known).ratio() >= CLOSE
