"""Conversations over a restart, through the whole service and a real database."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.app import Service, open_service
from config.settings import Settings

GROUP = 4242


@asynccontextmanager
async def life(folder: Path, model: OfflineModel, simulator: Simulator, url: str) -> AsyncIterator[Service]:
    """One life of the service, on the journal in this folder."""
    settings = Settings(
        llm_base_url=model.base_url,
        llm_model="demo",
        media_dir=MEDIA_FOLDER,
        onebot_mode="forward",
        onebot_url=url,
        store_url=SecretStr(f"sqlite:///{folder}/bot.db"),
        bot_send_rate=0.0,
        web_port=0,
    )
    async with open_service(settings) as service:
        await simulator.wait_connected()
        yield service
    await simulator.wait_until(lambda: simulator.connected == 0)


async def ask(simulator: Simulator, service: Service, text: str) -> None:
    message_id = await simulator.say(text)
    await service.dispatcher.wait_settled((simulator.world.self_id, "group", GROUP, str(message_id)))
    await service.wait_idle()


def prompts(model: OfflineModel) -> list[list[dict[str, Any]]]:
    return [request["messages"] for request in model.requests]


async def test_the_prompt_after_a_restart_goes_on_byte_for_byte_from_the_one_before(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with life(tmp_path, model, simulator, url) as service:
            await ask(simulator, service, "@bot hello")
            await ask(simulator, service, "@bot send me a message with a picture")
            await simulator.say("just talking", user_id=20002)
        before = prompts(model)
        # The picture took two requests; the second one's transcript and its answer are the history from then on.
        last, closing = before[-1], simulator.delivered[-1].text
        async with life(tmp_path, model, simulator, url) as service:
            await ask(simulator, service, "@bot thanks")
        after = prompts(model)[len(before)]
        assert after[: len(last)] == last
        assert after[len(last)] == {"role": "assistant", "content": closing}
        assert len(after) == len(last) + 2
        assert "just talking" in after[-1]["content"]


async def test_the_prefix_of_a_conversation_never_changes_between_turns(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with life(tmp_path, model, simulator, url) as service:
            for text in ("@bot hello", "@bot write a quicksort", "@bot thanks", "@bot what can you do?"):
                await ask(simulator, service, text)
    mine = [prompt for prompt in prompts(model) if "This conversation is" in prompt[0]["content"]]
    assert len(mine) >= 5
    for earlier, later in itertools.pairwise(mine):
        assert later[: len(earlier)] == earlier


async def test_an_event_delivered_again_after_a_restart_is_not_answered_again(tmp_path: Path) -> None:
    async with OfflineModel() as model, Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        async with life(tmp_path, model, simulator, url) as service:
            message_id = await simulator.say("@bot hello")
            await service.dispatcher.wait_settled((simulator.world.self_id, "group", GROUP, str(message_id)))
            await service.wait_idle()
        async with life(tmp_path, model, simulator, url) as service:
            await simulator.push(simulator.world.event(simulator.world.message(message_id)))
            await ask(simulator, service, "@bot thanks")
        assert len(simulator.delivered) == 2
