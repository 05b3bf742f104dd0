"""The built-in places: China down to districts, and Chinese names of foreign cities. No I/O after
loading.

`README.md` in this folder names the tables' origin. They are loaded at the first lookup. Names are
resolved as people mean them: a city before a district, a district only if its name is unique; a
path (江苏南京鼓楼) is explicit. Other cases are ambiguous and listed with full paths.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from tools.get_weather.places import (
    BESIDE,
    LISTED,
    Ambiguous,
    Choice,
    Chosen,
    Language,
    Query,
    WeatherPlace,
    plain,
)

CHINA_ZONE = "Asia/Shanghai"
MUNICIPALITIES = frozenset(
    {"11", "12", "31", "50", "81", "82"}
)  # have the rank of a province, but are cities
GREAT = (
    "11",
    "31",
    "4401",
    "4403",
)  # with districts as well known as cities: 北京, 上海, 广州, 深圳
SUFFIX = re.compile(r"(?<=..)(?:特别行政区|地区|林区|新区|省|市|区|县|旗|盟)$")
LATIN_KINDS = frozenset(
    {"city", "district", "county", "province", "prefecture", "municipality", "area", "shi", "sheng"}
)
SHORT_LATIN = 6  # letters: a shorter district name may well be a foreign city (Bole, Anda)
SIMILAR = 60.0  # of 100: similar enough for "did you mean"

Word: TypeAlias = str
"""A part of a path: a Chinese character, or a Latin word."""


class Rank(IntEnum):
    COUNTRY = 0
    PROVINCE = 1
    CITY = 2
    DISTRICT = 3


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """A row of a table with its parent; `latin` is the usual Latin name, empty abroad."""

    code: str
    name: str
    rank: Rank
    longitude: float = 0.0
    latitude: float = 0.0
    parent: Area | None = None
    zone: str = CHINA_ZONE
    latin: str = ""

    @property
    def point(self) -> tuple[float, float]:
        return self.longitude, self.latitude

    @property
    def is_large(self) -> bool:
        """Whether it is too large to have one weather."""
        return self.rank <= Rank.PROVINCE

    @property
    def is_great(self) -> bool:
        return self.rank is Rank.DISTRICT and self.code.startswith(GREAT)

    @property
    def is_abroad(self) -> bool:
        return self.code.startswith("A")

    def is_known_as(self, asked: str) -> bool:
        """Whether the text ends with its Chinese name, maybe shortened (甘南). False abroad."""
        return not self.is_abroad and any(
            self.name.startswith(asked[start:]) for start in range(len(asked) - 1)
        )

    def above(self) -> Iterator[Area]:
        """The areas around it, the smallest first."""
        area = self.parent
        while area is not None:
            yield area
            area = area.parent

    def lies_in(self, other: Area | None) -> bool:
        return other is None or any(area is other for area in self.above())

    def title(self, language: Language) -> str:
        """江苏省南京市鼓楼区; in English "Gulou, Nanjing, Jiangsu, China (江苏省南京市鼓楼区)"."""
        *smaller, country = (self, *self.above())
        chinese = "".join(area.name for area in reversed(smaller))
        if country.name != "中国":
            return country.name if chinese == country.name else country.name + chinese
        if language == "zh" or not all(area.latin for area in smaller):
            return chinese
        return f"{', '.join(area.latin.title() for area in smaller)}, China ({chinese})"

    def place(self, language: Language) -> WeatherPlace:
        *_, country = (self, *self.above())
        adcode = self.code if self.code.isdigit() and country.name == "中国" else ""
        return WeatherPlace(
            id=0,
            name=self.name,
            latitude=self.latitude,
            longitude=self.longitude,
            country=country.name,
            zone=self.zone,
            adcode=adcode,
            title=self.title(language),
        )


class Gazetteer:
    """Both tables, indexed by every name. `README.md` describes their rows."""

    def __init__(self, *, china: Sequence[Sequence[Any]], abroad: Sequence[Sequence[Any]]) -> None:
        self._index: dict[str, list[Area]] = {}
        self._members: dict[Area, list[Area]] = {}
        self._add_china(china)
        self._add_abroad(abroad)

    def find(self, query: Query) -> Choice | None:
        """The place that is meant; None if the tables do not know it, so that a geocoder may."""
        for words in _readings(query):
            if areas := _unique(self._matches(words, None)):
                if query.language == "en" and _may_be_abroad(areas, "".join(words)):
                    return None
                return self._choose(areas, query.language, "".join(words))
        return None

    def namesakes(self, query: Query) -> tuple[WeatherPlace, ...]:
        """The places of a short Latin name that `find` leaves to a geocoder."""
        for words in _readings(query) if query.language == "en" else ():
            if areas := _unique(self._matches(words, None)):
                return tuple(area.place("en") for area in areas if not area.is_large)
        return ()

    def suggest(self, query: Query) -> tuple[WeatherPlace, ...]:
        """Places with names similar to an unknown one."""
        from rapidfuzz import fuzz, process  # 4 MiB: most processes never need it

        wanted = query.name if query.language == "zh" else plain(query.name)
        found = process.extract(
            wanted, self._index.keys(), scorer=fuzz.ratio, score_cutoff=SIMILAR, limit=LISTED
        )
        areas = _unique(area for name, *_ in found for area in self._index[name])
        return tuple(area.place(query.language) for area in areas if not area.is_large)[:LISTED]

    def _matches(self, words: Sequence[Word], inside: Area | None) -> Iterator[Area]:
        """Every area that these words name, as one name or as a path."""
        for area in self._index.get("".join(words), ()):
            if area.lies_in(inside):
                yield area
        for cut in range(len(words) - 1, 0, -1):
            for outer in self._index.get("".join(words[:cut]), ()):
                if outer.rank < Rank.DISTRICT and outer.lies_in(inside):
                    yield from self._matches(words[cut:], outer)

    def _choose(self, areas: list[Area], language: Language, asked: str) -> Choice:
        cities = [area for area in areas if area.rank is Rank.CITY]
        districts = [area for area in areas if area.rank is Rank.DISTRICT]
        if large := [area for area in areas if area.is_large]:
            inside = [self._cities_of(area) for area in large]
            capitals = [city for members in inside for city in members[:1]]
            others = [city for members in inside for city in members[1:]]
            found = _unique((*capitals, *cities, *districts, *others))
            return _ambiguous(found, language, within=not (cities or districts))
        if not cities:
            districts.sort(
                key=lambda area: (
                    not area.is_great,
                    not area.code.startswith(tuple(MUNICIPALITIES)),
                )
            )
        best = _first_of_its_seat(cities or districts)
        if best is None:
            return _ambiguous([*cities, *districts], language)
        others = [area for area in areas if area is not best and not area.lies_in(best)]
        # A nickname (巴州) is no better than a district's own name or a distant city (大田).
        if (
            language == "zh"
            and any(not area.is_abroad for area in others)
            and not best.is_known_as(asked)
        ):
            return _ambiguous([best, *others], language)
        if any(area.is_great for area in others):
            return _ambiguous([best, *sorted(others, key=lambda area: not area.is_great)], language)
        return Chosen(best.place(language), tuple(area.place(language) for area in others[:BESIDE]))

    def _cities_of(self, large: Area) -> list[Area]:
        """The cities inside, the capital first: the one at the area's coordinates, or row 1."""
        members = [area for area in self._members.get(large, ()) if area.rank is Rank.CITY]
        members = members or [
            city for area in self._members.get(large, ()) for city in self._cities_of(area)
        ]
        if not (large.latitude and members):
            return members
        capital = min(members, key=lambda city: math.dist(city.point, large.point))
        return [capital, *(city for city in members if city is not capital)]

    def _add_china(self, rows: Sequence[Sequence[Any]]) -> None:
        country = self._add(Area("", "中国", Rank.COUNTRY), ("中国", "china"))
        known: dict[str, Area] = {}
        for code, name, longitude, latitude, latin, *more in rows:
            parent = known.get(f"{code[:4]}00") or known.get(f"{code[:2]}0000") or country
            rank = _rank_of(code)
            area = Area(
                code,
                name,
                rank,
                longitude,
                latitude,
                parent,
                latin=latin.partition(" ")[0].replace("-", " "),
            )
            names = (name, SUFFIX.sub("", name), *(word for text in more for word in text.split()))
            known[code] = self._add(
                area, (*names, *(word.replace("-", "") for word in latin.split() if len(word) > 3))
            )

    def _add_abroad(self, rows: Sequence[Sequence[Any]]) -> None:
        countries: dict[str, Area] = {}
        for number, (name, country, longitude, latitude, zone, *more) in enumerate(rows):
            if country not in countries:
                names = () if country == name else (country,)  # 新加坡 means the city
                countries[country] = self._add(Area("", country, Rank.COUNTRY), names)
            area = Area(
                f"A{number}", name, Rank.CITY, longitude, latitude, countries[country], zone
            )
            self._add(area, (name, *(word for text in more for word in text.split())))

    def _add(self, area: Area, names: Iterable[str]) -> Area:
        for name in dict.fromkeys(names):
            self._index.setdefault(name, []).append(area)
        if area.parent is not None:
            self._members.setdefault(area.parent, []).append(area)
        return area


@cache
def known_places() -> Gazetteer:
    """The tables, loaded at first use."""
    folder = files("tools.get_weather")
    china, abroad = (
        json.loads((folder / f"{name}.json").read_bytes()) for name in ("china", "abroad")
    )
    return Gazetteer(china=china, abroad=abroad)


def _rank_of(code: str) -> Rank:
    if code.endswith("0000"):
        return Rank.CITY if code[:2] in MUNICIPALITIES else Rank.PROVINCE
    return Rank.CITY if code.endswith("00") else Rank.DISTRICT


def _readings(query: Query) -> Iterator[Sequence[Word]]:
    """The ways to read a question as a path, the largest area first: as written, and reversed."""
    parts = [query.name, *query.within]
    if query.language == "en" and not query.within:
        parts = _spelt(query.name)  # "Chaoyang Beijing"
    for order in (parts, parts[::-1]) if len(parts) > 1 else (parts,):
        if query.language == "zh":
            yield "".join("".join(part.split()) for part in order)
        else:
            words = [plain(word) for part in order for word in _spelt(part)]
            yield [word for word in words if word]


def _spelt(part: str) -> list[str]:
    """The words of a Latin name, without one for the kind of place."""
    words = part.replace("-", " ").split()
    return words[:-1] if len(words) > 1 and words[-1].casefold() in LATIN_KINDS else words


def _may_be_abroad(areas: list[Area], name: str) -> bool:
    return len(name) < SHORT_LATIN and all(area.rank is Rank.DISTRICT for area in areas)


def _unique(areas: Iterable[Area]) -> list[Area]:
    return list(dict.fromkeys(areas))


def _first_of_its_seat(areas: list[Area]) -> Area | None:
    """The only area; of a city and its surrounding county (新竹市, 新竹县), the city."""
    cities = [area for area in areas if area.name.endswith("市")]
    if len(areas) == 1:
        return areas[0]
    one_seat = len({(area.parent, SUFFIX.sub("", area.name)) for area in areas}) == 1
    return cities[0] if one_seat and len(cities) == 1 else None


def _ambiguous(areas: list[Area], language: Language, *, within: bool = False) -> Ambiguous:
    places = tuple(area.place(language) for area in areas[:LISTED])
    return Ambiguous(places, more=max(0, len(areas) - LISTED), within=within)
