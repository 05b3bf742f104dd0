"""Finds the place that is meant: parses the question, and chooses among a geocoder's rows. Pure.
`gazetteer.py` knows the built-in places, before any geocoder.

A wrong place is worse than none, because it goes unnoticed. So a bare name means a significant
place (a seat, or 1000 people), and only if that clearly outweighs its namesakes; a hamlet needs its
region (open-meteo/geocoding-api issue 20: hamlets called 北京 came without the capital).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from frostagent.text.lazy_regex import lazy_regex
from frostagent.types.errors import InvalidArguments

Language: TypeAlias = Literal["zh", "en"]

# GeoNames feature codes of seats, the highest first. Other populated places follow.
SEATS = ("PPLC", "PPLA", "PPLG", "PPLA2", "PPLA3", "PPLA4", "PPLA5")
GONE = frozenset({"PPLH", "PPLQ", "PPLW"})  # historical, abandoned, destroyed
STANDING = 1000
OUTWEIGHS = 3  # times a namesake's population
LISTED = 5  # places listed for an ambiguous name
LONGEST = 400  # characters of a question that are read
NEAR = 0.5  # degrees between two tables' coordinates of one place
BESIDE = 3  # namesakes listed beside a clear match

HAN = lazy_regex(r"[\u4e00-\u9fff]")
CHATTER = lazy_regex(
    r"(?:[的\s]*(?:天气(?:预报)?|气温|温度|预报)|(?<=..)(?:市区|当地|现在|[今明后昨]天|大后天|[今明]日|[今明]晚|[今明]早|这几天"
    r"|最近|[这本下]周末?|周末|[这本下]?(?:周|星期|礼拜)[一二三四五六日天]|未来[一二三四五六七几\d]+[天日]|怎么?样|如何|[?？!！]+)"
    r"|\s+(?:weather|today|tomorrow|forecast))$",
    re.IGNORECASE,
)
COUNTRY_NAMES = {
    "usa": "us",
    "america": "us",
    "unitedstatesofamerica": "us",
    "uk": "gb",
    "britain": "gb",
    "uae": "ae",
}
UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)


@dataclass(frozen=True, slots=True)
class Query:
    """A requested place: a name, and what it lies in ("Springfield, Illinois")."""

    name: str
    within: tuple[str, ...] = ()

    @property
    def language(self) -> Language:
        """The name's language, in which a geocoder finds it; also the answer's."""
        return "zh" if HAN.search(self.name) else "en"

    @property
    def spellings(self) -> tuple[str, ...]:
        """The names to look up, likeliest first: some Chinese cities are stored with 市."""
        if self.language == "en" or len(self.name) < 2:
            return (self.name,)
        other = (
            self.name[:-1] if self.name.endswith("市") and len(self.name) > 2 else f"{self.name}市"
        )
        return (self.name, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherPlace:
    """A row of a geocoder or of the built-in table. `regions` begin with the largest (admin1).

    `population` is 0 if unknown, `zone` an IANA name or empty. Only built-in places have an
    `adcode` (six digits, for AMap; empty abroad and for areas without one) and a `title`, their
    full path.
    """

    id: int
    name: str
    latitude: float
    longitude: float
    country: str = ""
    country_code: str = ""
    regions: tuple[str, ...] = ()
    feature: str = ""
    population: int = 0
    zone: str = ""
    adcode: str = ""
    title: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """From the place to its country, without repetitions; can be used as a question."""
        parts = [self.name]
        for part in (*reversed(self.regions), self.country):
            if part and plain(part) != plain(parts[-1]):
                parts.append(part)
        return tuple(parts)

    def is_near(self, other: WeatherPlace) -> bool:
        """Whether both may be one place: within half a degree."""
        return (
            max(abs(self.latitude - other.latitude), abs(self.longitude - other.longitude)) < NEAR
        )

    @property
    def rank(self) -> int:
        """0 for a capital, growing as the place's office shrinks."""
        return SEATS.index(self.feature) if self.feature in SEATS else len(SEATS)

    @property
    def is_populated(self) -> bool:
        return self.feature not in GONE and (self.feature.startswith("PPL") or self.population > 0)

    @property
    def is_city(self) -> bool:
        """A seat, down to a prefecture's or US county's: what a bare Chinese name means."""
        return self.rank <= SEATS.index("PPLA2")

    @property
    def has_standing(self) -> bool:
        return self.rank < len(SEATS) or self.population >= STANDING

    def lies_in(self, within: Iterable[str]) -> bool:
        """Whether each of these names a region or the country of this place."""
        areas = {plain(area) for area in (*self.regions, self.country, self.country_code)}
        return all(any(_names(plain(wanted), area) for area in areas) for wanted in within)

    def outweighs(self, other: WeatherPlace) -> bool:
        """Whether a bare name means this place: clearly larger, or of higher office and no smaller.
        Size alone never outweighs a country's capital.
        """
        higher, no_lower = self.rank < other.rank, self.rank <= other.rank
        if other.rank == 0 and not no_lower:
            return False
        if self.population == 0 or other.population == 0:  # unknown: only the office counts
            return higher or (no_lower and self.population > other.population)
        return self.population >= OUTWEIGHS * other.population or (
            higher and self.population >= other.population
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The place; `others` share its name and are significant, too."""

    place: WeatherPlace
    others: tuple[WeatherPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """These places, and `more`. `within`: all are inside the named area, which is too large."""

    places: tuple[WeatherPlace, ...]
    more: int = 0
    within: bool = False


@dataclass(frozen=True, slots=True)
class NotFound:
    """No place; `near` is what the geocoder offered."""

    near: tuple[WeatherPlace, ...] = ()


Choice: TypeAlias = Chosen | Ambiguous | NotFound


def read_query(city: str) -> Query:
    """Parse "place" or "place, region, country". Raises InvalidArguments without a name."""
    text = "".join(
        char if char.isprintable() else " "
        for char in unicodedata.normalize("NFKC", city[:LONGEST])
    )
    parts = [" ".join(part.split()) for part in re.split("[,、]", text)]
    name, *within = [part for part in map(_strip, parts) if part] or [""]
    if not any(char.isalpha() for char in name) or len(name) > 80:
        raise InvalidArguments(
            "city: must be the name of a place", fields=("city: must be the name of a place",)
        )
    return Query(name, tuple(within))


def choose(query: Query, offered: Iterable[WeatherPlace]) -> Choice:
    """Choose the place that is meant, or report why not."""
    populated = [
        place for place in {place.id: place for place in offered}.values() if place.is_populated
    ]
    wanted = plain(query.name)
    inside = [place for place in populated if place.lies_in(query.within)]
    named = [place for place in inside if plain(place.name) == wanted]
    if not named:  # "Frankfurt" for Frankfurt am Main, "首尔" for 首尔特别市
        named = [
            place for place in inside if place.has_standing and plain(place.name).startswith(wanted)
        ]
    if not named:
        return NotFound(tuple(sorted(populated, key=lambda place: -place.population)[:LISTED]))
    named.sort(key=lambda place: (place.rank, -place.population))
    candidates = named if query.within else [place for place in named if place.has_standing]
    rivals = _one_for_each_region(candidates)
    for place in rivals:
        others = tuple(rival for rival in rivals if rival is not place)
        if all(place.outweighs(rival) for rival in others):
            return Chosen(place, others[:BESIDE])
    return Ambiguous(tuple((rivals or _one_for_each_region(named))[:LISTED]))


def plain(name: str) -> str:
    """A name for comparison: without case, accents, spaces, punctuation and suffix."""
    spread = unicodedata.normalize("NFKD", name.casefold()).translate(UNDECOMPOSED)
    bare = "".join(char for char in spread if char.isalnum())
    return re.sub(r"(?<=[\u4e00-\u9fff]{2})(?:特别行政区|自治区|地区|省|市)$", "", bare)


def merge(choice: Choice, known: Sequence[WeatherPlace]) -> Choice:
    """A geocoder's choice combined with built-in namesakes; several make it ambiguous."""
    match choice:
        case Chosen(place, others):
            rest = [one for one in known if not place.is_near(one)]
            return (
                Ambiguous((place, *rest, *others)[:LISTED], more=max(0, len(rest) - LISTED + 1))
                if rest
                else choice
            )
        case Ambiguous(places, more, within):
            rest = [one for one in known if not any(place.is_near(one) for place in places)]
            listed = (*places[:BESIDE], *rest, *places[BESIDE:]) if rest else places
            return Ambiguous(listed[:LISTED], more + max(0, len(listed) - LISTED), within)
        case NotFound():
            if len(known) > 1:
                return Ambiguous(tuple(known[:LISTED]), more=max(0, len(known) - LISTED))
            return Chosen(known[0]) if known else choice
        case _:
            assert_never(choice)


def _strip(part: str) -> str:
    """A part of the question, without words about the weather."""
    while (shorter := CHATTER.sub("", part).strip()) != part:
        part = shorter
    return part


def _names(wanted: str, area: str) -> bool:
    if HAN.search(wanted) and len(wanted) >= 2:
        return area.startswith(wanted)  # 广西 for 广西壮族自治区
    return COUNTRY_NAMES.get(wanted, wanted) == area


def _one_for_each_region(places: Iterable[WeatherPlace]) -> list[WeatherPlace]:
    """The first place of each country and admin1, in order."""
    regions: dict[tuple[str, ...], WeatherPlace] = {}
    for place in places:
        regions.setdefault((place.country_code, *place.regions[:1]), place)
    return list(regions.values())
