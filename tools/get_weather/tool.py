"""The tool `get_weather`: a name of a place in, its weather in words out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from bot.domain.errors import ToolFailed
from bot.domain.ports import Web
from bot.domain.tool import ToolContext, tool
from tools.get_weather.open_meteo import fetch_weather, find_places
from tools.get_weather.places import Ambiguous, Choice, Chosen, NotFound, Place, Query, choose, read_query
from tools.get_weather.report import Unit, report_ambiguous, report_not_found, report_weather


@tool(needs=(Web,), timeout=45)
async def get_weather(context: ToolContext, city: str, unit: Unit = "celsius") -> str:
    """Look up the current weather of a place and its forecast for today and the next two days.

    Use it whenever somebody asks about weather; never answer such a question from memory.

    Args:
        city: The place's name in Chinese or English, if need be with what it lies in: "北京", "Paris", "Springfield,
            Illinois". The city, not a district or a landmark.
        unit: The unit of temperatures.
    """
    web = context.port(Web)
    query = read_query(city)
    with _nothing_invented():
        choice = await _find(web, query)
    match choice:
        case Chosen():
            with _nothing_invented():
                weather = await fetch_weather(web, choice.place)
            return report_weather(choice, weather, unit=unit, language=query.language)
        case Ambiguous():
            return report_ambiguous(query, choice)
        case NotFound():
            raise ToolFailed(report_not_found(query, choice))
        case _:
            assert_never(choice)


async def _find(web: Web, query: Query) -> Choice:
    """Ask for one spelling of the name after the other until a city is found; judge by all that was offered."""
    offered: list[Place] = []
    choice: Choice = NotFound()
    for spelling in query.spellings:
        offered += await find_places(web, query, spelling)
        choice = choose(query, offered)
        if isinstance(choice, Chosen) and choice.place.is_city:
            break
    return choice


@contextmanager
def _nothing_invented() -> Iterator[None]:
    """Adds to a failure what the model should do with it."""
    try:
        yield
    except ToolFailed as error:
        raise ToolFailed(
            f"The weather could not be fetched: {error}. Tell the user that it is not available right now; do not make "
            "any up."
        ) from error
