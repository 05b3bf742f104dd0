"""In NapCat's place, in its container (`napcat.sh`): the simulator, with the settings that `init` wrote for NapCat.

It listens on the port of NapCat's WebUI, which the compose file publishes to this computer:

POST /say {"text": ...}   somebody says it in the group; answers {"message_id": ...}
GET /delivered?count=n    what people got from the bot, once it is so much: [{"text": ..., "segments": [...]}, ...]
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world

SETTINGS = Path("/app/napcat/config/onebot11.json")
PORT = 6099
LONG = 60.0  # seconds somebody waits for a message of the bot, and for the bot itself


def build(simulator: Simulator) -> web.Application:
    """The two things the test does with the group."""

    async def say(request: web.Request) -> web.Response:
        text = (await request.json())["text"]
        await simulator.wait_connected(timeout=LONG)
        return web.json_response({"message_id": await simulator.say(text)})

    async def delivered(request: web.Request) -> web.Response:
        got = await simulator.wait_delivered(int(request.query["count"]), timeout=LONG)
        return web.json_response([{"text": one.text, "segments": one.segments} for one in got])

    app = web.Application()
    app.router.add_post("/say", say)
    app.router.add_get("/delivered", delivered)
    return app


async def main(client: dict[str, Any]) -> None:
    """Dial the bot as NapCat does, for ever; `client` is the entry of its settings."""
    async with Simulator(demo_world(), reconnect=0.5) as simulator:
        simulator.dial(client["url"], token=client["token"])
        runner = web.AppRunner(build(simulator))
        await runner.setup()
        await web.TCPSite(runner, "0.0.0.0", PORT).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    (client,) = json.loads(SETTINGS.read_text("utf-8"))["network"]["websocketClients"]
    asyncio.run(main(client))
