"""Everything a healthy bot needs, on the loopback: a model, a OneBot server, the sources of the tools, a folder."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import World
from bot.cli.checks import Check, Outcome
from config.loading import load_settings
from config.settings import Settings
from tests.ports import free_port
from tools.get_game_version.rows import known_games
from tools.get_game_version.sources import host_of
from tools.get_weather.open_meteo import FORECAST, GEOCODER

TOKEN = "5f2b9c1e7a3d8046"
BOT = 10001
HOSTS = {
    *(urlsplit(url).netloc for url in (GEOCODER, FORECAST)),
    *(host_of(source) for game in known_games() for source in game.sources),
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What runs, and the environment that names it."""

    environ: dict[str, str]
    simulator: Simulator
    model: OfflineModel

    def settings(self, **changed: str) -> Settings:
        return settings_of(self.environ | changed)


def settings_of(environ: dict[str, str]) -> Settings:
    return load_settings(environ=environ, env_file=None)[0]


@asynccontextmanager
async def answering(respond: Callable[[web.BaseRequest], web.Response]) -> AsyncIterator[str]:
    """An HTTP server that answers everything so; its root, without a slash."""

    async def handle(request: web.BaseRequest) -> web.Response:
        return respond(request)

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def mirrors(root: str) -> str:
    """TOOLS_MIRRORS with every source at one server."""
    return json.dumps(dict.fromkeys(HOSTS, root))


@asynccontextmanager
async def healthy(folder: Path) -> AsyncIterator[Surroundings]:
    """All is well, in forward mode."""
    async with (
        OfflineModel() as model,
        Simulator(World(self_id=BOT), token=TOKEN) as simulator,
        answering(lambda _: web.json_response({})) as sources,
    ):
        environ = {
            "LLM_BASE_URL": model.base_url,
            "LLM_API_KEY": "sk-5f2b9c1e7a3d",
            "LLM_MODEL": model.name,
            "ONEBOT_MODE": "forward",
            "ONEBOT_URL": await simulator.serve(),
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "STORE_URL": f"sqlite:///{folder}/data/frostagent.db",
            "MEDIA_DIR": f"{folder}/data/media",
            "WEB_PORT": str(free_port()),
            "TOOLS_MIRRORS": mirrors(sources),
        }
        yield Surroundings(environ, simulator, model)


def problems(checks: list[Check]) -> list[Check]:
    return [check for check in checks if check.outcome is Outcome.PROBLEM]


def told(checks: list[Check]) -> str:
    """The only problem, as check, words and fix in one line."""
    (problem,) = problems(checks)
    assert problem.fix
    return f"{problem.name}: {problem.said}. {problem.fix}"
