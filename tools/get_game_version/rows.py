"""The rows of the game table: their fields, and how they are read from TOML (`docs/games.md`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, ClassVar, Literal, TypeAlias, assert_never

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from bot.core.language import CATALOGUE, Phrase
from frostagent.types.errors import Problem
from tools.get_game_version.names import fold
from tools.get_game_version.releases import pick
from tools.get_game_version.versions import Form

SETTING = "GAMES_FILE"
MEND = Phrase(
    "按 docs/zh/games.md 改正，在那之前不用它",
    "Correct it as docs/games.md says; until then it is left out",
).fill()
STRANGE = Phrase(
    "{file} 里有 {name}，只能写 [[game]]", "{file} has {name}, but may only have [[game]]"
)
ONE_TABLE = Phrase(
    "{file} 里写了 [game]：每一项都要写在 [[game]] 下面",
    "{file} has [game]: write each row under [[game]]",
)
AT_ROW = Phrase("{file} 第 {row} 项{name}：{what}", "{file} row {row}{name}: {what}")
EARLIER = Phrase("前面已经有同样的 key", "an earlier row has the same key")


CATALOGUE.register(__name__, globals())


def _check_path(path: str) -> str:
    pick(None, path)
    return path


def _check_match(match: str) -> str:
    try:
        groups = re.compile(match).groups
    except re.error as error:
        raise ValueError(f"is not a regular expression ({error})") from None
    if match and groups != 1:
        raise ValueError("must have exactly one group (...), around the version")
    return match


def _check_name(name: str) -> str:
    if not fold(name):
        raise ValueError("must have a letter")
    return name


Url = Annotated[str, Field(pattern=r"^https://[A-Za-z0-9.-]+/\S*$", max_length=500)]
JsonPath = Annotated[str, AfterValidator(_check_path)]
Match = Annotated[str, AfterValidator(_check_match)]
Name = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_check_name)]
Words = Annotated[str, Field(max_length=80)]
AppId = Annotated[int, Field(gt=0)]
STRICT: ConfigDict = ConfigDict(extra="forbid", defer_build=True)  # a misspelt field is an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """A URL that returns JSON, with paths to the version and its day."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["json"] = "json"
    url: Url
    pick: JsonPath
    date: JsonPath = ""
    match: Match = ""
    form: Form = ""
    optional: bool = False
    channel: Words = ""
    note: Words = ""
    note_en: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bpsv:
    """A Battle.net product."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["bpsv"] = "bpsv"
    product: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    region: Annotated[str, Field(pattern=r"^[a-z]{2}$")] = "us"
    channel: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoYoPlay:
    """A game of the HoYoPlay launcher, by its id there."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["hoyoplay"] = "hoyoplay"
    game: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{8,12}$")]
    region: Literal["cn", "global"] = "cn"
    channel: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steam:
    """A game on Steam: its patch notes and public build."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["steam"] = "steam"
    app: AppId
    channel: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """The latest release of a repository."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["github"] = "github"
    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    match: Match = ""
    channel: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppStore:
    """An app in Apple's store of a country: by id, or by exact name."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["appstore"] = "appstore"
    app: Annotated[int, Field(ge=0)] = 0
    search: Words = ""
    country: Annotated[str, Field(pattern=r"^[a-z]{2}$")] = "cn"
    channel: Words = ""

    def __post_init__(self) -> None:
        if bool(self.app) == bool(self.search):
            raise ValueError("needs either app (its id) or search (its name)")


Source: TypeAlias = Json | Bpsv | HoYoPlay | Steam | GitHub | AppStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A row: the names of a game, and the sources of its versions."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    key: Name
    zh: Name
    en: Name
    sources: Annotated[
        tuple[Annotated[Source, Field(discriminator="kind")], ...],
        Field(min_length=1, max_length=12),
    ]
    aliases: tuple[Name, ...] = ()

    @property
    def called(self) -> tuple[str, ...]:
        """All its names, as in the row."""
        return self.key, self.zh, self.en, *self.aliases

    @property
    def names(self) -> frozenset[str]:
        """All its names, folded."""
        return frozenset(map(fold, self.called))


GAME = TypeAdapter(Game)


def channel_of(source: Source) -> str:
    """The name of a source's channel. Sources of one channel are alternatives, asked in order."""
    if source.channel:
        return source.channel
    match source:
        case Json() | Bpsv():
            return "正式版"
        case HoYoPlay(region=region):
            return "国服" if region == "cn" else "国际服"
        case Steam():
            return "Steam"
        case GitHub():
            return "GitHub"
        case AppStore(country=country):
            return "iOS 国区" if country == "cn" else f"iOS {country.upper()}"
        case _:
            assert_never(source)


def channels_of(game: Game) -> dict[str, list[Source]]:
    """The sources by channel, both in the order of the row."""
    channels: dict[str, list[Source]] = {}
    for source in game.sources:
        channels.setdefault(channel_of(source), []).append(source)
    return channels


@cache
def known_games() -> tuple[Game, ...]:
    """The built-in rows, read once."""
    text = files(__package__).joinpath("games.toml").read_text("utf-8")
    return TypeAdapter(tuple[Game, ...]).validate_python(tomllib.loads(text)["game"])


def read_rows(text: str, *, file: str) -> tuple[tuple[Game, ...], tuple[Problem, ...]]:
    """The valid rows, and a problem for each other one. Raises tomllib.TOMLDecodeError."""
    data = tomllib.loads(text)
    rows = data.pop("game", [])
    problems = [Problem(SETTING, STRANGE.fill(file=file, name=name), MEND) for name in data]
    if not isinstance(rows, list):
        return (), (
            *problems,
            Problem(SETTING, ONE_TABLE.fill(file=file), MEND),
        )
    games: dict[str, Game] = {}
    for number, row in enumerate(rows, 1):
        key = row.get("key") if isinstance(row, dict) else None
        name = f" ({key[:40]})" if isinstance(key, str) and key else ""
        try:
            game = GAME.validate_python(row)
        except ValidationError as error:
            wrong = "; ".join(_complaints(error))
            what = AT_ROW.fill(file=file, row=number, name=name, what=wrong)
            problems.append(Problem(SETTING, what, MEND))
            continue
        if game.key in games:
            what = AT_ROW.fill(file=file, row=number, name=name, what=EARLIER)
            problems.append(Problem(SETTING, what, MEND))
        games.setdefault(game.key, game)
    return tuple(games.values()), tuple(problems)


def _complaints(error: ValidationError) -> Iterator[str]:
    """Each wrong field with its place, as `sources.1.json.pick: ...`."""
    for detail in error.errors(include_url=False, include_input=False)[:5]:
        place = ".".join(str(part) for part in detail["loc"])
        yield f"{place}: {detail['msg']}" if place else detail["msg"]
