"""A gateway that cannot publish says so on its pages, and at its end; the rest is told in tests/system/cluster."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest
from pydantic import SecretStr

from adapters.simulator.server import Simulator
from bot import gateway as module
from bot.gateway import open_gateway
from config.settings import Settings
from tests.ports import free_port
from tests.system.processes.test_signals import PATIENCE, make_world


async def test_without_a_broker_it_is_not_ready_and_tells_what_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LAST_EVENTS", 0.05)
    web = free_port()
    settings = Settings(
        bot_role="gateway",
        broker_url=SecretStr("amqp://127.0.0.1:1/"),
        onebot_host="127.0.0.1",
        onebot_port=0,
        web_port=web,
    )
    caplog.set_level(logging.WARNING)
    async with (
        Simulator(make_world()) as simulator,
        open_gateway(settings) as held,
        aiohttp.ClientSession() as session,
    ):
        simulator.dial(f"ws://127.0.0.1:{held.port}/")
        await simulator.wait_connected(timeout=PATIENCE)
        await simulator.say("@bot are you there?")
        figures = ""
        async with asyncio.timeout(PATIENCE):
            while "frostagent_gateway_waiting 1.0" not in figures:
                async with session.get(f"http://127.0.0.1:{web}/metrics") as shown:
                    figures = await shown.text()
        assert "frostagent_broker_up 0.0" in figures
        async with session.get(f"http://127.0.0.1:{web}/readyz") as ready:
            assert ready.status == 503
            assert "the broker cannot be reached" in await ready.text()
    assert "1 events are lost: the broker did not take them" in caplog.text


async def test_one_that_is_a_worker_as_well_shows_no_pages_of_its_own() -> None:
    settings = Settings(broker_url=SecretStr("amqp://127.0.0.1:1/"), onebot_host="127.0.0.1", onebot_port=0, web_port=1)
    async with open_gateway(settings) as held:
        assert held.port
