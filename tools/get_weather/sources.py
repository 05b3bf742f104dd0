"""The weather sources, one row each, in the order in which they are asked until one answers.

Invariants: an answer is reused while it is new (ten minutes, or as the source says); equal
concurrent questions are one; a failed source rests for a while, and one that refused our key until
a restart; no host is asked more often than its row allows. If no source answers, data up to three
hours old is returned with its age. If the first answer has too few days or no hours, the next
source completes it. Nothing outlives the process.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeAlias

from cachetools import TTLCache

from bot.core.ports import Web
from frostagent.types.errors import ToolFailed
from frostagent.types.ports import Clock
from tools.get_weather import amap, met_norway, open_meteo, qweather, wttr
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import Fetched, SourceFailed, WeatherKeys, WeatherQuestion, localise
from tools.get_weather.weather import Weather

logger = logging.getLogger(__name__)

STALE = 3 * 3600.0
GEOCODING = 60, 30  # geocoder requests at once, and a minute
REMEMBERED = 1024  # answers; each takes some 20 kB
TOTAL_SECONDS = 20.0  # for all sources together: a person is waiting
FILL_SECONDS = 8.0  # for completing the first answer

Serves: TypeAlias = Callable[[WeatherPlace, WeatherKeys], bool]


@dataclass(frozen=True, slots=True)
class WeatherSource:
    """A row. A question costs `cost` requests, limited to `burst` at once and `a_minute`."""

    name: str
    fetch: Callable[[WeatherQuestion], Awaitable[Fetched]]
    serves: Serves
    cost: int
    burst: float
    a_minute: float


def _in_mainland(place: WeatherPlace, keys: WeatherKeys) -> bool:
    return bool(keys.amap_key and place.adcode) and not place.adcode.startswith("71")


SOURCES = (
    # 50,000 requests a month are free, 3,000 a minute possible.
    WeatherSource(
        qweather.NAME, qweather.fetch_weather, lambda _, keys: keys.has_qweather, 4, 120, 60
    ),
    WeatherSource(amap.NAME, amap.fetch_weather, _in_mainland, 2, 20, 20),
    # 600 requests a minute, 5,000 an hour, 10,000 a day.
    WeatherSource(open_meteo.NAME, open_meteo.fetch_weather, lambda *_: True, 1, 100, 6.5),
    # 20 a second, with contact details.
    WeatherSource(
        met_norway.NAME, met_norway.fetch_weather, lambda _, keys: keys.contact, 1, 20, 60
    ),
    WeatherSource(wttr.NAME, wttr.fetch_weather, lambda *_: True, 1, 20, 20),
)


@dataclass(frozen=True, slots=True)
class FoundWeather:
    """A weather and its age in seconds; `is_stale` if no source could confirm it. `now_there` is
    the local time at the place, which decides what is today.
    """

    weather: Weather
    now_there: dt.datetime
    age: float = 0.0
    is_stale: bool = False


@dataclass(slots=True)
class _Allowance:
    """Requests that are allowed: `left` at time `at`, up to `burst`, refilled by `a_minute`."""

    burst: float
    a_minute: float
    left: float
    at: float

    def spend(self, cost: int, now: float) -> bool:
        self.left = min(self.burst, self.left + (now - self.at) / 60 * self.a_minute)
        self.at = now
        if self.left < cost:
            return False
        self.left -= cost
        return True


@dataclass(frozen=True, slots=True)
class _KeptWeather:
    fetched: Fetched
    at: float


class WeatherSources:
    """Asks the sources, and caches. A port, so that it outlives a call."""

    def __init__(
        self,
        *,
        web: Web,
        clock: Clock,
        keys: WeatherKeys | None = None,
        sources: tuple[WeatherSource, ...] = SOURCES,
    ) -> None:
        self._web = web
        self._clock = clock
        self._keys = keys or WeatherKeys()
        self._sources = sources
        self._kept: TTLCache[Hashable, _KeptWeather] = TTLCache(
            REMEMBERED, STALE, timer=clock.monotonic
        )
        self._resting: dict[str, float] = {}
        now = clock.monotonic()
        self._allowances = {
            source.name: _Allowance(source.burst, source.a_minute, source.burst, now)
            for source in sources
        }
        self._geocoding = _Allowance(*GEOCODING, GEOCODING[0], now)
        self._flying: dict[Hashable, int] = {}

    def spend_geocoding(self) -> None:
        """Count a geocoder request. Raises ToolFailed if there were too many."""
        if not self._geocoding.spend(1, self._clock.monotonic()):
            raise ToolFailed("the geocoder was asked too often, wait a minute")

    async def look_up(
        self, place: WeatherPlace, *, last: Callable[[dt.date], dt.date] | None = None
    ) -> FoundWeather:
        """The weather of the first source that answers. Raises ToolFailed, with an error for each.

        `last` maps today at the place to the last wanted day: days up to it, and hours, are then
        completed from further sources as far as possible.
        """
        troubles: list[str] = []
        found: FoundWeather | None = None
        serving = [source for source in self._sources if source.serves(place, self._keys)]
        try:
            async with asyncio.timeout(TOTAL_SECONDS) as deadline:
                for source in serving:
                    try:
                        more = await self._from(source, place)
                    except SourceFailed as error:
                        logger.info("weather: %s", error)
                        troubles.append(str(error))
                        continue
                    found = (
                        more
                        if found is None
                        else replace(found, weather=_fill(found.weather, more.weather))
                    )
                    if last is None or _suffices(found.weather, last(found.now_there.date())):
                        return found
                    deadline.reschedule(
                        min(
                            deadline.when() or 0.0, asyncio.get_running_loop().time() + FILL_SECONDS
                        )
                    )
        except TimeoutError:
            troubles.append(f"no answer within {TOTAL_SECONDS:g} s")
        if found is not None:
            return found
        kept = [
            kept for source in serving if (kept := self._kept.get(_key(source, place))) is not None
        ]
        if kept:
            newest = max(kept, key=lambda kept: kept.at)
            return replace(self._found(newest, place), is_stale=True)
        raise ToolFailed("; ".join(troubles))

    def _found(self, kept: _KeptWeather, place: WeatherPlace) -> FoundWeather:
        now, age = self._clock.now(), self._clock.monotonic() - kept.at
        weather = kept.fetched.at(now)
        zone = weather.zone or place.zone
        there = localise(dt.datetime.fromtimestamp(now, dt.UTC), zone)
        return FoundWeather(
            weather, there if zone else weather.now.time + dt.timedelta(seconds=age), age
        )

    async def _from(self, source: WeatherSource, place: WeatherPlace) -> FoundWeather:
        """This source's report, possibly cached. Raises SourceFailed."""
        key, now = _key(source, place), self._clock.monotonic()
        kept = self._kept.get(key)
        if kept is not None and now - kept.at < kept.fetched.fresh:
            return self._found(kept, place)
        if now < self._resting.get(source.name, 0.0):
            raise SourceFailed(f"{source.name} is resting after a failure", rest=0)
        if key not in self._flying and not self._allowances[source.name].spend(source.cost, now):
            raise SourceFailed(f"{source.name} was asked too often", rest=0)
        question = WeatherQuestion(
            place=place,
            web=self._web,
            keys=self._keys,
            now=self._clock.now(),
            earlier=None if kept is None else kept.fetched,
        )
        self._flying[key] = self._flying.get(key, 0) + 1
        try:
            fetched = await source.fetch(question)
        except SourceFailed as error:
            if error.rest:
                self._resting[source.name] = self._clock.monotonic() + error.rest
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # An unexpected value: the next source must still be asked.
            logger.warning("weather: %s sent %r", source.name, error)
            raise SourceFailed(f"{source.name} sent an answer that cannot be read") from error
        finally:
            self._flying[key] -= 1
            if not self._flying[key]:
                del self._flying[key]
        self._kept[key] = kept = _KeptWeather(fetched, self._clock.monotonic())
        return self._found(kept, place)


def _suffices(weather: Weather, last: dt.date) -> bool:
    return bool(weather.hours) and any(day.date >= last for day in weather.days)


def _fill(weather: Weather, more: Weather) -> Weather:
    """Add the days and hours that only `more` has; both sources are then named."""
    known = {day.date for day in weather.days}
    days = tuple(day for day in more.days if day.date not in known)
    hours = () if weather.hours else more.hours
    if not days and not hours:
        return weather
    return replace(
        weather,
        days=tuple(sorted((*weather.days, *days), key=lambda day: day.date)),
        hours=weather.hours or hours,
        source=f"{weather.source} + {more.source}",
        credit=f"{weather.credit}; {more.credit}",
    )


def _key(source: WeatherSource, place: WeatherPlace) -> Hashable:
    """Places within a kilometre share one weather."""
    return source.name, round(place.latitude, 2), round(place.longitude, 2)
