from __future__ import annotations

from pathlib import Path

from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.app import open_service
from tests.bot.test_app import TOKEN, settings


async def test_the_forward_mode_dials_and_answers(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world(), token=TOKEN) as simulator:
        url = await simulator.serve()
        given = settings(
            model.base_url, onebot_mode="forward", onebot_url=url, store_url=f"sqlite:///{tmp_path}/frost.db"
        )
        async with open_service(given) as service:
            await simulator.wait_connected()
            assert service.port == 0
            await simulator.say("@bot hello")
            assert (await simulator.wait_sent(1))[0].text
