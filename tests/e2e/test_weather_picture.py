"""The picture of a forecast all the way: a question on a simulated QQ, and what arrives there."""

from __future__ import annotations

import base64
import datetime as dt
import io
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from PIL import Image
from pydantic import SecretStr

from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.app import open_service
from config.settings import Settings
from frostagent.models.openai.client import OpenAIModel
from tests.adapters.fetching.replay import Replay
from tests.fakes import ScriptedModel, calls, words
from tests.tools.get_weather.bodies import FORECAST, forecast
from tools.get_weather import open_meteo

T = TypeVar("T")

ASKING = calls(("get_weather", '{"city": "北京", "days": 3, "picture": true}'))


def coming_days() -> dict[str, Any]:
    """A forecast from yesterday on: the service has the real time."""
    today = dt.datetime.now(dt.UTC).date()
    days = [str(today + dt.timedelta(days=away)) for away in range(-1, 6)]
    figures = {"weather_code": [71] * 7, "temperature_2m_max": [2.0] * 7, "temperature_2m_min": [-4.0] * 7}
    return forecast(daily={"time": days, **figures})


async def test_the_picture_arrives_as_an_image_inside_a_message(tmp_path: Path) -> None:
    async with Replay() as server, Simulator(demo_world()) as simulator:
        server.tell(FORECAST, coming_days())
        settings = Settings(
            llm_base_url="http://127.0.0.1:9/v1",
            llm_model="scripted",
            onebot_mode="forward",
            onebot_url=await simulator.serve(),
            store_url=SecretStr(f"sqlite:///{tmp_path}/bot.db"),
            tools_mirrors=server.standing_in_for(urlsplit(open_meteo.FORECAST).hostname or ""),
            web_port=0,
        )
        with ScriptedModel(ASKING, words("下雪啦")) as model:

            def wrap(port: T, /) -> T:
                scripted: Any = model
                return scripted if isinstance(port, OpenAIModel) else port

            async with open_service(settings, wrap=wrap):
                await simulator.wait_connected()
                await simulator.say("@bot 北京这几天的天气，画张图")
                picture, answer = await simulator.wait_sent(2, timeout=20)
    [image] = [segment for segment in picture.segments if segment["type"] == "image"]
    scheme, _, data = image["data"]["file"].partition("://")
    assert scheme == "base64"
    drawn = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (drawn.format, drawn.width) == ("PNG", 4 * 128 + 64)
    assert answer.text.endswith("下雪啦")
    assert "A picture of this forecast has been sent" in str(model.requests[-1].messages[-1])
