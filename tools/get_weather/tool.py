"""The tool `get_weather`: takes a place's name, reports its weather, optionally with a chart."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Annotated, Any, assert_never

from pydantic import BeforeValidator, Field

from bot.core.ports import Web
from frostagent.types.errors import ToolDenied, ToolFailed
from frostagent.types.ports import Speaker
from frostagent.types.speech import Attachment, Confirmed, Queued, Unknown
from frostagent.types.tools import ToolContext, tool
from tools.get_weather.gazetteer import known_places
from tools.get_weather.open_meteo import find_places
from tools.get_weather.places import (
    Ambiguous,
    Choice,
    Chosen,
    NotFound,
    Query,
    WeatherPlace,
    choose,
    merge,
    read_query,
)
from tools.get_weather.report import (
    DAYS_AHEAD,
    Units,
    read_day,
    report_ambiguous,
    report_not_found,
    report_weather,
    say_path,
)
from tools.get_weather.sources import FoundWeather, WeatherSources


def read_units(value: object) -> object:
    """The schema's units; small models name the degrees instead."""
    words = {"celsius": "metric", "c": "metric", "fahrenheit": "imperial", "f": "imperial"}
    return words.get(value.casefold(), value) if isinstance(value, str) else value


@tool(needs=(Web, WeatherSources), timeout=60, side_effects="read", idempotent=True)
async def get_weather(
    context: ToolContext,
    city: str,
    day: str = "",
    days: Annotated[int, Field(ge=1, le=DAYS_AHEAD)] = 3,
    units: Annotated[Units, BeforeValidator(read_units)] = "metric",
    picture: bool = False,
) -> str:
    """Look up the weather of a place: warnings, now, the hours of today, and up to seven days.

    Use it whenever somebody asks about weather; never answer such a question from memory.

    Args:
        city: The place's name in Chinese or English, if need be with what it lies in: "北京",
            "江苏南京鼓楼", "Paris", "Springfield, Illinois". A city or a district, not a landmark.
        day: Only one day: today, tomorrow, a weekday, or a date as 2026-11-24. Leave out for now
            and the coming days.
        days: How many days of forecast, today included, 1 to 7.
        units: metric (°C, m/s) or imperial (°F, mph).
        picture: true sends the chat a chart of the days as a picture. Only if somebody asks for a
            picture or a chart.
    """
    query = read_query(city)
    choice = known_places().find(query)
    if choice is None:
        with _nothing_invented():
            choice = merge(await _find(context, query), known_places().namesakes(query))
    match choice:
        case Chosen():
            only = partial(read_day, day) if day.strip() else None
            with _nothing_invented():
                found = await context.port(WeatherSources).look_up(
                    choice.place, last=only or (lambda today: today + dt.timedelta(days=days - 1))
                )
            answer = report_weather(
                choice,
                found.weather,
                units=units,
                language=query.language,
                days=days,
                day=None if only is None else only(found.now_there.date()),
                now_there=found.now_there,
                age=found.age,
                is_stale=found.is_stale,
            )
            if not picture or day.strip() or days == 1:
                return answer
            sent = await _send_picture(context, query, choice.place, found, units=units, days=days)
            return f"{answer}\n{sent}"
        case Ambiguous():
            return report_ambiguous(query, choice)
        case NotFound():
            similar = NotFound((*known_places().suggest(query), *choice.near)[:5])
            raise ToolFailed(report_not_found(query, similar))
        case _:
            assert_never(choice)


async def _find(context: ToolContext, query: Query) -> Choice:
    """Ask the geocoder for each spelling until a city is found, and choose among all results."""
    offered: list[WeatherPlace] = []
    choice: Choice = NotFound()
    for spelling in query.spellings:
        context.port(WeatherSources).spend_geocoding()
        offered += await find_places(context.port(Web), query, spelling)
        choice = choose(query, offered)
        if isinstance(choice, Chosen) and choice.place.is_city:
            break
    return choice


async def _send_picture(
    context: ToolContext,
    query: Query,
    place: WeatherPlace,
    found: FoundWeather,
    *,
    units: Units,
    days: int,
) -> str:
    """Send the chart to the chat; returns the outcome as text for the model."""
    if Speaker not in context.ports:
        return "(No picture could be sent from here.)"
    title, weather = say_path(place, query.language), found.weather
    png = await asyncio.to_thread(
        partial(
            _draw, title=title, weather=weather, units=units, days=days, language=query.language
        ),
        now_there=found.now_there,
        age=found.age,
    )
    # Base64, whatever MEDIA_SEND says: the file is not needed later, and the OneBot server may be
    # remote.
    attachment = Attachment(
        "image", "base64://" + base64.b64encode(png).decode("ascii"), "weather.png"
    )
    try:
        receipts = await context.port(Speaker).say((attachment,))
    except ToolDenied as error:
        return f"(The picture was not sent: {error})"
    match receipts:
        case (Confirmed(),):
            return "(A picture of this forecast has been sent to the chat; do not send it again.)"
        case (Unknown() | Queued(),):
            return (
                "(A picture of this forecast was sent and may arrive later; do not send it again.)"
            )
        case _:
            return "(The picture of this forecast was not delivered; say it in words.)"


def _draw(**arguments: Any) -> bytes:
    """The chart as a PNG. Pillow and its font are imported only here, because few need them."""
    png: bytes = import_module("tools.get_weather.picture").draw_forecast(**arguments)
    return png


@contextmanager
def _nothing_invented() -> Iterator[None]:
    """Adds advice for the model to a failure."""
    try:
        yield
    except ToolFailed as error:
        raise ToolFailed(
            f"The weather could not be fetched: {error}. Tell the user that it is not available "
            "right now; do not make "
            "any up."
        ) from error
