"""The sources' hosts on 127.0.0.1, and a way to call the tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from adapters.fetching.client import HttpxWeb
from bot.core.ports import Web
from frostagent.engine.tool_execution import run_body
from frostagent.types.ports import Speaker
from tests.adapters.fetching.replay import StoppedClock
from tests.fakes import tool_context
from tests.tools.get_weather.bodies import QWEATHER_HOST
from tools.get_weather import get_weather
from tools.get_weather.requests import WeatherKeys
from tools.get_weather.sources import WeatherSources

GetWeather = Callable[..., Awaitable[str]]


@pytest.fixture
def hosts() -> Iterable[str]:
    return (
        *("geocoding-api.open-meteo.com", "api.open-meteo.com", "api.met.no", "wttr.in", "restapi.amap.com"),
        QWEATHER_HOST,
    )


@pytest.fixture
def sources(web: HttpxWeb, clock: StoppedClock) -> WeatherSources:
    """The sources as they are without a key; what wttr.in does not answer is a 404."""
    return WeatherSources(web=web, clock=clock)


@pytest.fixture
def ask(web: HttpxWeb, sources: WeatherSources, clock: StoppedClock) -> GetWeather:
    """Calls the tool as the toolset does: with checked arguments and a context that has its ports."""

    async def call(*, keys: WeatherKeys | None = None, speaker: Speaker | None = None, **arguments: Any) -> str:
        asked = sources if keys is None else WeatherSources(web=web, clock=clock, keys=keys)
        ports: dict[type, object] = {Web: web, WeatherSources: asked}
        if speaker is not None:
            ports[Speaker] = speaker
        answer = await run_body(get_weather, tool_context(ports), get_weather.check(arguments))
        assert isinstance(answer, str)
        return answer

    return call
